import type pg from 'pg';
import { notFound, type JsonObject } from '@antiphon/kernel';
import { foldLearnings, planBatch, scopedId } from './plan-batch.js';
import type { FactChanges, Learning, Scoped } from './plan-batch.js';
import { PROJECTION_NAME, keyHashOf, toSaid } from './session-memory.events.js';
import type { ProjectionDefinition, RecordedEvent } from '@antiphon/event-store';
import { deleteFacts, readActive, readKeys, writeFacts, writeSessions } from './memory-rows.js';

const LAST_LEARNED = `select wanted.ord, max(f.position) as position
  from unnest($1::text[], $2::bytea[]) with ordinality as wanted (workspace, key_hash, ord)
  join memory_facts f on f.workspace = wanted.workspace and f.key_hash = wanted.key_hash
  group by wanted.ord`;

/**
 * Sessions of keys with their streams. The subquery computes the stream's id: behind a policy, an
 * index look-up may not compute anything.
 */
const SESSIONS_OF_KEYS = `(select s.*, 'session-' || s.session_id as stream_id
    from unnest($1::text[], $2::bytea[]) as wanted (workspace, key_hash)
    join memory_sessions s on s.workspace = wanted.workspace and s.key_hash = wanted.key_hash offset 0)`;

/** Reads the messages of these keys' sessions, each session up to its projected version. */
const SAID = `select s.workspace, s.session_id, s.session_key, e.position, e.event_id, e.type, e.schema_version, e.data
  from ${SESSIONS_OF_KEYS} s
  join events e on e.workspace = s.workspace and e.stream_id = s.stream_id
    and e.stream_version <= s.version and e.type in ('TurnRequested', 'SessionForked')
  order by e.position`;

const ARCHIVED = `select a.stream_id
  from ${SESSIONS_OF_KEYS} s
  join archived_streams a on a.workspace = s.workspace and a.stream_id = s.stream_id limit 1`;

const parameters = (keys: readonly Scoped[]): unknown[] => [
  keys.map(({ workspace }) => workspace),
  keys.map(({ id }) => keyHashOf(id)),
];

/** Returns the keys that have facts of a later position than the messages to learn now. */
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

/** Reads all messages under these keys, in the log's order, with the key of each session. */
export const readSaid = async (
  client: pg.ClientBase,
  keys: readonly Scoped[],
): Promise<readonly (Learning & { readonly key: Scoped })[]> => {
  const [archived] = (await client.query<{ stream_id: string }>(ARCHIVED, parameters(keys))).rows;
  // A fold without the archived events would lose their facts.
  if (archived)
    throw notFound(
      'LOG.ARCHIVED',
      `events of ${archived.stream_id} were archived; restore them to learn from them again`,
    );
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

const distinct = (all: Iterable<Scoped>): readonly Scoped[] => [
  ...new Map([...all].map((one) => [scopedId(one), one])).values(),
];

type KeyOf = ReadonlyMap<string, Scoped>;

/**
 * Folds the keys again from the log: an event of a parked stream comes late, and facts follow the
 * log's order.
 */
const refold = async (client: pg.ClientBase, late: readonly Scoped[], keyOf: KeyOf): Promise<FactChanges> => {
  const said = await readSaid(client, late);
  await deleteFacts(client, late);
  const sessions = said.map(({ session, key }) => [scopedId(session), key] as const);
  return foldLearnings(said, new Map([...keyOf, ...sessions]), new Map());
};

const learn = async (client: pg.ClientBase, learnings: readonly Learning[]): Promise<void> => {
  const keyOf = await readKeys(client, distinct(learnings.map(({ session }) => session)));
  const keys = distinct(keyOf.values());
  const late = await readLateKeys(client, keys, learnings, keyOf);
  if (late.length > 0) await writeFacts(client, await refold(client, late, keyOf));
  const lateIds = new Set(late.map(scopedId));
  const isLate = (key: Scoped | undefined): boolean => key !== undefined && lateIds.has(scopedId(key));
  const timely = learnings.filter(({ session }) => !isLate(keyOf.get(scopedId(session))));
  const active = await readActive(
    client,
    keys.filter((key) => !isLate(key)),
  );
  await writeFacts(client, foldLearnings(timely, keyOf, active));
};

/**
 * Applies a batch of the log to memory's rows, in the caller's transaction, which also moves the
 * checkpoint. Events arrive in order of position and once each, except those of a parked stream.
 */
export const applySessionEvents = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const plan = planBatch(events);
  await writeSessions(client, plan);
  if (plan.learnings.length > 0) await learn(client, plan.learnings);
};

/** Projection of sessions and facts, for contexts and recall. */
export const memoryFacts: ProjectionDefinition = {
  name: PROJECTION_NAME,
  service: 'memory',
  categories: ['session'],
  tables: [{ name: 'memory_sessions' }, { name: 'memory_facts' }],
  handle: applySessionEvents,
};
