import { once } from 'node:events';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { createLogReader, runProjection } from '@antiphon/event-store';
import type { RunningProjection } from '@antiphon/event-store';
import { repeatEvery, sleep } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import { HOURS_KEPT, logRates, MINUTES_KEPT, outOfTime } from './log-rates.projection.js';

/** Interval of the deletion of old rows, ms, and the size of one transaction. */
const DELETE_MS = 3_600_000;
const DELETE_BATCH = 5_000;
/** Time that a read waits for the newest events, ms. */
const FOLLOW_MS = 1_000;

const DELETE_SQL = `delete from log_rates where ctid = any (array(
  select ctid from log_rates where ${outOfTime(MINUTES_KEPT, HOURS_KEPT)} limit ${DELETE_BATCH}))`;

export interface FollowLogRatesDeps {
  readonly pool: pg.Pool;
  readonly logger: Logger;
  readonly subscribe?: (wake: () => void, categories: readonly string[]) => () => void;
}

/** Runs the projection of rates, deletes its old rows, and lets reads wait for it. */
export class FollowLogRates {
  #running: RunningProjection | undefined;

  constructor(private readonly deps: FollowLogRatesDeps) {}

  /** Runs until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const projection = runProjection({ ...logRates, ...this.deps });
    this.#running = projection;
    const deleting = repeatEvery(() => this.#tryDelete(), DELETE_MS, signal);
    if (!signal.aborted) await once(signal, 'abort');
    await Promise.all([projection.stop(), deleting]);
  }

  /** Waits for the newest event, for a second at most. Returns the head of the log. */
  async followHead(): Promise<number> {
    const head = await createLogReader(this.deps.pool).headPosition();
    const following = this.#running?.waitForPosition(head).catch(() => undefined);
    await Promise.race([following, sleep(FOLLOW_MS, undefined, { unref: true })]);
    return head;
  }

  /** Deletes rows that no read needs. Returns their number. */
  async deleteOld(): Promise<number> {
    let deleted = 0;
    for (let count = DELETE_BATCH; count === DELETE_BATCH; deleted += count) {
      const { rowCount } = await acrossWorkspaces(this.deps.pool)
        .query(DELETE_SQL)
        .catch((error: unknown) => {
          throw translateDatabaseError(error);
        });
      count = rowCount ?? 0;
    }
    return deleted;
  }

  async #tryDelete(): Promise<void> {
    try {
      await this.deleteOld();
    } catch (err) {
      this.deps.logger.warn({ err }, 'old rates not deleted');
    }
  }
}
