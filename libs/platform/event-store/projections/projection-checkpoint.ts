import pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { type AppError, bug } from '@antiphon/kernel';

/** Makes the checkpoint's row, at the log's beginning, if there is none. */
export const ensureCheckpoint = async (pool: pg.Pool, name: string): Promise<void> => {
  const text = `insert into projection_checkpoints (name, position, epoch, updated_at)
    select $1, 0, epoch, now() from log_head where id = 1 on conflict do nothing`;
  await pool.query(text, [name]).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
};

/** A checkpoint that is at a position of an epoch which the log has left by a restore. */
export const epochChanged = (projection: string, epoch: number, logEpoch: number): AppError =>
  bug('LOG.EPOCH_CHANGED', `the log was restored; projection ${projection} must be rebuilt`, {
    data: { projection, epoch, logEpoch },
  });

const HOLD_SQL = `select c.position, c.epoch, h.epoch as log_epoch
  from projection_checkpoints c, log_head h where c.name = $1 and h.id = 1 for update of c`;

/**
 * Holds the checkpoint where it is for this transaction and answers its position. Null: there is none, or another process
 * has it and this one does not wait, no longer than the connection's `lock_timeout`.
 */
export const holdCheckpoint = async (
  client: pg.ClientBase,
  name: string,
  { wait }: { readonly wait: boolean },
): Promise<number | null> => {
  const text = wait ? HOLD_SQL : `${HOLD_SQL} skip locked`;
  const { rows } = await client.query<{ position: string; epoch: string; log_epoch: string }>(text, [name]);
  const row = rows[0];
  if (row === undefined) return null;
  if (row.epoch !== row.log_epoch && Number(row.position) > 0)
    throw epochChanged(name, Number(row.epoch), Number(row.log_epoch));
  return Number(row.position);
};

/** A checkpoint's way from where it was seen; `epoch` is the log's, as it was seen then. */
export interface Move {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly epoch: number;
}

/**
 * For each connection of a projection. To plan the look and the move anew each time takes the server longer than to do
 * them; and a plan for any position must walk the log in order, not sort the window before it takes the first events.
 */
export const PROJECTION_PRELUDE = `set plan_cache_mode = force_generic_plan; set enable_bitmapscan = off;
  prepare antiphon_projection_move (text, bigint, bigint, bigint) as
    update projection_checkpoints set position = $3, epoch = $4, updated_at = clock_timestamp()
    where name = (select c.name from projection_checkpoints c, log_head h
      where c.name = $1 and c.position = $2 and h.id = 1 and h.epoch = $4 for update of c skip locked)`;

/**
 * Begins a transaction and moves the checkpoint in it: three statements in one message, because the server writes to
 * the socket after each message. The last one's row count is 0 when another process has moved the checkpoint, is
 * about to, or the log was restored. Literals, because a message of several statements takes no parameters.
 *
 * The commit does not wait for the disk: rows and checkpoint come from the log, are lost together in a crash of the
 * server, and are then made again. `set local` ends with the transaction, so nothing else can inherit it.
 */
export const beginWithMove = ({ name, from, to, epoch }: Move): string =>
  `begin read write; set local synchronous_commit = off;
   execute antiphon_projection_move (${pg.escapeLiteral(name)}, ${BigInt(from)}, ${BigInt(to)}, ${BigInt(epoch)})`;
