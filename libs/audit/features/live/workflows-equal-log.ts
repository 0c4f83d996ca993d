import type pg from 'pg';
import { type EventPlace, type Finding, open, violation } from '@antiphon/audit-domain';
import { TURN_ENDS } from '@antiphon/contracts/agent';
import { acrossWorkspaces } from '@antiphon/database';
import type { TemporalLink } from '@antiphon/temporal';
import { type About, nowhere } from '../audit-report.js';
import { PLACE_COLUMNS, type PlaceRow, rowToPlace } from '../read-log/read-log.js';
import type { Poll } from './poll-within.js';

export const workflowsEqualTheLog: About = {
  name: 'workflows-equal-the-log',
  about: 'Temporal waits for exactly the open items of the log, and none of its workflows is stuck',
  counts: 'workflows',
};

/** State in the log of an item for which Temporal waits. */
interface WaitingItem {
  /** Newest event of the item. */
  readonly place: EventPlace;
  /** False if the item has ended, recently or with a timer that is still running. */
  readonly isOpen: boolean;
  /**
   * For an open item: true once the reconciler has had time to start its workflow. For an ended
   * one: true while Temporal may still wait for its timer.
   */
  readonly isSettled: boolean;
}

/** Time before which the reconciler must have seen an event; $1 is its maximum delay, ms. */
const RECENT = `clock_timestamp() - make_interval(secs => $1::double precision / 1000)`;

/**
 * Joins the first later event of the stream that ends the item: by the item's id, or with its turn.
 */
const joinEnd = (id: string, ends: readonly string[], turnEnds: readonly string[]): string => {
  const list = (types: readonly string[]): string => types.map((type) => `'${type}'`).join(', ');
  return `left join lateral (select e.recorded_at from events e
    where e.workspace = at.workspace and e.stream_id = at.stream_id and e.stream_version > at.stream_version
      and (e.type in (${list(ends)}) and e.data ->> '${id}' = at.data ->> '${id}'
        or e.type in (${list(turnEnds)}) and e.data ->> 'turnId' = at.data ->> 'turnId')
    order by e.stream_version limit 1) ended on true`;
};

/** Reads the newest event of each run. The end of a run is the last event of its stream. */
const RUNS_SQL = `select 'run/' || substr(at.stream_id, 5) as id, at.*, not at.ended as open,
    not at.ended and at.recorded_at < ${RECENT} as settled
  from (select e.*, e.type in ('RunCompleted', 'RunFailed', 'RunCancelled') as ended
    from stream_heads h
    join events e on e.workspace = h.workspace and e.stream_id = h.stream_id and e.stream_version = h.version
    where h.stream_id >= 'run-' and h.stream_id < 'run.') at
  where not at.ended or at.recorded_at > ${RECENT}`;

const APPROVALS_SQL = `select 'approval/' || (at.data ->> 'approvalId') as id, at.*, ended is null as open,
    ended is null and at.recorded_at < ${RECENT} as settled
  from events at
  ${joinEnd('approvalId', ['ApprovalGranted', 'ApprovalDenied', 'ApprovalExpired', 'ApprovalVoided'], ['TurnCancelRequested', ...TURN_ENDS])}
  where at.type = 'ApprovalRequested' and (ended.recorded_at is null or ended.recorded_at > ${RECENT})`;

/**
 * Reads deferred tool calls. The workflow of an ended call waits until the next try was due, and
 * then reads that the call has ended.
 */
const TOOLS_SQL = `select 'tool/' || (at.data ->> 'callId') as id, at.*, ended is null as open,
    case when ended is null then at.recorded_at < ${RECENT}
      else (at.data ->> 'dueAt')::timestamptz > clock_timestamp() end as settled
  from events at
  ${joinEnd('callId', ['ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown'], TURN_ENDS)}
  where at.type = 'ToolCallDeferred'
    and (ended.recorded_at is null or greatest(ended.recorded_at, (at.data ->> 'dueAt')::timestamptz) > ${RECENT})`;

const COLUMNS = `id, open, settled, ${PLACE_COLUMNS}`;
const WAITING_SQL = `select ${COLUMNS} from (
    ${[RUNS_SQL, APPROVALS_SQL, TOOLS_SQL].map((sql) => `select ${COLUMNS} from (${sql}) one`).join(' union all ')}
  ) waiting order by position`;

interface WaitingRow extends PlaceRow {
  readonly id: string;
  readonly open: boolean;
  readonly settled: boolean;
}

/**
 * Reads the runs, approvals and tool calls that wait in Temporal, by workflow id. Includes items
 * that ended so recently that their workflow may still exist.
 */
