// The floor: a table with a unique (stream, version) and a unique id, and one prepared insert,
// single or by unnest. The ids rise with time, as Antiphon's do.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { uuidIds } from '@antiphon/observability';
import { appendLoop, PAYLOAD } from '../lib/append-loop.mjs';

const TABLE = `create table if not exists raw_events (
  position bigserial primary key, stream_id text not null, version bigint not null, event_id uuid not null unique,
  type text not null, data jsonb not null, metadata jsonb not null, recorded_at timestamptz not null default now(),
  unique (stream_id, version))`;
const ONE = `insert into raw_events (stream_id, version, event_id, type, data, metadata)
  values ($1, $2, $3, 'Turn', $4, '{}')`;
const MANY = `insert into raw_events (stream_id, version, event_id, type, data, metadata)
  select $1, version, id, 'Turn', data::jsonb, '{}'
  from unnest($2::bigint[], $3::uuid[], $4::text[]) as rows (version, id, data)`;

const insertOne = (pool, stream) =>
  pool.query({ name: 'one', text: ONE, values: [stream.id, ++stream.version, uuidIds.next(), PAYLOAD] });

const insertMany = (pool, stream, count) => {
  const versions = Array.from({ length: count }, () => ++stream.version);
  const ids = versions.map(() => uuidIds.next());
  const data = versions.map(() => JSON.stringify(PAYLOAD));
  return pool.query({ name: 'many', text: MANY, values: [stream.id, versions, ids, data] });
};

export const open = async ({ databaseUrl }) => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 40 });
  await pool.query(TABLE);
  return {
    append: (params) => {
      const streams = Array.from({ length: params.writers }, () => ({ id: randomUUID(), version: 0 }));
      const insert = params.perAppend === 1 ? insertOne : insertMany;
      return appendLoop((writer, count) => insert(pool, streams[writer], count), params);
    },
    close: () => pool.end(),
  };
};
