import type { LogEvent } from '@antiphon/client';
import { lazy, memo, Suspense, useRef, useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { isScrubbing, Link, setParams, usePosition } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useStore } from '../../data/store.js';
import { useMedia } from '../../data/use-media.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { countOf, formatDuration } from '../../ui/format.js';
import { Code, Json } from '../../ui/json.js';
import {
  Button,
  css as ui,
  Empty,
  Id,
  Loading,
  Panel,
  ProblemBox,
  State,
  Table,
  Time,
  numberColumn,
} from '../../ui/ui.js';
import { CutOutput } from '../workflow/cut-output.js';
import { useScrubbedRun, type Run } from './use-scrubbed-run.js';
import css from '../pages.module.css';

const RunGraph = lazy(async () => ({ default: (await import('../workflow/run-graph.js')).RunGraph }));

type Node = Run['tasks'][number];

const took = ({ startedAt, endedAt }: Node): string =>
  startedAt && endedAt ? formatDuration(new Date(endedAt).getTime() - new Date(startedAt).getTime()) : '';

const sizeOf = ({ output, outputTruncated }: Node): string =>
  `${outputTruncated ? 'over ' : ''}${countOf(output?.length ?? 0, 'character')}`;

const Output = ({ node }: { readonly node: Node }) => {
  if (node.error)
    return (
      <>
        {node.error.message} <code className={ui.mono}>{node.error.code}</code>
      </>
    );
  if (node.output === null) return <span className={ui.muted}>none yet</span>;
  return (
    <details>
      <summary>
        {node.output.slice(0, 60)}
        {node.output.length > 60 && ` … ${sizeOf(node)}`}
      </summary>
      <Code text={node.output} label={`Output of ${node.id}`} />
      {node.outputTruncated && <CutOutput sessionId={node.sessionId} />}
    </details>
  );
};

const NodeRow = memo(({ node }: { readonly node: Node }) => (
  <tr>
    <td className={css.name}>
      <Button look="quiet" onClick={() => setParams({ node: node.id })}>
        {node.id}
      </Button>
    </td>
    <td>
      <State of={node.status} />
    </td>
    <td>
      <Link to={`/agents/${encodeURIComponent(node.agent)}`}>{node.agent}</Link>
    </td>
    <td>{node.needs.join(', ') || <span className={ui.muted}>nothing</span>}</td>
    <td data-end="">{node.attempt}</td>
    <td data-end="">{took(node)}</td>
    <td>{node.sessionId && <Link to={`/sessions/${node.sessionId}`}>session</Link>}</td>
    <td>
      <Output node={node} />
    </td>
  </tr>
));
NodeRow.displayName = 'NodeRow';

/** Leads to the workflow of Temporal that drives the run, where the caller may know its address. */
const TemporalFact = ({ runId }: { readonly runId: string }) => {
  const { data } = useRead('health', {}, { hasPast: false });
  if (!data?.temporalUi) return null;
  const query = new URLSearchParams({ query: `WorkflowId="run/${runId}"` });
  return (
    <>
      <dt>Temporal</dt>
      <dd>
        <a href={`${data.temporalUi}/namespaces/antiphon/workflows?${query.toString()}`}>its workflow</a>
      </dd>
    </>
  );
};

const Facts = ({ run }: { readonly run: Run }) => (
  <dl className={ui.facts}>
    <dt>Run</dt>
    <dd>
      <Id id={run.id} isWhole />
    </dd>
    <dt>Workflow</dt>
    <dd>
      {run.workflowId === null ? (
        'from a file'
      ) : (
        <Link to={`/workflows/${run.workflowId}/edit?run=${run.id}`}>
          {run.name}, version {run.workflowVersion}
        </Link>
      )}
    </dd>
    <dt>Started</dt>
    <dd>
      <Time at={run.startedAt} isExact />
    </dd>
    {run.endedAt && (
      <>
        <dt>Ended</dt>
        <dd>
          <Time at={run.endedAt} isExact />
        </dd>
      </>
    )}
    <dt>Events</dt>
    <dd>
      <Link to={`/events?run=${run.id}`}>in the log</Link>
    </dd>
    <TemporalFact runId={run.id} />
  </dl>
);

