import type pg from 'pg';
import type { Fact } from '@antiphon/contracts/memory';
import { FACT_COLUMNS, keyHashOf, toFact } from './session-memory.events.js';
import type { FactRow } from './session-memory.events.js';
import { scopedId } from './plan-batch.js';
import type { BatchPlan, FactChanges, Scoped } from './plan-batch.js';

const INSERT_SESSIONS = `insert into memory_sessions (workspace, session_id, session_key, key_hash, agent_id, version)
  select * from unnest($1::text[], $2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::bigint[])`;

const UPDATE_VERSIONS = `update memory_sessions s set version = v.version
  from unnest($1::text[], $2::uuid[], $3::bigint[]) as v (workspace, session_id, version)
  where s.workspace = v.workspace and s.session_id = v.session_id`;

const READ_KEYS = `select s.workspace, s.session_id, s.session_key
  from unnest($1::text[], $2::uuid[]) as wanted (workspace, session_id)
  join memory_sessions s on s.workspace = wanted.workspace and s.session_id = wanted.session_id`;

const READ_ACTIVE = `select f.workspace, f.key_hash, ${FACT_COLUMNS}
  from unnest($1::text[], $2::bytea[]) as wanted (workspace, key_hash)
  join memory_facts f on f.workspace = wanted.workspace and f.key_hash = wanted.key_hash
  where f.superseded_at is null order by f.position, f.ordinal`;

const SUPERSEDE = `update memory_facts f set superseded_at = s.at
  from unnest($1::text[], $2::uuid[], $3::timestamptz[]) as s (workspace, fact_id, at)
  where f.workspace = s.workspace and f.fact_id = s.fact_id`;

const DELETE_FACTS = `delete from memory_facts f using unnest($1::text[], $2::bytea[]) as k (workspace, key_hash)
  where f.workspace = k.workspace and f.key_hash = k.key_hash`;

const INSERT_FACTS = `insert into memory_facts (workspace, key_hash, position, ordinal, ${FACT_COLUMNS})
  select * from unnest($1::text[], $2::bytea[], $3::bigint[], $4::int[], $5::uuid[], $6::text[], $7::text[],
    $8::text[], $9::float8[], $10::timestamptz[], $11::timestamptz[], $12::uuid[])`;

/** Inserts the started sessions and updates the projected version of each session. */
export const writeSessions = async (
  client: pg.ClientBase,
  { started, versions }: BatchPlan,
): Promise<void> => {
  const startedSessions = [...started.values()].map(({ session, data }) => ({ ...session, ...data }));
  if (startedSessions.length > 0)
    await client.query({
      name: 'memory_insert_sessions',
      text: INSERT_SESSIONS,
      values: [
        startedSessions.map(({ workspace }) => workspace),
        startedSessions.map(({ id }) => id),
        startedSessions.map(({ sessionKey }) => sessionKey),
        startedSessions.map(({ sessionKey }) => keyHashOf(sessionKey)),
        startedSessions.map(({ agentId }) => agentId),
        startedSessions.map(() => 0),
      ],
    });
  const seen = [...versions.values()];
  if (seen.length === 0) return;
  await client.query({
    name: 'memory_update_versions',
    text: UPDATE_VERSIONS,
    values: [
      seen.map(({ session }) => session.workspace),
      seen.map(({ session }) => session.id),
      seen.map(({ version }) => version),
    ],
  });
};

/** Reads the key of each session that has a row, by the session's scoped id. */
export const readKeys = async (
  client: pg.ClientBase,
  sessions: readonly Scoped[],
): Promise<ReadonlyMap<string, Scoped>> => {
  const { rows } = await client.query<{ workspace: string; session_id: string; session_key: string }>({
    name: 'memory_read_keys',
    text: READ_KEYS,
    values: [sessions.map(({ workspace }) => workspace), sessions.map(({ id }) => id)],
  });
  return new Map(
    rows.map(({ workspace, session_id: id, session_key: key }) => [
      scopedId({ workspace, id }),
      { workspace, id: key },
    ]),
  );
};

/**
 * Reads the facts in force of each key, in the order in which they were learned, by the key's
 * scoped id.
 */
export const readActive = async (
  client: pg.ClientBase,
  keys: readonly Scoped[],
): Promise<ReadonlyMap<string, readonly Fact[]>> => {
  const hashes = keys.map(({ id }) => keyHashOf(id));
  const { rows } = await client.query<FactRow & { workspace: string; key_hash: Buffer }>({
    name: 'memory_read_active',
    text: READ_ACTIVE,
    values: [keys.map(({ workspace }) => workspace), hashes],
  });
  return new Map(
    keys.map((key, index) => [
      scopedId(key),
      rows
        .filter((row) => row.workspace === key.workspace && hashes[index]?.equals(row.key_hash))
        .map((row) => toFact(row)),
    ]),
  );
};

const supersedeFacts = async (
  client: pg.ClientBase,
  superseded: FactChanges['superseded'],
): Promise<void> => {
  await client.query({
    name: 'memory_supersede_facts',
    text: SUPERSEDE,
    values: [
      superseded.map(({ workspace }) => workspace),
      superseded.map(({ factId }) => factId),
      superseded.map(({ at }) => at),
    ],
  });
};

const insertFacts = async (client: pg.ClientBase, learned: FactChanges['learned']): Promise<void> => {
  const facts = learned.map(({ fact }) => fact);
  await client.query({
    name: 'memory_insert_facts',
    text: INSERT_FACTS,
    values: [
      learned.map(({ key }) => key.workspace),
      learned.map(({ key }) => keyHashOf(key.id)),
      learned.map(({ position }) => position),
      learned.map(({ ordinal }) => ordinal),
      facts.map(({ factId }) => factId),
      facts.map(({ subject }) => subject),
      facts.map(({ predicate }) => predicate),
      facts.map(({ object }) => object),
      facts.map(({ confidence }) => confidence),
      facts.map(({ learnedAt }) => learnedAt),
      facts.map(({ supersededAt }) => supersededAt),
      facts.map(({ sourceEventId }) => sourceEventId),
    ],
  });
};

/** Deletes the facts of these keys before they are folded again. */
export const deleteFacts = async (client: pg.ClientBase, keys: readonly Scoped[]): Promise<void> => {
  const values = [keys.map(({ workspace }) => workspace), keys.map(({ id }) => keyHashOf(id))];
  await client.query({ name: 'memory_delete_facts', text: DELETE_FACTS, values });
};

/** Supersedes facts, then inserts: the index allows one fact of a topic at any time. */
export const writeFacts = async (
  client: pg.ClientBase,
  { superseded, learned }: FactChanges,
): Promise<void> => {
  if (superseded.length > 0) await supersedeFacts(client, superseded);
  if (learned.length > 0) await insertFacts(client, learned);
};
