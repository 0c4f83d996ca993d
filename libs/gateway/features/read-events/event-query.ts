import type { EventsQuery } from '@antiphon/contracts/gateway';
import { decodeCursor, encodeCursor, epochOfCursor } from '@antiphon/contracts/log';
import { TYPES_BY_SEVERITY, severityOf } from '@antiphon/gateway-domain';
import { conflict, invalid, type JsonValue } from '@antiphon/kernel';
import type { Pool } from 'pg';

export interface EventPage {
  readonly events: readonly JsonValue[];
  /** Pass it as `cursor` for the next page; null when this page was the last. */
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
  data: JsonValue;
  metadata: JsonValue;
  recorded_at: Date;
  hash: Buffer;
}

/** Collects conditions; every value is a bound parameter, never text within the statement. */
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

const positionOf = (cursor: string): number => {
  const position = decodeCursor(cursor);
  if (position === undefined)
    throw invalid('GATEWAY.INVALID_CURSOR', 'this cursor is not one that a list answered');
  return position;
};

// The session of an agent is known from its first event; its later events do not repeat the agent.
const OF_AGENT = (p: string) =>
  `stream_id in (select s.stream_id from events s where s.workspace = $1 and s.type = 'SessionStarted' and s.data->>'agentId' = ${p})`;

const filterOf = (workspace: string, query: EventsQuery): Filter => {
  const filter = createFilter();
  const { add } = filter;
  add((p) => `workspace = ${p}`, workspace);
  if (query.type !== undefined) add((p) => `type = ${p}`, query.type);
  if (query.stream !== undefined) add((p) => `stream_id = ${p}`, query.stream);
  if (query.agent !== undefined) add(OF_AGENT, query.agent);
  if (query.since !== undefined) add((p) => `recorded_at >= ${p}`, query.since);
  if (query.until !== undefined) add((p) => `recorded_at < ${p}`, query.until);
  if (query.cursor !== undefined) add((p) => `position > ${p}`, positionOf(query.cursor));
  addSeverity(filter, query.severity);
  return filter;
};

const toEvent = (row: Row): JsonValue => ({
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

/** The statement of a page, and one row more to tell whether there is another. */
export const eventPageSql = (workspace: string, query: EventsQuery): { text: string; values: unknown[] } => {
  const { conditions, values } = filterOf(workspace, query);
  return {
    text: `select position, category, stream_id, stream_version, event_id, type, schema_version, data, metadata, recorded_at, hash
       from events where ${conditions.join(' and ')}
      order by position limit $${values.length + 1} offset $${values.length + 2}`,
    values: [...values, query.limit + 1, query.offset ?? 0],
  };
};

/** After a restore the same position is another event. */
const checkEpoch = (cursor: string | undefined, epoch: number): void => {
  const given = cursor === undefined ? undefined : epochOfCursor(cursor);
  if (given === undefined || given === epoch) return;
  const message = `the log was restored since this cursor was given (epoch ${given}, now ${epoch}): begin without one`;
  throw conflict('GATEWAY.EPOCH_CHANGED', message, { data: { given, epoch } });
};

/** A page of a workspace's log, oldest first. Throws `GATEWAY.INVALID_CURSOR`, `GATEWAY.EPOCH_CHANGED`. */
export const readEventPage = async (
  pool: Pool,
  workspace: string,
  query: EventsQuery,
): Promise<EventPage> => {
  const { text, values } = eventPageSql(workspace, query);
  const heads = await pool.query<{ epoch: string }>('select epoch from log_head where id = 1');
  const epoch = Number(heads.rows[0]?.epoch ?? 1);
  checkEpoch(query.cursor, epoch);
  const { rows } = await pool.query<Row>(text, values);
  const page = rows.slice(0, query.limit);
  const last = page.at(-1);
  return {
    events: page.map(toEvent),
    nextCursor: rows.length > query.limit && last ? encodeCursor(Number(last.position), epoch) : null,
  };
};
