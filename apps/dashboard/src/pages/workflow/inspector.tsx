import { useEffect, useRef, useState, type FocusEvent } from 'react';
import { Button, css as ui, Field, IconButton, Panel } from '../../ui/ui.js';
import { changeNode, NAME, refuseEdge, type WorkflowNode } from './definition.js';
import type { RunRead } from './editor-page.js';
import { CopyTask, RunResult } from './run-result.js';
import type { EditorModel } from './use-editor.js';
import { WorkflowFields } from './workflow-fields.js';
import css from './workflow.module.css';

interface PartProps {
  readonly model: EditorModel;
  readonly isOff: boolean;
}
interface NodeProps extends PartProps {
  readonly node: WorkflowNode;
}

/** Name of a node. It changes once it is valid and free, so that every node has its own. */
const NameField = ({ model, node, isOff }: NodeProps) => {
  const [text, setText] = useState(node.id);
  useEffect(() => setText(node.id), [node.id]);
  const isTaken = text !== node.id && model.definition.nodes.some(({ id }) => id === text);
  const problem = isTaken
    ? 'Another node has this name'
    : NAME.test(text)
      ? undefined
      : 'Letters, digits, _ and -, a letter first';
  const commit = (): void => {
    if (problem !== undefined) return setText(node.id);
    if (text !== node.id) model.rename(node.id, text);
  };
  return (
    <Field label="Name" {...(problem ? { hint: problem } : {})}>
      {(props) => (
        <input
          {...props}
          value={text}
          disabled={isOff}
          aria-invalid={problem !== undefined}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setText(event.target.value)}
          onBlur={commit}
          onKeyDown={(event) => event.key === 'Enter' && commit()}
        />
      )}
    </Field>
  );
};

const AgentField = ({ model, node, isOff }: NodeProps) => {
  const { agents, definition, change } = model;
  const known = [...(agents?.values() ?? [])];
  const agent = agents?.get(node.agent);
  const names = [...(agent?.capabilities ?? []), ...(agent?.tools ?? [])];
  return (
    <>
      <Field label="Agent">
        {(props) => (
          <select
            {...props}
            value={node.agent}
            disabled={isOff}
            onChange={(event) => change(changeNode(definition, node.id, { agent: event.target.value }))}
          >
            {!agent && <option value={node.agent}>{node.agent || 'choose one'}</option>}
            {known.map(({ id, name, model: llm }) => (
              <option key={id} value={id}>{`${name} (${llm})`}</option>
            ))}
          </select>
        )}
      </Field>
      {names.length > 0 && (
        <p className={css.allTags} aria-label="Capabilities and tools">
          {names.map((name) => (
            <span key={name} className={css.tag}>
              {name}
            </span>
          ))}
        </p>
      )}
    </>
  );
};

const Needs = ({ model, node, isOff }: NodeProps) => {
  const { definition, change, actions } = model;
  const others = definition.nodes.filter(({ id }) => id !== node.id);
  if (others.length === 0) return null;
  const drop = (need: string): void =>
    change(changeNode(definition, node.id, { needs: node.needs.filter((id) => id !== need) }));
  const free = others.filter(({ id }) => refuseEdge(definition.nodes, id, node.id) === null);
  return (
    <div className={ui.field}>
      <span>Needs</span>
      <ul className={css.needs}>
        {node.needs.map((need) => (
          <li key={need}>
            <span>{need}</span>
            <IconButton
              icon="close"
              label={`No longer need ${need}`}
              disabled={isOff}
              onClick={() => drop(need)}
            />
          </li>
        ))}
        {node.needs.length === 0 && <li className={ui.muted}>nothing: it starts at once</li>}
      </ul>
      {free.length > 0 && (
        <select
          className={ui.input}
          aria-label="Add a node that it needs"
          value=""
          disabled={isOff}
          onChange={(event) => actions.connect(event.target.value, node.id)}
        >
          <option value="">add one …</option>
          {free.map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      )}
    </div>
  );
};

const NodeFields = ({ model, node, isOff }: NodeProps) => {
  const { definition, change } = model;
  return (
    <>
      <NameField model={model} node={node} isOff={isOff} />
      <AgentField model={model} node={node} isOff={isOff} />
      <Field label="Prompt" hint="{{inputs.NAME}} and {{nodes.NAME.output}} are replaced.">
        {(props) => (
          <textarea
            {...props}
            rows={6}
            value={node.prompt}
            disabled={isOff}
            onChange={(event) =>
              change(changeNode(definition, node.id, { prompt: event.target.value }), `prompt ${node.id}`)
            }
          />
        )}
      </Field>
      <Needs model={model} node={node} isOff={isOff} />
      <Field label="Turns at most" hint="Only a transient failure is tried again.">
        {(props) => (
          <input
            {...props}
            type="number"
            min={1}
            max={10}
            value={node.attempts}
            disabled={isOff}
            onChange={(event) => {
              const attempts = Math.round(Number(event.target.value));
              if (attempts >= 1 && attempts <= 10)
                change(changeNode(definition, node.id, { attempts }), `attempts ${node.id}`);
            }}
          />
        )}
      </Field>
      <Button look="danger" icon="trash" disabled={isOff} onClick={model.actions.remove}>
        Delete the node
      </Button>
    </>
  );
};

const ProblemList = ({ problems }: { readonly problems: readonly string[] }) =>
  problems.length === 0 ? null : (
    <ul className={css.problems} aria-label="Problems">
      {problems.map((problem) => (
        <li key={problem}>{problem}</li>
      ))}
    </ul>
  );

/**
 * Moves the focus into the fields after a request, once they are in the page. Fields of another node
 * replace them as it becomes current: the focus then goes to the new ones.
 */
const useFieldFocus = (requests: number, nodeId: string) => {
  const fields = useRef<HTMLElement>(null);
  const isEditing = useRef(false);
  const focus = (): void => fields.current?.querySelector<HTMLElement>('input')?.focus();
  useEffect(() => {
    if (requests === 0) return;
    isEditing.current = true;
    focus();
  }, [requests]);
  useEffect(() => {
    if (isEditing.current && document.activeElement === document.body) focus();
  }, [nodeId]);
  const onBlur = ({ relatedTarget }: FocusEvent<HTMLElement>): void => {
    if (relatedTarget && !fields.current?.contains(relatedTarget)) isEditing.current = false;
  };
  return { ref: fields, onBlur };
};

/** Shows and changes the current node, or the workflow itself. */
export const Inspector = ({ model, run, isOff }: PartProps & { readonly run: RunRead }) => {
  const node = model.definition.nodes.find(({ id }) => id === model.current);
  const task = run?.tasks.find(({ id }) => id === model.current);
  const fieldFocus = useFieldFocus(model.editRequests, model.current);
  return (
    <aside className={css.inspector} aria-label="Properties" {...fieldFocus}>
      {run && task && (
        <Panel title={`Result of ${task.id}`} isPadded actions={<CopyTask runId={run.id} task={task} />}>
          <RunResult task={task} />
        </Panel>
      )}
      <Panel title={node ? `Node ${node.id}` : 'Workflow'} isPadded>
        <div className={css.form}>
          <ProblemList problems={model.problems.get(node?.id ?? '') ?? []} />
          {node ? (
            <NodeFields key={node.id} model={model} node={node} isOff={isOff} />
          ) : (
            <WorkflowFields model={model} isOff={isOff} />
          )}
        </div>
      </Panel>
    </aside>
  );
};
