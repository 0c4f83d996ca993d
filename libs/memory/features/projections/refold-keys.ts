import type pg from 'pg';
import { notFound, type JsonObject } from '@antiphon/kernel';
import { keyHashOf } from './fact-rows.js';
import { scopedId } from './plan-batch.js';
import type { Learning, Scoped } from './plan-batch.js';
import { toSaid } from './session-memory.events.js';

const LAST_LEARNED = `select wanted.ord, max(f.position) as position
  from unnest($1::text[], $2::bytea[]) with ordinality as wanted (workspace, key_hash, ord)
  join memory_facts f on f.workspace = wanted.workspace and f.key_hash = wanted.key_hash
  group by wanted.ord`;

/** All that the sessions of these keys said, as far as each of them is projected. */
const SAID = `select s.workspace, s.session_id, s.session_key, e.position, e.event_id, e.type, e.schema_version, e.data
  from unnest($1::text[], $2::bytea[]) as wanted (workspace, key_hash)
  join memory_sessions s on s.workspace = wanted.workspace and s.key_hash = wanted.key_hash
  join events e on e.workspace = s.workspace and e.stream_id = 'session-' || s.session_id
    and e.stream_version <= s.version and e.type in ('TurnRequested', 'SessionForked')
  order by e.position`;

const ARCHIVED = `select a.stream_id
  from unnest($1::text[], $2::bytea[]) as wanted (workspace, key_hash)
  join memory_sessions s on s.workspace = wanted.workspace and s.key_hash = wanted.key_hash
  join archived_streams a on a.workspace = s.workspace and a.stream_id = 'session-' || s.session_id limit 1`;

const parameters = (keys: readonly Scoped[]): unknown[] => [
  keys.map(({ workspace }) => workspace),
  keys.map(({ id }) => keyHashOf(id)),
];

/** The keys that have learned something from a later position than what is to be learned now. */
export const readLateKeys = async (
  client: pg.ClientBase,
  keys: readonly Scoped[],
  learnings: readonly Learning[],
  keyOf: ReadonlyMap<string, Scoped>,
): Promise<readonly Scoped[]> => {
  const query = { name: 'memory_last_learned', text: LAST_LEARNED, values: parameters(keys) };
  const { rows } = await client.query<{ ord: string; position: string }>(query);
  const last = new Map(
    rows.map(({ ord, position }) => [scopedId(keys[Number(ord) - 1] as Scoped), Number(position)]),
  );
  const late = learnings.flatMap(({ session, position }) => {
    const key = keyOf.get(scopedId(session));
    return key !== undefined && position < (last.get(scopedId(key)) ?? 0) ? [scopedId(key)] : [];
  });
  return keys.filter((key) => late.includes(scopedId(key)));
};

interface SaidRow {
  readonly workspace: string;
  readonly session_id: string;
  readonly session_key: string;
  readonly position: string;
  readonly event_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
}

/** Everything that was said under these keys, in the log's order, with the key of each session. */
export const readSaid = async (
  client: pg.ClientBase,
  keys: readonly Scoped[],
): Promise<readonly (Learning & { readonly key: Scoped })[]> => {
  const [left] = (await client.query<{ stream_id: string }>(ARCHIVED, parameters(keys))).rows;
  // Folded without what has left, the keys would forget it.
  if (left)
    throw notFound('LOG.ARCHIVED', `events of ${left.stream_id} were archived; restore them to learn anew`);
  const { rows } = await client.query<SaidRow>(SAID, parameters(keys));
  return rows.map((row) => ({
    session: { workspace: row.workspace, id: row.session_id },
    key: { workspace: row.workspace, id: row.session_key },
    position: Number(row.position),
    said: toSaid({
      eventId: row.event_id,
      type: row.type,
      schemaVersion: row.schema_version,
      data: row.data,
    }),
  }));
};
