import type { RouteRequest } from '@antiphon/client';
import { useState } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { ActButton } from '../../ui/act-button.js';
import { useCheckedForm } from '../../ui/field-errors.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';
import type { Agent } from './agent-card.js';
import { DefinitionFields, namesOf } from './definition-fields.js';

type Changes = Exclude<NonNullable<RouteRequest<'controlAgent'>['body']>, { action: string }>;

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Returns the fields that differ from the agent's. Another provider always has its model with it. */
const changesOf = (agent: Agent, form: FormData): Changes => {
  const text = (name: string): string => String(form.get(name) ?? '').trim();
  const wanted = {
    ...{ provider: text('provider'), model: text('model') },
    systemPrompt: text('systemPrompt'),
    ...{ tools: namesOf(text('tools')), capabilities: namesOf(text('capabilities')) },
    ...(text('role') && { role: text('role') }),
  };
  const known = { ...agent, systemPrompt: agent.systemPrompt ?? '' };
  const changed = Object.entries(wanted).filter(
    ([name, value]) =>
      !isSame(value, known[name as keyof typeof wanted]) ||
      (name === 'model' && wanted.provider !== agent.provider),
  );
  return Object.fromEntries(changed);
};

interface ChangeDialogProps {
  readonly agent: Agent;
  readonly onClose: () => void;
}

/** Changes the definition of an agent, from its next model call on. */
export const ChangeDialog = ({ agent, onClose }: ChangeDialogProps) => {
  const { id, overrides = [] } = agent;
  const { run, isBusy, problem } = useAct();
  const [provider, setProvider] = useState(agent.provider);
  const save = (body: Changes): void =>
    run(async () => {
      if (Object.keys(body).length > 0) await client.http.controlAgent({ params: { id }, body });
      onClose();
    });
  const { props: form } = useCheckedForm((given) => save(changesOf(agent, given)));
  return (
    <Dialog title={`Change ${agent.name}`} onClose={onClose}>
      <form {...form} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        <DefinitionFields
          initial={agent}
          provider={provider}
          onProvider={setProvider}
          hint="What it is for."
        />
        <Field label="System prompt">
          {(props) => (
            <textarea {...props} name="systemPrompt" rows={5} defaultValue={agent.systemPrompt ?? ''} />
          )}
        </Field>
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          {overrides.length > 0 && (
            <ActButton
              permission="agents:write"
              isOff={isBusy}
              onClick={() => save(Object.fromEntries(overrides.map((name) => [name, null])))}
            >
              Reset all
            </ActButton>
          )}
          <ActButton permission="agents:write" type="submit" look="primary" isOff={isBusy}>
            Save
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};
