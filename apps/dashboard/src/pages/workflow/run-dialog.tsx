import { useState } from 'react';
import { navigate } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { ActButton } from '../../ui/act-button.js';
import { useCheckedForm } from '../../ui/field-errors.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';
import { isChanged } from './editor-store.js';
import type { EditorModel } from './use-editor.js';
import type { Saving } from './use-save.js';
import css from './workflow.module.css';

interface RunDialogProps {
  readonly model: EditorModel;
  readonly saving: Saving;
  readonly onClose: () => void;
}

/** Saves the changes, starts a run, and shows it in the graph. */
export const RunDialog = ({ model, saving, onClose }: RunDialogProps) => {
  const { definition, editing } = model;
  const act = useAct();
  const [inputs, setInputs] = useState<Readonly<Record<string, string>>>({});
  const names = Object.entries(definition.inputs);
  const hasChanges = isChanged(editing);
  const start = async (): Promise<void> => {
    const saved = hasChanges ? await saving.save() : null;
    if (hasChanges && !saved) return onClose();
    const id = saved?.id ?? model.id;
    const run = await client.http.startWorkflow({ params: { id }, body: { inputs } });
    navigate(`/workflows/${id}/edit?run=${run.id}`, { replace: true });
    onClose();
  };
  const { errors, props: form } = useCheckedForm(() => act.run(start));
  return (
    <Dialog title={`Run ${definition.name}`} onClose={onClose}>
      <form className={css.form} {...form}>
        {hasChanges && <p>{`The changes are saved as version ${(saving.base ?? 0) + 1} first.`}</p>}
        {names.map(([name, input]) => (
          <Field
            key={name}
            label={name}
            hint={input.description ?? 'Input of the workflow'}
            error={errors[name]}
          >
            {(props) => (
              <textarea
                {...props}
                name={name}
                rows={2}
                required={input.default === undefined}
                placeholder={input.default ?? ''}
                value={inputs[name] ?? ''}
                onChange={({ target: { value } }) => {
                  const { [name]: _, ...rest } = inputs;
                  setInputs(value === '' ? rest : { ...rest, [name]: value });
                }}
              />
            )}
          </Field>
        ))}
        {names.length === 0 && !hasChanges && (
          <p>{`The agents of ${definition.nodes.length} nodes start to work.`}</p>
        )}
        {act.problem && <ProblemBox problem={act.problem} />}
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          <ActButton permission="runs:write" type="submit" look="primary" icon="play" isOff={act.isBusy}>
            Start the run
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};
