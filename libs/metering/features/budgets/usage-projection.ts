import { once } from 'node:events';
import { createLogReader, runProjection, type RunningProjection } from '@antiphon/event-store';
import { sleep } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import { budgetUsage } from './projections.js';

export interface UsageProjectionDeps {
  readonly pool: pg.Pool;
  readonly logger: Logger;
  readonly subscribe?: (wake: () => void, categories: readonly string[]) => () => void;
}

/** Runs the projection of usage, and lets reads wait for it. */
export class UsageProjection {
  readonly #deps: UsageProjectionDeps;
  #running: RunningProjection | undefined;

  constructor(deps: UsageProjectionDeps) {
    this.#deps = deps;
  }

  /** Runs the projection until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const projection = runProjection({ ...budgetUsage, ...this.#deps });
    this.#running = projection;
    if (!signal.aborted) await once(signal, 'abort');
    await projection.stop();
  }

  /**
   * Waits until the rows have every event so far, for this time at most. A projection that fails
   * does not fail its readers: they get the rows that it has.
   */
  async followHead(withinMs: number): Promise<void> {
    const head = await createLogReader(this.#deps.pool).headPosition();
    const following = this.#running?.waitForPosition(head).catch(() => undefined);
    await Promise.race([following, sleep(withinMs, undefined, { unref: true })]);
  }
}
