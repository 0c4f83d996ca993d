import { Controller, Inject } from '@nestjs/common';
import type { EventsQuery } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import { decodeCursor, encodeCursor, epochOfCursor } from '@antiphon/contracts/log';
import { GATEWAY_ROUTES, type EventView, type RouteInput } from '@antiphon/contracts/reference';
import { TYPES_BY_SEVERITY, severityOf } from '@antiphon/gateway-domain';
import { inWorkspace } from '@antiphon/database';
import { conflict, invalid } from '@antiphon/kernel';
import { DATABASE_POOL } from '@antiphon/service-host';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import { HandleRoute } from './handle-route.js';

type LoggedEvent = z.output<typeof EventView>;

export interface EventPage {
  readonly events: LoggedEvent[];
  /** Cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
}

interface Row {
  position: string;
  category: string;
  stream_id: string;
  stream_version: string;
  event_id: string;
  type: string;
  schema_version: number;
  data: LoggedEvent['data'];
  metadata: LoggedEvent['metadata'];
  recorded_at: Date;
  hash: Buffer;
}

/** Collects the conditions of a statement. Every value is a bound parameter. */
const createFilter = () => {
  const conditions: string[] = [];
  const values: unknown[] = [];
  return {
    conditions,
    values,
    add: (condition: (parameter: string) => string, value: unknown) => {
      values.push(value);
      conditions.push(condition(`$${values.length}`));
    },
  };
};
type Filter = ReturnType<typeof createFilter>;

const addSeverity = ({ add }: Filter, severity: EventsQuery['severity']): void => {
  const { error, warning } = TYPES_BY_SEVERITY;
  if (severity === 'info') add((p) => `type <> all(${p})`, [...error, ...warning]);
  else if (severity !== undefined) add((p) => `type = any(${p})`, [...TYPES_BY_SEVERITY[severity]]);
};

const decodePosition = (cursor: string): number => {
  const position = decodeCursor(cursor);
  if (position === undefined)
    throw invalid('GATEWAY.INVALID_CURSOR', 'this cursor was not issued by this list: begin without one');
  return position;
};

// Only the first event of a session names its agent. A run names the agent of each task that
// starts. The function uses the index of each, and reads only the workspace of the query.
const streamsOfAgent = (p: string) => `stream_id in (select antiphon_streams_of_agent(${p}))`;

const filterOf = (workspace: string, query: EventsQuery): Filter => {
  const filter = createFilter();
  const { add } = filter;
  add((p) => `workspace = ${p}`, workspace);
  if (query.type !== undefined) add((p) => `type = ${p}`, query.type);
  if (query.stream !== undefined) add((p) => `stream_id = ${p}`, query.stream);
  if (query.agent !== undefined) add(streamsOfAgent, query.agent);
  if (query.since !== undefined) add((p) => `recorded_at >= ${p}`, query.since);
  if (query.until !== undefined) add((p) => `recorded_at < ${p}`, query.until);
  if (query.cursor !== undefined) add((p) => `position > ${p}`, decodePosition(query.cursor));
  addSeverity(filter, query.severity);
  return filter;
};

const toView = (row: Row): LoggedEvent => ({
  position: Number(row.position),
  category: row.category,
  streamId: row.stream_id,
  streamVersion: Number(row.stream_version),
  eventId: row.event_id,
  type: row.type,
  schemaVersion: row.schema_version,
  severity: severityOf(row.type),
  data: row.data,
  metadata: row.metadata,
  recordedAt: row.recorded_at.toISOString(),
  hash: row.hash.toString('hex'),
});

/** Returns the statement of a page, with one row more to detect a next page. */
export const eventPageSql = (workspace: string, query: EventsQuery): { text: string; values: unknown[] } => {
  const { conditions, values } = filterOf(workspace, query);
  return {
    text: `select position, category, stream_id, stream_version, event_id, type, schema_version, data, metadata, recorded_at, hash
       from events where ${conditions.join(' and ')}
      order by position limit $${values.length + 1} offset $${values.length + 2}`,
    values: [...values, query.limit + 1, query.offset ?? 0],
  };
};

/**
 * Throws if the log was restored since the cursor was issued: the same position is then another
 * event.
 */
const checkEpoch = (cursor: string | undefined, epoch: number): void => {
  const given = cursor === undefined ? undefined : epochOfCursor(cursor);
  if (given === undefined || given === epoch) return;
  const message = `the log was restored since this cursor was issued (epoch ${given}, now ${epoch}): begin without one`;
  throw conflict('GATEWAY.EPOCH_CHANGED', message, { data: { given, epoch } });
};

/**
 * Returns a page of a workspace's log, oldest first. Throws `GATEWAY.INVALID_CURSOR`,
 * `GATEWAY.EPOCH_CHANGED`.
 */
export const readEventPage = async (
  pool: Pool,
  workspace: string,
  query: EventsQuery,
): Promise<EventPage> => {
  const { text, values } = eventPageSql(workspace, query);
  const heads = await pool.query<{ epoch: string }>('select epoch from log_head where id = 1');
  const epoch = Number(heads.rows[0]?.epoch ?? 1);
  checkEpoch(query.cursor, epoch);
  const { rows } = await inWorkspace(pool, workspace).query<Row>(text, values);
  const page = rows.slice(0, query.limit);
  const last = page.at(-1);
  return {
    events: page.map(toView),
    nextCursor: rows.length > query.limit && last ? encodeCursor(Number(last.position), epoch) : null,
  };
};

/** Serves the event log of the caller's workspace. */
@Controller()
export class EventsController {
  constructor(@Inject(DATABASE_POOL) private readonly pool: Pool) {}

  @HandleRoute(GATEWAY_ROUTES.readEvents)
  read(
    { query }: RouteInput<typeof GATEWAY_ROUTES.readEvents>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<EventPage> {
    return readEventPage(this.pool, workspace, query);
  }
}
