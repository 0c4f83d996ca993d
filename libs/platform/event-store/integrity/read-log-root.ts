import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { createRootHasher } from './log-root.js';
import type { LogRoot } from './log-root.js';

interface HeadRow {
  readonly workspace: string;
  readonly stream_id: string;
  readonly version: string;
  readonly hash: string;
}

const HEADS_SQL = `declare log_root_heads no scroll cursor for
  select workspace, stream_id, version, encode(hash, 'hex') as hash from stream_heads where version > 0
  order by workspace, stream_id`;
const WHERE_SQL = `select (select epoch from log_head where id = 1) as epoch,
  coalesce((select position from events order by position desc limit 1), (select base_position from log_head where id = 1))
    as position`;
const PAGE = 2_000;

const hashHeads = async (client: pg.ClientBase) => {
  const hasher = createRootHasher();
  await client.query(HEADS_SQL);
  for (;;) {
    const { rows } = await client.query<HeadRow>(`fetch ${PAGE} from log_root_heads`);
    if (rows.length === 0) break;
    for (const { workspace, stream_id: streamId, version, hash } of rows)
      hasher.add({ workspace, streamId, version: Number(version), hash });
  }
  await client.query('close log_root_heads');
  return hasher.end();
};

/** The log's root as a transaction sees it that reads on one snapshot. `at`: ISO 8601, UTC. */
export const readLogRootInTransaction = async (client: pg.ClientBase, at: string): Promise<LogRoot> => {
  const { rows } = await client.query<{ epoch: string; position: string }>(WHERE_SQL);
  const heads = await hashHeads(client);
  return { format: 1, epoch: Number(rows[0]?.epoch), position: Number(rows[0]?.position), ...heads, at };
};

/**
 * Reads the log's root: all heads and the newest position, on one snapshot, a page at a time. `at`: ISO 8601, UTC.
 * Rejects with `LOG.UNAVAILABLE` or `DATABASE.…` when the database cannot be read.
 */
export const readLogRoot = async (pool: pg.Pool, at: string): Promise<LogRoot> => {
  const client = await pool.connect().catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    await client.query('begin isolation level repeatable read, read only');
    const root = await readLogRootInTransaction(client, at);
    await client.query('commit');
    return root;
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw translateDatabaseError(error);
  } finally {
    client.release(broken);
  }
};
