import { createHash } from 'node:crypto';
import type pg from 'pg';
import { borrowClient, ALL_WORKSPACES, setWorkspaceSql, translateDatabaseError } from '@antiphon/database';

/** Last event of an event stream at some position of the log; `hash` in hex. */
export interface StreamHead {
  readonly workspace: string;
  readonly streamId: string;
  readonly version: number;
  readonly hash: string;
}

/** One hash for the whole log up to a position: SHA-256 over the heads of all event streams. */
export interface LogRoot {
  readonly format: 1;
  readonly epoch: number;
  /** Position of the newest covered event; 0 for an empty log. */
  readonly position: number;
  readonly streams: number;
  /** Hex. */
  readonly root: string;
  /** ISO 8601, UTC. */
  readonly at: string;
}

export interface SignedLogRoot extends LogRoot {
  /** Signing key: the first 16 hex digits of SHA-256 over the public key (SPKI, DER). */
  readonly keyId: string;
  /** Ed25519 over the RFC 8785 text of the other fields; base64. */
  readonly signature: string;
}

/**
 * Creates a hasher of stream heads. It takes them sorted by workspace and stream id (code units).
 */
export const createRootHasher = () => {
  const hash = createHash('sha256').update('antiphon-root-1\n');
  let streams = 0;
  return {
    add: ({ workspace, streamId, version, hash: head }: StreamHead): void => {
      hash.update(`${workspace}\n${streamId}\n${version}\n${head}\n`);
      streams++;
    },
    /** Returns the root; no head may be added afterwards. */
    end: (): { readonly streams: number; readonly root: string } => ({ streams, root: hash.digest('hex') }),
  };
};

interface HeadRow {
  readonly workspace: string;
  readonly stream_id: string;
  readonly version: string;
  readonly hash: string;
}

const HEADS_SQL = `declare log_root_heads no scroll cursor for
  select workspace, stream_id, version, encode(hash, 'hex') as hash from stream_heads where version > 0
  order by workspace, stream_id`;
const POSITION_SQL = `select (select epoch from log_head where id = 1) as epoch,
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

/** Reads the log's root in a transaction that uses one snapshot. `at`: ISO 8601, UTC. */
export const readLogRootInTransaction = async (client: pg.ClientBase, at: string): Promise<LogRoot> => {
  const { rows } = await client.query<{ epoch: string; position: string }>(POSITION_SQL);
  const heads = await hashHeads(client);
  return { format: 1, epoch: Number(rows[0]?.epoch), position: Number(rows[0]?.position), ...heads, at };
};

/**
 * Reads the log's root on one snapshot, one page of heads at a time. `at`: ISO 8601, UTC. Rejects
 * with `LOG.UNAVAILABLE` or `DATABASE.…` when the database cannot be read.
 */
export const readLogRoot = async (pool: pg.Pool, at: string): Promise<LogRoot> => {
  const { client, release } = await borrowClient(pool).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    await client.query(
      `begin isolation level repeatable read, read only; ${setWorkspaceSql(ALL_WORKSPACES)}`,
    );
    const root = await readLogRootInTransaction(client, at);
    await client.query('commit');
    return root;
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw translateDatabaseError(error);
  } finally {
    release(broken);
  }
};
