import { MAX_COUNTED_EVENTS } from '@antiphon/contracts/agent';
import { translateDatabaseError, type WorkspaceQueries } from '@antiphon/database';

const DAY_MS = 86_400_000;

/** Time of the newest event of the workspace up to a position. */
const TIME_SQL = `select recorded_at from events where workspace = $1 and position <= $2
  order by position desc limit 1`;

/**
 * Reads the newest calls and outcomes of a day by the index of their types, which ends the scan at
 * the limit. A call counts where its request is in the day.
 */
const CALLS_SQL = `with recent as materialized (
    select type, data ->> 'callId' as call_id, data ->> 'name' as name, data ->> 'isError' as is_error, recorded_at
    from events where workspace = $1
      and type in ('ToolCallRequested', 'ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown')
      and recorded_at > $2 and recorded_at <= $3 and position <= $4
    order by recorded_at desc limit ${MAX_COUNTED_EVENTS}),
  failed as (select distinct call_id from recent
    where type in ('ToolCallFailed', 'ToolCallUnknown') or is_error = 'true')
  select r.name, count(distinct r.call_id)::int as count,
    count(distinct f.call_id)::int as failures, max(r.recorded_at) as last_at,
    (select count(*) from recent)::int as events
  from recent r left join failed f on f.call_id = r.call_id
  where r.type = 'ToolCallRequested' group by r.name`;

interface Row {
  readonly name: string;
  readonly count: number;
  readonly failures: number;
  readonly last_at: Date;
  readonly events: number;
}

/** Calls of one tool. */
export interface ToolCalls {
  readonly count: number;
  readonly failures: number;
  readonly lastAt: string | null;
}

/** Calls of all tools of a workspace in the 24 hours before a moment. */
export interface CallsOfDay {
  readonly since: string;
  readonly isPartial: boolean;
  of(tool: string): ToolCalls;
}

const NO_CALLS: ToolCalls = { count: 0, failures: 0, lastAt: null };

/** Counts the calls of tools in the 24 hours before now, or before the event of a position. */
export const countToolCalls = async (
  db: WorkspaceQueries,
  workspace: string,
  { now, at }: { readonly now: number; readonly at: number | undefined },
): Promise<CallsOfDay> => {
  const fail = (error: unknown): never => {
    throw translateDatabaseError(error);
  };
  const newest =
    at === undefined
      ? undefined
      : (await db.query<{ recorded_at: Date }>(TIME_SQL, [workspace, at]).catch(fail)).rows[0]?.recorded_at;
  const since = new Date((newest?.getTime() ?? now) - DAY_MS);
  // The clock of the database may be ahead of this one.
  const until = newest ?? 'infinity';
  const values = [workspace, since, until, at ?? Number.MAX_SAFE_INTEGER];
  const { rows } = await db.query<Row>(CALLS_SQL, values).catch(fail);
  const byTool = new Map(rows.map((row) => [row.name, row]));
  return {
    since: since.toISOString(),
    isPartial: (rows[0]?.events ?? 0) >= MAX_COUNTED_EVENTS,
    of: (tool) => {
      const row = byTool.get(tool);
      return row ? { count: row.count, failures: row.failures, lastAt: row.last_at.toISOString() } : NO_CALLS;
    },
  };
};
