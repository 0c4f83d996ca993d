import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { Link, navigate } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { isAbout } from '../../data/event-pages.js';
import { client } from '../../data/gateway.js';
import { useList } from '../../data/use-list.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { formatNumber } from '../../ui/format.js';
import { ShowMore } from '../show-more.js';
import { Empty, Loading, ProblemBox, State, Table, Time, numberColumn } from '../../ui/ui.js';
import css from '../pages.module.css';

type Workflow = RouteReply<'listWorkflows'>['workflows'][number];

interface WorkflowTableProps {
  /** Returns the page that shows a started run. */
  readonly runPage: (workflowId: string, runId: string) => string;
  readonly canDelete?: boolean;
}

const stopRuns = async (workflow: string): Promise<void> => {
  const { runs } = await client.http.listRuns({ query: { workflow, status: 'running', limit: 200 } });
  await Promise.all(runs.map(({ id }) => client.http.cancelRun({ params: { id } })));
};

const Row = ({
  workflow,
  runPage,
  canDelete = false,
}: WorkflowTableProps & { readonly workflow: Workflow }) => {
  const { run, isBusy, problem } = useAct();
  const [isDeleting, setDeleting] = useState(false);
  const { id, name, status, version, nodes, updatedAt } = workflow;
  const start = async (): Promise<void> => {
    const { id: runId } = await client.http.startWorkflow({ params: { id }, body: {} });
    navigate(runPage(id, runId));
  };
  const isNotReady = status === 'draft' || status === 'validating';
  const toggle =
    status === 'running'
      ? ({ icon: 'stop', children: 'Stop', isOff: isBusy, onClick: () => run(() => stopRuns(id)) } as const)
      : ({ icon: 'play', children: 'Run', isOff: isBusy || isNotReady, onClick: () => run(start) } as const);
  return (
    <tr>
      <td>
        <Link to={`/workflows/${id}/edit`} className={css.name}>
          {name}
        </Link>
        {problem && <ProblemBox problem={problem} />}
      </td>
      <td>
        <State of={status} />
      </td>
      <td data-end="">{formatNumber(version)}</td>
      <td data-end="">{formatNumber(nodes)}</td>
      <td>
        <Time at={updatedAt} />
      </td>
      <td>
        <div className={css.tags}>
          <ActButton permission="runs:write" {...toggle} />
          {canDelete && (
            <ActButton permission="runs:write" look="quiet" icon="trash" onClick={() => setDeleting(true)}>
              Delete
            </ActButton>
          )}
        </div>
        {isDeleting && (
          <ConfirmDialog
            title={`Delete ${name}?`}
            action="Delete the workflow"
            permission="runs:write"
            onConfirm={() => client.http.deleteWorkflow({ params: { id } })}
            onClose={() => setDeleting(false)}
          >
            <p>Its runs stay readable, and its versions stay in the log.</p>
          </ConfirmDialog>
        )}
      </td>
    </tr>
  );
};

/** Saved workflows, which can be started, stopped and deleted. */
export const WorkflowTable = (props: WorkflowTableProps) => {
  const list = useList('listWorkflows', { query: { limit: 100 } }, { changesOn: isAbout('workflow', 'run') });
  const { data, problem, refresh } = list;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="workflows" />;
  if (data.workflows.length === 0)
    return (
      <Empty title="No workflow is saved">
        <p>
          A workflow is a graph of tasks for agents. Draw one, or save a file by `antiphon workflow save`.
        </p>
      </Empty>
    );
  return (
    <>
      <Table
        label="Workflows"
        columns={['Workflow', 'State', numberColumn('Version'), numberColumn('Nodes'), 'Saved', 'Actions']}
      >
        {data.workflows.map((workflow) => (
          <Row key={workflow.id} workflow={workflow} {...props} />
        ))}
      </Table>
      <ShowMore list={list} what="workflows" count={data.workflows.length} />
    </>
  );
};
