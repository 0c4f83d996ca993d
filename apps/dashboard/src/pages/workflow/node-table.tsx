import { Button, css as ui, Empty, IconButton, Panel, State, Table } from '../../ui/ui.js';
import type { WorkflowNode } from './definition.js';
import type { RunRead } from './editor-page.js';
import type { EditorModel } from './use-editor.js';
import css from './workflow.module.css';

interface NodeTableProps {
  readonly model: EditorModel;
  readonly run: RunRead;
  readonly isOff: boolean;
}

const Row = ({ node, model, run, isOff }: NodeTableProps & { readonly node: WorkflowNode }) => {
  const task = run?.tasks.find(({ id }) => id === node.id);
  const problem = model.problems.get(node.id)?.[0];
  const isCurrent = model.current === node.id;
  return (
    <tr aria-selected={isCurrent} className={isCurrent ? css.currentRow : undefined}>
      <td>
        <Button look="quiet" onClick={() => model.select(node.id)}>
          {node.id}
        </Button>
      </td>
      <td>{model.agents?.get(node.agent)?.name ?? node.agent}</td>
      <td>{node.needs.join(', ') || <span className={ui.muted}>nothing</span>}</td>
      <td>
        {task ? (
          <State of={task.status} />
        ) : problem ? (
          <>
            <State of="invalid">problem</State> {problem}
          </>
        ) : (
          <State of="ok" />
        )}
      </td>
      <td className={css.promptCell}>{node.prompt}</td>
      <td data-end="">
        <IconButton
          icon="trash"
          label={`Delete ${node.id}`}
          disabled={isOff}
          onClick={() => model.removeNode(node.id)}
        />
      </td>
    </tr>
  );
};

/** The same graph as rows, with the same actions. */
export const NodeTable = (props: NodeTableProps) => {
  const { nodes } = props.model.definition;
  return (
    <Panel title={`${nodes.length} nodes`}>
      {nodes.length === 0 ? (
        <Empty title="No node yet">
          <p>Add one by the button above.</p>
        </Empty>
      ) : (
        <Table
          label="Nodes of the workflow"
          columns={[
            'Node',
            'Agent',
            'Needs',
            props.run ? 'State' : 'Check',
            'Prompt',
            { name: 'Delete', isNumber: true },
          ]}
        >
          {nodes.map((node) => (
            <Row key={node.id} node={node} {...props} />
          ))}
        </Table>
      )}
    </Panel>
  );
};
