import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../../app/page-head.js';
import { Link, navigate, setParams, useParam } from '../../app/router.js';
import { useAct } from '../../data/act.js';
import { isAbout } from '../../data/event-pages.js';
import { client } from '../../data/gateway.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { formatDuration, formatNumber } from '../../ui/format.js';
import { css as ui, Empty, Id, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import css from '../pages.module.css';

type Run = RouteReply<'listRuns'>['runs'][number];
type Workflow = RouteReply<'listWorkflows'>['workflows'][number];

const STATES = ['running', 'cancelling', 'completed', 'failed', 'cancelled'] as const;

const durationOf = ({ startedAt, endedAt }: Run): string =>
  endedAt === null ? '' : formatDuration(new Date(endedAt).getTime() - new Date(startedAt).getTime());

const RunRow = ({ run }: { readonly run: Run }) => (
  <tr>
    <td>
      <Link to={`/runs/${run.id}`} className={css.name}>
        {run.name}
      </Link>{' '}
      <Id id={run.id} />
    </td>
    <td>
      <State of={run.status} />
    </td>
    <td>
      <Time at={run.startedAt} />
    </td>
    <td data-end="">{durationOf(run)}</td>
  </tr>
);

const WorkflowRow = ({ workflow }: { readonly workflow: Workflow }) => {
  const { run, isBusy, problem } = useAct();
  const { id, name, status, version, nodes, updatedAt } = workflow;
  const start = async (): Promise<void> => {
    const { id: runId } = await client.http.startWorkflow({ params: { id }, body: {} });
    navigate(`/runs/${runId}`);
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
      <td data-end="">{formatNumber(version)}</td>
      <td data-end="">{formatNumber(nodes)}</td>
      <td>
        <Time at={updatedAt} />
      </td>
      <td data-end="">
        <ActButton
          permission="runs:write"
          icon="play"
          isOff={isBusy || status === 'draft'}
          onClick={() => run(start)}
        >
          Run
        </ActButton>
      </td>
    </tr>
  );
};

const Workflows = () => {
  const { data, problem, refresh } = useRead(
    'listWorkflows',
    { query: { limit: 100 } },
    { changesOn: isAbout('workflow', 'run') },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="workflows" />;
  if (data.workflows.length === 0)
    return (
      <Empty title="No workflow is saved">
        <p>
          A workflow is a graph of tasks for agents. Draw one, or save a file by `antiphon workflow save`.
        </p>
        <Link to="/workflows/new">Draw a workflow</Link>
      </Empty>
    );
  const number = (name: string) => ({ name, isNumber: true });
  return (
    <Table
      label="Workflows"
      columns={['Workflow', 'State', number('Version'), number('Nodes'), 'Saved', number('Start')]}
    >
      {data.workflows.map((workflow) => (
        <WorkflowRow key={workflow.id} workflow={workflow} />
      ))}
    </Table>
  );
};

const Runs = () => {
  const wanted = useParam('status');
  const status = STATES.find((name) => name === wanted);
  const { data, problem, refresh } = useRead(
    'listRuns',
    { query: { limit: 100, ...(status ? { status } : {}) } },
    { changesOn: isAbout('run') },
  );
  return (
    <Panel
      title="Runs, newest first"
      actions={
        <label className={ui.muted}>
          <span className="visually-hidden">State of the runs</span>
          <select
            className={ui.input}
            value={status ?? ''}
            onChange={(event) => setParams({ status: event.target.value })}
          >
            <option value="">every state</option>
            {STATES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      }
    >
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="runs" />}
      {data?.runs.length === 0 && <Empty title="No run yet">Start a workflow above.</Empty>}
      {data && data.runs.length > 0 && (
        <Table label="Runs" columns={['Run', 'State', 'Started', { name: 'Took', isNumber: true }]}>
          {data.runs.map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </Table>
      )}
    </Panel>
  );
};

export const RunList = () => (
  <>
    <PageHead
      title="Runs"
      question="Which workflows are there, and how did their runs go?"
      actions={
        <Link to="/workflows/new" className={`${ui.button} ${ui.primary}`}>
          Draw a workflow
        </Link>
      }
    />
    <div className={css.stack}>
      <Panel title="Workflows">
        <Workflows />
      </Panel>
      <Runs />
    </div>
  </>
);
