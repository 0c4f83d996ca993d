import pg from 'pg';

/** The end of a log. */
export interface LogEnd {
  readonly epoch: number;
  /** Position of the newest event; 0 for an empty log. */
  readonly position: number;
  /** Time at which the newest event was recorded, ISO 8601; null for an empty log. */
  readonly at: string | null;
}

/**
 * Raises lease epochs beyond every epoch that the lost history may have granted. Appends that carry
 * such an epoch are then fenced.
 */
const LOST_EPOCHS = 1_000_000;

interface EndRow {
  readonly epoch: string;
  readonly position: string;
  readonly at: Date | null;
}

/** Reads the end of a schema's log within the transaction; null if the schema has no log. */
export const readLogEnd = async (client: pg.ClientBase, schema = 'public'): Promise<LogEnd | null> => {
  const name = pg.escapeIdentifier(schema);
  const found = await client.query<{ exists: boolean }>(`select to_regclass($1) is not null as "exists"`, [
    `${name}.log_head`,
  ]);
  if (found.rows[0]?.exists !== true) return null;
  const { rows } = await client.query<EndRow>(
    `select h.epoch, coalesce(e.position, h.base_position) as position, e.recorded_at as at
     from ${name}.log_head h
     left join lateral (select position, recorded_at from ${name}.events order by position desc limit 1) e on true
     where h.id = 1`,
  );
  const [row] = rows;
  if (row === undefined) return null;
  return { epoch: Number(row.epoch), position: Number(row.position), at: row.at?.toISOString() ?? null };
};

/**
 * Begins another history of the log, in the transaction that restored its rows, and returns the new
 * epoch. The epoch is above every known one. Restored projections belong to it, and leases of the
 * lost history no longer count.
 */
export const beginEpoch = async (client: pg.ClientBase, known: readonly number[]): Promise<number> => {
  const { rows } = await client.query<{ epoch: string }>(
    `update log_head set epoch = greatest(epoch, $1) + 1 where id = 1 returning epoch`,
    [Math.max(0, ...known)],
  );
  const epoch = Number(rows[0]?.epoch);
  await client.query('update projection_checkpoints set epoch = $1', [epoch]);
  await client.query(`update leases set owner = null, epoch = epoch + ${LOST_EPOCHS}`);
  // A backup of an older version has no floor of deleted leases.
  const { rows: floors } = await client.query<{ exists: boolean }>(
    `select to_regclass('lease_floor') is not null as "exists"`,
  );
  if (floors[0]?.exists) await client.query(`update lease_floor set epoch = epoch + ${LOST_EPOCHS}`);
  // Events of the lost history may have other contents at the same positions.
  const { rows: snapshots } = await client.query<{ exists: boolean }>(
    `select to_regclass('projection_snapshots') is not null as "exists"`,
  );
  if (snapshots[0]?.exists) await client.query('truncate projection_snapshots, projection_snapshot_rows');
  return epoch;
};
