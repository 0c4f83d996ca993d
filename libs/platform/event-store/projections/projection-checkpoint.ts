import pg from 'pg';
import { borrowClient, isDatabaseError, translateDatabaseError } from '@antiphon/database';
import { type AppError, bug } from '@antiphon/kernel';
import { sendInOneWrite } from '@antiphon/unsafe';

/** Inserts a projection's checkpoint at the log's beginning, if it has none. Returns its position. */
export const ensureCheckpoint = async (pool: pg.Pool, name: string): Promise<number> => {
  const text = `with added as (insert into projection_checkpoints (name, position, epoch, updated_at)
      select $1, 0, epoch, now() from log_head where id = 1 on conflict do nothing)
    select coalesce(max(position), 0) as position from projection_checkpoints where name = $1`;
  const { rows } = await pool.query<{ position: string }>(text, [name]).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  return Number(rows[0]?.position ?? 0);
};

/** Creates the error of a checkpoint with another epoch than the log, which was restored. */
export const epochChanged = (projection: string, epoch: number, logEpoch: number): AppError =>
  bug('LOG.EPOCH_CHANGED', `the log was restored; projection ${projection} must be rebuilt`, {
    data: { projection, epoch, logEpoch },
  });

const LOCK_SQL = `select c.position, c.epoch, h.epoch as log_epoch
  from projection_checkpoints c, log_head h where c.name = $1 and h.id = 1 for update of c`;

/**
 * Locks the checkpoint's row for this transaction and returns its position. With `wait` it waits
 * for another process's lock, up to the connection's `lock_timeout`. Returns null if there is no
 * checkpoint, or if another process holds the lock and `wait` is false.
 */
export const lockCheckpoint = async (
  client: pg.ClientBase,
  name: string,
  { wait }: { readonly wait: boolean },
): Promise<number | null> => {
  const text = wait ? LOCK_SQL : `${LOCK_SQL} skip locked`;
  const { rows } = await client.query<{ position: string; epoch: string; log_epoch: string }>(text, [name]);
  const row = rows[0];
  if (row === undefined) return null;
  if (row.epoch !== row.log_epoch && Number(row.position) > 0)
    throw epochChanged(name, Number(row.epoch), Number(row.log_epoch));
  return Number(row.position);
};

/** A conditional move of a checkpoint (compare-and-set on `from` and `epoch`). */
export interface CheckpointMove {
  readonly name: string;
  /** Position at which a snapshot saw the checkpoint. */
  readonly from: number;
  readonly to: number;
  /** Epoch of the log in that snapshot. */
  readonly epoch: number;
}

/** With `contended`, another process moved the checkpoint or holds its lock: nothing changed. */
export type MoveResult<T> = { readonly state: 'moved'; readonly result: T } | { readonly state: 'contended' };

export interface MoveOptions {
  /** Starts the work only after the move has succeeded. */
  readonly waitForMove: boolean;
}

/**
 * Settings and statements of each projection connection. Generic plans: the server takes longer to
 * plan the snapshot and the move than to execute them. No bitmap scans: a generic plan must walk
 * the log in order, not sort the whole range before it returns the first events.
 */
export const PROJECTION_PRELUDE = `set plan_cache_mode = force_generic_plan; set enable_bitmapscan = off;
  prepare antiphon_projection_move (text, bigint, bigint, bigint) as
    update projection_checkpoints set position = $3, epoch = $4, updated_at = clock_timestamp()
    where name = (select c.name from projection_checkpoints c, log_head h
      where c.name = $1 and c.position = $2 and h.id = 1 and h.epoch = $4 for update of c skip locked)`;

/**
 * Returns SQL that begins a transaction and moves the checkpoint in it. It is one message of three
 * statements, because the server writes to the socket once per message. Such a message takes no
 * parameters, so the values are literals. The last statement updates no row when another process
 * moved the checkpoint or holds its lock, or when the log was restored.
 *
 * The commit does not wait for the disk. Rows and checkpoint come from the log: a crash of the
 * server loses them together, and the projection applies the same events again. The setting ends
 * with the transaction (`set local`), so no other transaction inherits it.
 */
const beginWithMoveSql = ({ name, from, to, epoch }: CheckpointMove): string =>
  `begin read write; set local synchronous_commit = off;
   execute antiphon_projection_move (${pg.escapeLiteral(name)}, ${BigInt(from)}, ${BigInt(to)}, ${BigInt(epoch)})`;

const beginWithMove = async (client: pg.PoolClient, move: CheckpointMove): Promise<boolean> => {
  // `pg` returns an array of results for a message of several statements.
  const results = (await client.query(beginWithMoveSql(move))) as unknown as pg.QueryResult[];
  return results.at(-1)?.rowCount === 1;
};

const commit = async (client: pg.PoolClient): Promise<void> => {
  const { command } = await client.query('commit');
  // For the commit of a failed transaction the server returns ROLLBACK, without an error.
  if (command !== 'COMMIT')
    throw bug('LOG.PROJECTION_UNDONE', 'a projection ignored the error of one of its own statements');
};

const moveAndRun = async <T>(
  client: pg.PoolClient,
  move: CheckpointMove,
  work: (client: pg.PoolClient) => Promise<T>,
  { waitForMove }: MoveOptions,
): Promise<MoveResult<T>> => {
  const [moved, done] = await sendInOneWrite(client, () => {
    const moving = beginWithMove(client, move);
    const working = waitForMove ? moving.then((isMoved) => (isMoved ? work(client) : null)) : work(client);
    return Promise.allSettled([moving, working]);
  });
  if (moved.status === 'rejected') throw moved.reason;
  if (!moved.value) {
    // The other process applies these events. An error here may come from applying them twice.
    await client.query('rollback');
    return { state: 'contended' };
  }
  if (done.status === 'rejected') throw done.reason;
  await commit(client);
  return { state: 'moved', result: done.value as T };
};

/**
 * Moves a checkpoint and runs `work` in one transaction, on a pool of `createPipelinedPool`.
 *
 * The move is optimistic. Without `waitForMove`, the first statements of `work` leave in the same
 * write as the move, before its result is known. This saves a round trip per batch. When the move
 * updates no row, another process owns the batch: the transaction is rolled back and the outcome of
 * `work` is ignored.
 *
 * Rejects with an AppError for an error of `pg`, and with the error of `work` unchanged.
 */
export const runWithMove = async <T>(
  pool: pg.Pool,
  move: CheckpointMove,
  work: (client: pg.PoolClient) => Promise<T>,
  options: MoveOptions,
): Promise<MoveResult<T>> => {
  const { client, release } = await borrowClient(pool).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  let broken: Error | undefined;
  try {
    return await moveAndRun(client, move, work, options);
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw isDatabaseError(error) ? translateDatabaseError(error) : error;
  } finally {
    release(broken);
  }
};
