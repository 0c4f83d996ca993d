import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../../app/page-head.js';
import { Link, setFilters, useParam } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useList } from '../../data/use-list.js';
import { formatDuration } from '../../ui/format.js';
import { ShowMore } from '../show-more.js';
import { css as ui, Empty, Id, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import { WorkflowTable } from '../workflow/workflow-table.js';
import css from '../pages.module.css';

type Run = RouteReply<'listRuns'>['runs'][number];

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

const Runs = () => {
  const wanted = useParam('status');
  const status = STATES.find((name) => name === wanted);
  const list = useList(
    'listRuns',
    { query: { limit: 100, ...(status ? { status } : {}) } },
    { changesOn: isAbout('run') },
  );
  const { data, problem, refresh } = list;
  return (
    <Panel
      title="Runs, newest first"
      actions={
        <label className={ui.muted}>
          <span className="visually-hidden">State of the runs</span>
          <select
            className={ui.input}
            value={status ?? ''}
            onChange={(event) => setFilters({ status: event.target.value })}
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
      {data?.runs.length === 0 && (
        <Empty title={status ? `No run is ${status}` : 'No run yet'}>
          <p>{status ? 'Choose another state.' : 'Start a workflow below.'}</p>
        </Empty>
      )}
      {data && data.runs.length > 0 && (
        <Table label="Runs" columns={['Run', 'State', 'Started', { name: 'Took', isNumber: true }]}>
          {data.runs.map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </Table>
      )}
      <ShowMore list={list} what="runs" count={data?.runs.length ?? 0} />
    </Panel>
  );
};

export const RunList = () => (
  <>
    <PageHead
      title="Runs"
      question="Which runs are in progress, which failed, and how long did they take?"
      actions={
        <Link to="/workflows/new" className={`${ui.button} ${ui.primary}`}>
          Draw a workflow
        </Link>
      }
    />
    <div className={css.stack}>
      <Runs />
      <Panel title="Workflows">
        <WorkflowTable runPage={(_id, runId) => `/runs/${runId}`} />
      </Panel>
    </div>
  </>
);
