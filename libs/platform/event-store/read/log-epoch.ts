import pg from 'pg';

/** Where a log ends. */
export interface LogEnd {
  readonly epoch: number;
  /** Of the newest event; 0 for an empty log. */
  readonly position: number;
  /** When it was recorded, ISO 8601; null for an empty log. */
  readonly at: string | null;
}

/** Epochs of leases that the lost time may have given out: whoever still holds one of them is refused. */
const LOST_EPOCHS = 1_000_000;

interface EndRow {
  readonly epoch: string;
  readonly position: string;
  readonly at: Date | null;
}

/** Where the log of a schema ends, as the transaction sees it; null where the schema has no log. */
export const readLogEnd = async (client: pg.ClientBase, schema = 'public'): Promise<LogEnd | null> => {
  const name = pg.escapeIdentifier(schema);
  const found = await client.query<{ there: boolean }>(`select to_regclass($1) is not null as there`, [
    `${name}.log_head`,
  ]);
  if (found.rows[0]?.there !== true) return null;
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
 * Begins another history of the log, in the transaction that has put its rows in: the epoch becomes one above every
 * known one, projections that were restored with the log belong to it, and no lease of the lost time counts any more.
 * Answers the new epoch.
 */
export const beginEpoch = async (client: pg.ClientBase, known: readonly number[]): Promise<number> => {
  const { rows } = await client.query<{ epoch: string }>(
    `update log_head set epoch = greatest(epoch, $1) + 1 where id = 1 returning epoch`,
    [Math.max(0, ...known)],
  );
  const epoch = Number(rows[0]?.epoch);
  await client.query('update projection_checkpoints set epoch = $1', [epoch]);
  await client.query(`update leases set owner = null, epoch = epoch + ${LOST_EPOCHS}`);
  return epoch;
};