const readWaitingItems = async (
  pool: pg.Pool,
  reconcileMs: number,
): Promise<ReadonlyMap<string, WaitingItem>> => {
  const { rows } = await acrossWorkspaces(pool).query<WaitingRow>(WAITING_SQL, [reconcileMs]);
  return new Map(
    rows.map((row) => [row.id, { place: rowToPlace(row), isOpen: row.open, isSettled: row.settled }]),
  );
};

/** Matches the ids of workflows that wait for an item of the log. Schedules have other ids. */
const ITEM_ID = /^(?:run|approval|tool)\//;
/**
 * Number of attempts after which a workflow task counts as stuck: its code does not fit its
 * history.
 */
const STUCK_ATTEMPTS = 4;
/** Maximum number of described workflows: each description is a request to the server. */
const MAX_DESCRIBED = 1_000;
/** Three rounds of the reconciler, of which one may fail and one may be skipped. */
const RECONCILE_MS = 180_000;

interface OpenWorkflow {
  readonly id: string;
  /** Attempt number of its current task. */
  readonly attempt: number;
  readonly startedAt: Date;
}

/** Returns the list query. Quotes are removed from the queue name, which the operator sets. */
const createQuery = (taskQueue: string | undefined): string =>
  `ExecutionStatus = 'Running'${taskQueue === undefined ? '' : ` and TaskQueue = '${taskQueue.replaceAll("'", '')}'`}`;

const listOpenWorkflows = (temporal: TemporalLink, taskQueue: string | undefined): Promise<OpenWorkflow[]> =>
  temporal.use(async ({ workflow }) => {
    const found: OpenWorkflow[] = [];
    for await (const { workflowId, runId, startTime } of workflow.list({ query: createQuery(taskQueue) })) {
      if (!ITEM_ID.test(workflowId)) continue;
      const described =
        found.length < MAX_DESCRIBED ? await workflow.getHandle(workflowId, runId).describe() : undefined;
      found.push({
        id: workflowId,
        attempt: described?.raw.pendingWorkflowTask?.attempt ?? 0,
        startedAt: startTime,
      });
    }
    return found;
  });

const readDatabaseTime = async (pool: pg.Pool): Promise<Date> =>
  (await pool.query<{ now: Date }>('select clock_timestamp() as now')).rows[0]?.now ?? new Date(0);

/**
 * Finds open items without a workflow. They are open findings until the reconciler had its time.
 */
const findMissing = (items: ReadonlyMap<string, WaitingItem>, ids: ReadonlySet<string>): Finding[] =>
  [...items]
    .filter(([id, { isOpen }]) => isOpen && !ids.has(id))
    .map(([id, { place, isSettled }]) =>
      (isSettled ? violation : open)(place, `${id} is open in the log, and Temporal has no workflow for it`),
    );

const findOrphaned = (
  items: ReadonlyMap<string, WaitingItem>,
  workflows: readonly OpenWorkflow[],
  since: Date,
): Finding[] =>
  workflows
    .filter(({ id }) => !items.get(id)?.isOpen && !items.get(id)?.isSettled)
    .map(({ id, startedAt }) => {
      const isLate = !items.has(id) && startedAt < since;
      return (isLate ? violation : open)(
        nowhere(''),
        `workflow ${id} is open, but its item in the log is not`,
      );
    });

export interface WorkflowSource {
  readonly pool: pg.Pool;
  readonly temporal: TemporalLink;
  /** Task queue of the compared workflows; default all of the namespace. */
  readonly taskQueue?: string | undefined;
  /** Time after which a difference is a violation, ms. */
  readonly reconcileMs?: number | undefined;
}

const compareOnce = async ({ pool, temporal, taskQueue, reconcileMs = RECONCILE_MS }: WorkflowSource) => {
  // Reads the log first. An item that opens after it has a workflow without an item, and the next
  // poll finds both.
  const items = await readWaitingItems(pool, reconcileMs);
  const since = new Date((await readDatabaseTime(pool)).getTime() - reconcileMs);
  const workflows = await listOpenWorkflows(temporal, taskQueue);
  const ids = new Set(workflows.map(({ id }) => id));
  const stuck = workflows
    .filter(({ attempt }) => attempt >= STUCK_ATTEMPTS)
    .map(({ id, attempt }) =>
      violation(nowhere(''), `workflow ${id} is stuck: its task has been tried ${attempt} times`),
    );
  return {
    checked: workflows.length,
    findings: [...stuck, ...findMissing(items, ids), ...findOrphaned(items, workflows, since)],
  };
};

/**
 * Compares Temporal's open workflows with the open items of the log. A difference is an open
 * finding within the reconciler's time, and a violation after it.
 */
export const compareWorkflows = (
  source: WorkflowSource,
  poll: Poll,
): Promise<{ readonly findings: readonly Finding[]; readonly checked: number }> =>
  poll(
    () => compareOnce(source),
    ({ findings }) => findings.length === 0,
  );