const COLUMNS = [
  'Node',
  'State',
  'Agent',
  'Needs',
  numberColumn('Tries'),
  numberColumn('Took'),
  'Session',
  'Output',
];

/** Rows of a large run that are shown first, and that one request adds. */
const PAGE = 200;

const Nodes = ({ nodes }: { readonly nodes: readonly Node[] }) => {
  const [count, setCount] = useState(PAGE);
  const left = nodes.length - count;
  return (
    <>
      <Table label="Nodes of the run" columns={COLUMNS}>
        {nodes.slice(0, count).map((node) => (
          <NodeRow key={node.id} node={node} />
        ))}
      </Table>
      {left > 0 && (
        <p className={css.pad}>
          <Button onClick={() => setCount(count + PAGE)}>
            Show more of the {countOf(left, 'other node')}
          </Button>
        </p>
      )}
    </>
  );
};

const isOwn = ({ category }: LogEvent): boolean => category === 'run' || category === 'task';

/** Reads a run at the position of the page. While it is dragged, folds it from its history. */
const useRun = (id: string) => {
  const at = usePosition();
  const isDragged = useStore(isScrubbing);
  const { scrubbed, isBehind } = useScrubbedRun(id, isDragged);
  const read = useRead('getRun', { params: { id } }, { changesOn: isOwn, isOff: isDragged });
  const isRead = read.data !== undefined && (read.data.position ?? null) === at;
  // A folded run stays at rest until the one of its position is read.
  const isFolded = scrubbed !== null && (isDragged || (scrubbed.at === at && !isRead));
  const last = useRef<Run | undefined>(undefined);
  last.current = read.data ?? (last.current?.id === id ? last.current : undefined);
  const kept = read.data ?? (isDragged ? last.current : undefined);
  const data = isFolded ? scrubbed.run : kept;
  return { ...read, data, isOutdated: isFolded ? isBehind : !isRead };
};

const NotStarted = () => (
  <Empty title="This run had not started at this position">
    <p>Move the position bar to a later event, or go back to live.</p>
  </Empty>
);

/** The graph and the table of a run. The table is first on a narrow screen. */
const Shape = ({ run }: { readonly run: Run }) => {
  const isNarrow = useMedia('(width < 30rem)');
  const graph = (
    <div key="graph" className={css.graphPlace}>
      <Suspense fallback={<Loading what="the graph" />}>
        <RunGraph run={run} />
      </Suspense>
    </div>
  );
  const table = (
    <Panel key="table" title="Nodes">
      <Nodes nodes={run.tasks} />
    </Panel>
  );
  return isNarrow ? [table, graph] : [graph, table];
};

export const RunPage = ({ params }: PageProps) => {
  const id = params['id'] ?? '';
  const act = useAct();
  const { data: run, problem, refresh, isOutdated } = useRun(id);
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (run === null) return <NotStarted />;
  if (!run) return <Loading what="the run" />;
  const isOpen = run.status === 'running';
  const done = run.tasks.filter(({ status }) => status === 'completed').length;
  return (
    <>
      <PageHead
        title={run.name}
        tabTitle={`${run.status} · ${run.name} · Runs`}
        actions={
          isOpen && (
            <ActButton
              permission="runs:write"
              look="danger"
              icon="stop"
              isOff={act.isBusy}
              onClick={() => act.run(() => client.http.cancelRun({ params: { id } }))}
            >
              Cancel the run
            </ActButton>
          )
        }
      >
        <State of={run.status} />{' '}
        <span className={ui.muted}>{`${done} of ${run.tasks.length} nodes completed`}</span>
      </PageHead>
      {act.problem && <ProblemBox problem={act.problem} />}
      <div className={css.grid} aria-busy={isOutdated}>
        <Shape run={run} />
        <Panel
          title="This run"
          isPadded
          className={css.half}
          actions={<CopyRecord noun="run" json={`/runs/${id}`} command={`antiphon run show ${id}`} />}
        >
          <Facts run={run} />
        </Panel>
        <Panel title="Inputs" isPadded className={css.half}>
          <Json value={run.inputs} label="Inputs of the run" />
        </Panel>
      </div>
    </>
  );
};
