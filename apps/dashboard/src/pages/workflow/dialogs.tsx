import { useState, type FormEvent } from 'react';
import { ActButton } from '../../ui/act-button.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';
import { refuseEdge, type Definition, type Workflow } from './definition.js';
import type { EditorModel } from './use-editor.js';
import type { Saving } from './use-save.js';
import css from './workflow.module.css';

/** Draws an edge without a pointer. */
export const ConnectDialog = ({ model }: { readonly model: EditorModel }) => {
  const { nodes } = model.definition;
  const [from, setFrom] = useState(model.current || (nodes[0]?.id ?? ''));
  const [to, setTo] = useState(nodes.find(({ id }) => refuseEdge(nodes, from, id) === null)?.id ?? '');
  const reason = to === '' ? null : refuseEdge(nodes, from, to);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (reason !== null || to === '') return;
    model.actions.connect(from, to);
    model.closeConnect();
  };
  const options = nodes.map(({ id }) => <option key={id}>{id}</option>);
  return (
    <Dialog title="Connect two nodes" onClose={model.closeConnect}>
      <form className={css.form} onSubmit={submit}>
        <Field label="From" hint="This node ends first.">
          {(props) => (
            <select {...props} value={from} onChange={(event) => setFrom(event.target.value)}>
              {options}
            </select>
          )}
        </Field>
        <Field label="To" hint="This node starts after it, and may use its output.">
          {(props) => (
            <select {...props} value={to} onChange={(event) => setTo(event.target.value)}>
              <option value="">choose one</option>
              {options}
            </select>
          )}
        </Field>
        <p className={css.error} role="alert">
          {reason}
        </p>
        <div className={ui.dialogFoot}>
          <Button onClick={model.closeConnect}>Close</Button>
          <Button type="submit" look="primary" disabled={reason !== null || to === ''}>
            Connect
          </Button>
        </div>
      </form>
    </Dialog>
  );
};

/** Names what differs between two definitions. */
const differences = (mine: Definition, theirs: Definition): string[] => {
  const found: string[] = [];
  if (mine.name !== theirs.name) found.push(`the name: “${theirs.name}” there, “${mine.name}” here`);
  if ((mine.description ?? '') !== (theirs.description ?? '')) found.push('the description');
  if (JSON.stringify(mine.inputs) !== JSON.stringify(theirs.inputs)) found.push('the inputs');
  const there = new Map(theirs.nodes.map((node) => [node.id, JSON.stringify(node)]));
  for (const node of mine.nodes) {
    const other = there.get(node.id);
    if (other === undefined) found.push(`“${node.id}” is only here`);
    else if (other !== JSON.stringify(node)) found.push(`“${node.id}” differs`);
    there.delete(node.id);
  }
  for (const id of there.keys()) found.push(`“${id}” is only there`);
  return found;
};

interface ConflictProps {
  readonly model: EditorModel;
  readonly saving: Saving;
  readonly theirs: Workflow;
}

/** Another editor saved a version in the meantime: three ways to continue, and none loses work. */
export const ConflictDialog = ({ model, saving, theirs }: ConflictProps) => (
  <Dialog title={`Version ${theirs.version} was saved in the meantime`} onClose={saving.closeConflict}>
    <p>You edited version {saving.base}. Each choice keeps every version in the log. They differ in:</p>
    <ul className={css.problems}>
      {differences(model.definition, theirs.definition).map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
    {saving.problem && saving.problem.status !== 409 && <ProblemBox problem={saving.problem} />}
    <div className={css.choices}>
      <ActButton
        permission="runs:write"
        look="primary"
        onClick={() => void saving.save({ over: theirs.version })}
      >
        {`Save mine as version ${theirs.version + 1}`}
      </ActButton>
      <ActButton permission="runs:write" onClick={() => void saving.save({ asNew: true })}>
        Save mine as a new workflow
      </ActButton>
      <Button onClick={saving.takeTheirs}>Take theirs; undo brings mine back</Button>
    </div>
  </Dialog>
);

/** Asks what to do with changes that are not saved. */
export const LeaveDialog = ({ model, saving }: { readonly model: EditorModel; readonly saving: Saving }) => {
  const { leave, stay } = model.leaving;
  const saveAndLeave = async (): Promise<void> => {
    const go = leave;
    if (await saving.save()) go?.();
    else stay();
  };
  return (
    <Dialog title="Leave without saving?" onClose={stay}>
      <p>The changes since the last version are not saved.</p>
      {saving.problem && <ProblemBox problem={saving.problem} />}
      <div className={ui.dialogFoot}>
        <Button onClick={stay}>Stay</Button>
        <Button look="danger" onClick={() => leave?.()}>
          Leave without saving
        </Button>
        <ActButton permission="runs:write" look="primary" onClick={() => void saveAndLeave()}>
          Save and leave
        </ActButton>
      </div>
    </Dialog>
  );
};
