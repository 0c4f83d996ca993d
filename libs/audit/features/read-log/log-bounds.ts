import type pg from 'pg';

/** Where the log begins and ends on this snapshot. */
export interface LogBounds {
  readonly epoch: number;
  /** Position before its first event. */
  readonly base: number;
  /** Position of its newest event, or `base`. */
  readonly head: number;
}

const BOUNDS_SQL = `select h.epoch, h.base_position as base,
  coalesce((select e.position from events e order by e.position desc limit 1), h.base_position) as head
  from log_head h where h.id = 1`;

export const readLogBounds = async (client: pg.ClientBase): Promise<LogBounds> => {
  const { rows } = await client.query<Record<keyof LogBounds, string>>(BOUNDS_SQL);
  const { epoch = 1, base = 0, head = 0 } = rows[0] ?? {};
  return { epoch: Number(epoch), base: Number(base), head: Number(head) };
};
