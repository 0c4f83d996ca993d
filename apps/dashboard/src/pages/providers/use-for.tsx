import { useEffect, useState } from 'react';
import { useRead } from '../../data/use-read.js';
import { Field } from '../../ui/ui.js';
import { describeModel, usualModel } from './provider-kinds.js';
import type { ProviderKind, ProviderModel } from './provider-kinds.js';
import css from '../pages.module.css';

/** The model that is used, and the agents that use it. */
export interface Use {
  readonly model: string;
  readonly agents: readonly string[];
}

/** Models that most people begin with, by kind. */
const USUAL: Readonly<Partial<Record<ProviderKind, readonly string[]>>> = {
  anthropic: ['claude-sonnet-4-5'],
  openai: ['gpt-4o'],
  openrouter: ['anthropic/claude-sonnet-4.5'],
  gemini: ['gemini-2.5-flash'],
};

interface UseForProps {
  readonly kind: ProviderKind;
  readonly models: readonly ProviderModel[];
  /** True: the default agent is chosen. */
  readonly isNew: boolean;
  readonly onChange: (use: Use) => void;
}

/** Chooses a model of a provider that works, and the agents that use it. */
export const UseFor = ({ kind, models, isNew, onChange }: UseForProps) => {
  const agents = useRead('listAgents', {}, { hasPast: false }).data?.agents ?? [];
  const usual = agents.find(({ isDefault }) => isDefault)?.id;
  const [model, setModel] = useState(() => usualModel(models, USUAL[kind] ?? []));
  const [chosen, setChosen] = useState<readonly string[] | null>(null);
  const used = chosen ?? (isNew && usual !== undefined ? [usual] : []);
  const key = `${model} ${used.join(' ')}`;
  useEffect(() => onChange({ model: model.trim(), agents: used }), [key]);
  const found = models.find(({ id }) => id === model);
  return (
    <>
      <Field label="Model" hint={found ? describeModel(found) : 'Type a part of its name.'}>
        {(props) => (
          <>
            <input
              {...props}
              list="models-of-provider"
              autoComplete="off"
              value={model}
              onChange={(event) => setModel(event.target.value)}
            />
            <datalist id="models-of-provider">
              {models.map(({ id }) => (
                <option key={id} value={id} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      <fieldset className={css.choices}>
        <legend>Use it for</legend>
        {agents.map(({ id, name, isDefault }) => (
          <label key={id} className={css.check}>
            <input
              type="checkbox"
              checked={used.includes(id)}
              onChange={({ target }) =>
                setChosen(target.checked ? [...used, id] : used.filter((other) => other !== id))
              }
            />
            <span>
              {name === id ? id : `${name} (${id})`}
              {isDefault && ', the default agent'}
            </span>
          </label>
        ))}
      </fieldset>
    </>
  );
};
