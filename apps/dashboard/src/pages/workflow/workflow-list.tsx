import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { Link, navigate } from '../../app/router.js';
import { useAct } from '../../data/act.js';
import { isAbout } from '../../data/event-pages.js';
import { client } from '../../data/gateway.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import {
  Button,
  css as ui,
  Dialog,
  Empty,
  Loading,
  Panel,
  ProblemBox,
  State,
  Table,
  Time,
} from '../../ui/ui.js';
import css from '../pages.module.css';

type Workflow = RouteReply<'listWorkflows'>['workflows'][number];

const DeleteDialog = ({
  workflow,
  onClose,
}: {
  readonly workflow: Workflow;
  readonly onClose: () => void;
}) => {
  const { run, isBusy, problem } = useAct();
  const remove = async (): Promise<void> => {
    await client.http.deleteWorkflow({ params: { id: workflow.id } });
    onClose();
  };
  return (
    <Dialog title={`Delete ${workflow.name}?`} onClose={onClose}>
      <p>Its runs stay readable, and its versions stay in the log.</p>
      {problem && <ProblemBox problem={problem} />}
      <div className={ui.dialogFoot}>
        <Button onClick={onClose}>Keep it</Button>
        <ActButton permission="runs:write" look="danger" isOff={isBusy} onClick={() => run(remove)}>
          Delete the workflow
        </ActButton>
      </div>
    </Dialog>
  );
};

const Row = ({ workflow }: { readonly workflow: Workflow }) => {
  const { run, isBusy, problem } = useAct();
  const [isDeleting, setDeleting] = useState(false);
  const { id, name, status, version, nodes, updatedAt } = workflow;
  const start = async (): Promise<void> => {
    const { id: runId } = await client.http.startWorkflow({ params: { id }, body: {} });
    navigate(`/workflows/${id}/edit?run=${runId}`);
  };
  const stop = async (): Promise<void> => {
    const query = { workflow: id, status: 'running', limit: 200 } as const;
    const { runs } = await client.http.listRuns({ query });
    await Promise.all(runs.map((open) => client.http.cancelRun({ params: { id: open.id } })));
  };
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
      <td data-end="">{version}</td>
      <td data-end="">{nodes}</td>
      <td>
        <Time at={updatedAt} />
      </td>
      <td>
        <div className={css.tags}>
          {status === 'running' ? (
            <ActButton permission="runs:write" icon="stop" isOff={isBusy} onClick={() => run(stop)}>
              Stop
            </ActButton>
          ) : (
            <ActButton
              permission="runs:write"
              icon="play"
              isOff={isBusy || status === 'draft' || status === 'validating'}
              onClick={() => run(start)}
            >
              Run
            </ActButton>
          )}
          <ActButton permission="runs:write" look="quiet" icon="trash" onClick={() => setDeleting(true)}>
            Delete
          </ActButton>
        </div>
        {isDeleting && <DeleteDialog workflow={workflow} onClose={() => setDeleting(false)} />}
      </td>
    </tr>
  );
};

export const WorkflowList = () => {
  const { data, problem, refresh } = useRead(
    'listWorkflows',
    { query: { limit: 200 } },
    { changesOn: isAbout('workflow', 'run') },
  );
  const number = (name: string) => ({ name, isNumber: true });
  return (
    <>
      <PageHead
        title="Workflows"
        question="Which graphs of tasks are there, and will they run?"
        actions={
          <Link to="/workflows/new" className={`${ui.button} ${ui.primary}`}>
            Draw a workflow
          </Link>
        }
      />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <Panel title={data ? `${data.workflows.length} workflows` : 'Workflows'}>
        {!data && !problem && <Loading what="workflows" />}
        {data?.workflows.length === 0 && (
          <Empty title="No workflow is saved">
            <p>
              A workflow is a graph of tasks for agents. Draw one, or save a file by `antiphon workflow save`.
            </p>
          </Empty>
        )}
        {data && data.workflows.length > 0 && (
          <Table
            label="Workflows"
            columns={['Workflow', 'State', number('Version'), number('Nodes'), 'Saved', 'Actions']}
          >
            {data.workflows.map((workflow) => (
              <Row key={workflow.id} workflow={workflow} />
            ))}
          </Table>
        )}
      </Panel>
    </>
  );
};
