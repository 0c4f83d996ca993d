import { useState } from 'react';
import { Button, css as ui, Field, IconButton } from '../../ui/ui.js';
import { NAME, type Definition } from './definition.js';
import type { EditorModel } from './use-editor.js';
import css from './workflow.module.css';

interface PartProps {
  readonly model: EditorModel;
  readonly isOff: boolean;
}

type Inputs = Definition['inputs'];

const InputFields = ({ model, isOff }: PartProps) => {
  const { definition, change } = model;
  const [name, setName] = useState('');
  const entries = Object.entries(definition.inputs);
  const set = (inputs: Inputs, step: string | null = null): void => change({ ...definition, inputs }, step);
  const isFree = NAME.test(name) && !Object.hasOwn(definition.inputs, name);
  return (
    <div className={ui.field}>
      <span>Inputs of a run</span>
      <ul className={css.needs}>
        {entries.map(([key, input]) => (
          <li key={key}>
            <code className={ui.mono}>{key}</code>
            <input
              className={ui.input}
              aria-label={`Default of ${key}`}
              placeholder="required"
              value={input.default ?? ''}
              disabled={isOff}
              onChange={({ target: { value } }) => {
                const { default: _, ...rest } = input;
                const next = value === '' ? rest : { ...rest, default: value };
                set({ ...definition.inputs, [key]: next }, `input ${key}`);
              }}
            />
            <IconButton
              icon="close"
              label={`Remove the input ${key}`}
              disabled={isOff}
              onClick={() => set(Object.fromEntries(entries.filter(([other]) => other !== key)))}
            />
          </li>
        ))}
      </ul>
      <form
        className={css.addInput}
        onSubmit={(event) => {
          event.preventDefault();
          if (!isFree) return;
          set({ ...definition.inputs, [name]: {} });
          setName('');
        }}
      >
        <input
          className={ui.input}
          aria-label="Name of a new input"
          placeholder="name"
          value={name}
          disabled={isOff}
          onChange={(event) => setName(event.target.value)}
        />
        <Button type="submit" disabled={isOff || !isFree}>
          Add
        </Button>
      </form>
    </div>
  );
};

export const WorkflowFields = ({ model, isOff }: PartProps) => {
  const { definition, change } = model;
  const describe = (text: string): Definition => {
    const { description: _, ...rest } = definition;
    return text === '' ? rest : { ...rest, description: text };
  };
  return (
    <>
      <Field label="Name of the workflow">
        {(props) => (
          <input
            {...props}
            maxLength={200}
            value={definition.name}
            disabled={isOff}
            onChange={(event) => change({ ...definition, name: event.target.value }, 'name')}
          />
        )}
      </Field>
      <Field label="Description">
        {(props) => (
          <textarea
            {...props}
            rows={3}
            maxLength={2_000}
            value={definition.description ?? ''}
            disabled={isOff}
            onChange={(event) => change(describe(event.target.value), 'description')}
          />
        )}
      </Field>
      <InputFields model={model} isOff={isOff} />
    </>
  );
};
