import type { Fence } from '@antiphon/event-store';
import { createWakeSignal } from '@antiphon/kernel';
import type { WakeSignal } from '@antiphon/kernel';
import { Leadership } from './leadership.js';
import type { LeadershipOptions } from './leadership.js';

export interface LeaderLoopOptions extends LeadershipOptions {
  /** Time between two rounds without a wake, ms. */
  readonly pollMs: number;
  /** Time until the round after a failed one, ms. Default: `pollMs`. */
  readonly retryMs?: number;
  /** Names of the log's warnings. */
  readonly warnings: { readonly round: string; readonly release: string };
  /** Signal that starts a round early. Default: one of its own, see `wake`. */
  readonly wakeSignal?: WakeSignal;
}

/** Work that one process does at a time. */
export interface LeaderWork {
  /** Runs one round in the process that leads. Returns the time until the next one, ms. */
  round(fence: Fence): Promise<number | void>;
  /** Ends what an earlier term began. Called before each try to lead. */
  endTerm(): Promise<void> | void;
  /** Ends the work after the last round, before the lease is released. */
  stop(): Promise<void>;
}

/** Runs rounds of work, one after another, while this process holds a lease. */
export class LeaderLoop {
  readonly #options: LeaderLoopOptions;
  readonly #leadership: Leadership;
  readonly #wakeSignal: WakeSignal;
  #isFailing = false;

  constructor(options: LeaderLoopOptions) {
    this.#options = options;
    this.#leadership = new Leadership(options);
    this.#wakeSignal = options.wakeSignal ?? createWakeSignal();
  }

  isLeader(): boolean {
    return this.#leadership.isLeader();
  }

  /** Returns the token that fences appends; null unless this process leads. */
  fence(): Fence | null {
    return this.#leadership.fence();
  }

  /** Starts the next round soon. */
  wake(): void {
    this.#wakeSignal.wake();
  }

  /** Logs an error of the work, unless the last one was logged and no round has succeeded since. */
  warnOnce(err: unknown): void {
    const { logger, warnings } = this.#options;
    if (!this.#isFailing) logger.warn({ err }, warnings.round);
    this.#isFailing = true;
  }

  /** Runs rounds until the signal aborts, then releases the lease. */
  async run(signal: AbortSignal, work: LeaderWork): Promise<void> {
    signal.addEventListener('abort', () => this.wake(), { once: true });
    while (!signal.aborted) {
      const waitMs = await this.#tryRound(work);
      if (!signal.aborted) await this.#wakeSignal.wait(waitMs);
    }
    await work.stop();
    const { logger, warnings } = this.#options;
    await this.#leadership.release().catch((err: unknown) => logger.warn({ err }, warnings.release));
  }

  async #tryRound(work: LeaderWork): Promise<number> {
    const { pollMs, retryMs = pollMs } = this.#options;
    try {
      const waitMs = await this.#round(work);
      this.#isFailing = false;
      return waitMs ?? pollMs;
    } catch (error) {
      this.warnOnce(error);
      return retryMs;
    }
  }

  async #round(work: LeaderWork): Promise<number | void> {
    if (!this.#leadership.isLeader()) {
      await work.endTerm();
      await this.#leadership.campaign();
    }
    const fence = this.#leadership.fence();
    return fence ? work.round(fence) : undefined;
  }
}
