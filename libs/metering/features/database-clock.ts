import { translateDatabaseError } from '@antiphon/database';
import type { Clock } from '@antiphon/kernel';
import type pg from 'pg';

const NOW_SQL = 'select extract(epoch from clock_timestamp()) * 1000 as ms';
/** Age after which PostgreSQL's clock is read again, ms. */
const FRESH_MS = 10_000;

const steadyNow = (): number => performance.timeOrigin + performance.now();

/**
 * PostgreSQL's clock, so that expiries and budget periods do not depend on the clocks of processes.
 * Between two reads it advances with this process's monotonic clock.
 */
export class DatabaseClock implements Clock {
  private offsetMs: number;
  private readAt: number;
  private reading = false;

  private constructor(
    private readonly pool: pg.Pool,
    { offsetMs, readAt }: { readonly offsetMs: number; readonly readAt: number },
  ) {
    this.offsetMs = offsetMs;
    this.readAt = readAt;
  }

  /** Reads PostgreSQL's clock. Throws `LOG.UNAVAILABLE` (transient) without it. */
  static async open(pool: pg.Pool): Promise<DatabaseClock> {
    return new DatabaseClock(pool, await readOffset(pool));
  }

  now(): number {
    if (steadyNow() - this.readAt > FRESH_MS) void this.refresh();
    return Math.round(steadyNow() + this.offsetMs);
  }

  /** Keeps the last offset while the database is unavailable. */
  private async refresh(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    try {
      ({ offsetMs: this.offsetMs, readAt: this.readAt } = await readOffset(this.pool));
    } catch {
      this.readAt = steadyNow();
    } finally {
      this.reading = false;
    }
  }
}

const readOffset = async (pool: pg.Pool): Promise<{ offsetMs: number; readAt: number }> => {
  const askedAt = steadyNow();
  try {
    const { rows } = await pool.query<{ ms: string }>(NOW_SQL);
    const readAt = steadyNow();
    // The clock was read at some time between the question and the answer.
    return { offsetMs: Number(rows[0]?.ms) - (askedAt + readAt) / 2, readAt };
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
