import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { bug } from '@antiphon/kernel';

const PROGRESS_SQL = `select coalesce(c.position, 0) as position,
    greatest(h.base_position, coalesce((select max(position) from events), 0)) as head
  from log_head h left join projection_checkpoints c on c.name = $1 where h.id = 1`;

/** Where a projection stands and where the log ends; locks nothing. */
export const readProgress = async (
  pool: pg.Pool,
  name: string,
): Promise<{ position: number; head: number }> => {
  const query = { name: 'antiphon_projection_progress', text: PROGRESS_SQL, values: [name] };
  const { rows } = await pool.query<{ position: string; head: string }>(query).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  return { position: Number(rows[0]?.position ?? 0), head: Number(rows[0]?.head ?? 0) };
};

/** Makes the checkpoint's row, at the log's beginning, if there is none. */
export const ensureCheckpoint = async (pool: pg.Pool, name: string): Promise<void> => {
  const text = `insert into projection_checkpoints (name, position, epoch, updated_at)
    select $1, 0, epoch, now() from log_head where id = 1 on conflict do nothing`;
  await pool.query(text, [name]).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
};

const CLAIM_SQL = `select c.position, c.epoch, h.epoch as log_epoch
  from projection_checkpoints c, log_head h where c.name = $1 and h.id = 1 for update of c skip locked`;

/** Takes the checkpoint for this transaction and answers its position; null when another process has it. */
export const claimCheckpoint = async (client: pg.ClientBase, name: string): Promise<number | null> => {
  const query = { name: 'antiphon_projection_claim', text: CLAIM_SQL, values: [name] };
  const { rows } = await client.query<{ position: string; epoch: string; log_epoch: string }>(query);
  const row = rows[0];
  if (row === undefined) return null;
  if (row.epoch !== row.log_epoch && Number(row.position) > 0)
    throw bug('LOG.EPOCH_CHANGED', `the log was restored; projection ${name} must be rebuilt`, {
      data: { projection: name, epoch: Number(row.epoch), logEpoch: Number(row.log_epoch) },
    });
  return Number(row.position);
};

const MOVE_SQL = `update projection_checkpoints
  set position = $2, epoch = (select epoch from log_head where id = 1), updated_at = clock_timestamp() where name = $1`;

/** Moves the checkpoint that this transaction has claimed. */
export const moveCheckpoint = async (
  client: pg.ClientBase,
  name: string,
  position: number,
): Promise<void> => {
  await client.query({ name: 'antiphon_projection_move', text: MOVE_SQL, values: [name, position] });
};
