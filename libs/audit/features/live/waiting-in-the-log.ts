import type pg from 'pg';
import type { EventPlace } from '@antiphon/audit-domain';
import { TURN_ENDS } from '@antiphon/contracts/agent';

/** What the log says of something that Temporal waits for. */
export interface Waiting {
  /** The newest event that says so. */
  readonly place: EventPlace;
  /** It is open; else it has ended, just now or with a timer that still runs. */
  readonly open: boolean;
  /** Open for longer than the reconciler takes to see it; or ended, and its timer is what Temporal still waits for. */
  readonly settled: boolean;
}

const COLUMNS = 'position, workspace, stream_id, stream_version, event_id';
/** $1: what the reconciler may take, in ms. */
const LATELY = `clock_timestamp() - make_interval(secs => $1::double precision / 1000)`;

/** The first event after `at` in its stream that ends what it began: by an id of its own, or with its turn. */
const endOf = (id: string, ends: readonly string[], turnEnds: readonly string[]): string => {
  const list = (types: readonly string[]): string => types.map((type) => `'${type}'`).join(', ');
  return `left join lateral (select e.recorded_at from events e
    where e.workspace = at.workspace and e.stream_id = at.stream_id and e.stream_version > at.stream_version
      and (e.type in (${list(ends)}) and e.data ->> '${id}' = at.data ->> '${id}'
        or e.type in (${list(turnEnds)}) and e.data ->> 'turnId' = at.data ->> 'turnId')
    order by e.stream_version limit 1) ended on true`;
};

/** A run has ended with one of these, and nothing follows it (`run-order`). */
const RUNS_SQL = `select 'run/' || substr(at.stream_id, 5) as id, at.*, not at.ended as open,
    not at.ended and at.recorded_at < ${LATELY} as settled
  from (select e.*, e.type in ('RunCompleted', 'RunFailed', 'RunCancelled') as ended
    from stream_heads h
    join events e on e.workspace = h.workspace and e.stream_id = h.stream_id and e.stream_version = h.version
    where h.stream_id >= 'run-' and h.stream_id < 'run.') at
  where not at.ended or at.recorded_at > ${LATELY}`;

const APPROVALS_SQL = `select 'approval/' || (at.data ->> 'approvalId') as id, at.*, ended is null as open,
    ended is null and at.recorded_at < ${LATELY} as settled
  from events at
  ${endOf('approvalId', ['ApprovalGranted', 'ApprovalDenied', 'ApprovalExpired', 'ApprovalVoided'], ['TurnCancelRequested', ...TURN_ENDS])}
  where at.type = 'ApprovalRequested' and (ended.recorded_at is null or ended.recorded_at > ${LATELY})`;

/** Whose turn was cancelled may be waited for until its next try was due: then its Temporal workflow reads that it is over. */
const TOOLS_SQL = `select 'tool/' || (at.data ->> 'callId') as id, at.*, ended is null as open,
    case when ended is null then at.recorded_at < ${LATELY}
      else (at.data ->> 'dueAt')::timestamptz > clock_timestamp() end as settled
  from events at
  ${endOf('callId', ['ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown'], TURN_ENDS)}
  where at.type = 'ToolCallDeferred'
    and (ended.recorded_at is null or greatest(ended.recorded_at, (at.data ->> 'dueAt')::timestamptz) > ${LATELY})`;

const SQL = `select id, open, settled, ${COLUMNS} from (
    ${[RUNS_SQL, APPROVALS_SQL, TOOLS_SQL].map((sql) => `select id, open, settled, ${COLUMNS} from (${sql}) one`).join(' union all ')}
  ) waiting order by position`;

interface Row {
  readonly id: string;
  readonly open: boolean;
  readonly settled: boolean;
  readonly position: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly stream_version: string;
  readonly event_id: string;
}

const placeOf = (row: Row): EventPlace => ({
  position: Number(row.position),
  workspace: row.workspace,
  streamId: row.stream_id,
  streamVersion: Number(row.stream_version),
  eventId: row.event_id,
});

/**
 * What the log says is waiting in Temporal (runs, approvals, tool calls between two tries), and what has ended so lately
 * that it may still be there; by the Temporal workflow's id.
 * @param reconcileMs how long the reconciler may take to see something, in ms
 */
export const waitingInTheLog = async (
  pool: pg.Pool,
  reconcileMs: number,
): Promise<ReadonlyMap<string, Waiting>> => {
  const { rows } = await pool.query<Row>(SQL, [reconcileMs]);
  return new Map(rows.map((row) => [row.id, { place: placeOf(row), open: row.open, settled: row.settled }]));
};
