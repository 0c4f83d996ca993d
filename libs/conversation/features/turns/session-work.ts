import { repeatEvery } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import { observeGauges } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { DriveTimes } from '../sessions/drive-times.js';
import type { SessionRecovery } from '../sessions/session-recovery.js';
import type { SessionRegistry } from '../sessions/session-registry.js';
import type { Shutdown } from '../sessions/shutdown.js';
import { publishClock } from './tool-call.js';
import type { ToolRetry } from './tool-retry.js';

const UPKEEP_MS = 250;
const CLOCK_HINT_MS = 10_000;
/** Time that recovered turns have for themselves at a start, before other work begins, ms. */
const RESUME_FIRST_MS = 1_000;

const observeTurns = (registry: SessionRegistry): (() => void) =>
  observeGauges(
    {
      antiphon_turns_open: 'Turns that this process is working on',
      antiphon_turns_waiting: 'Accepted turns that wait for the one before them in their session',
    },
    (report) => {
      const { open, waiting } = registry.countTurns();
      report('antiphon_turns_open', open);
      report('antiphon_turns_waiting', waiting);
    },
  );

export interface SessionWorkDeps {
  readonly registry: SessionRegistry;
  readonly recovery: SessionRecovery;
  readonly retryTool: ToolRetry;
  readonly shutdown: Shutdown;
  readonly times: DriveTimes;
  readonly nats: NatsLink;
  /** Owner of this process's leases. */
  readonly owner: string;
  readonly logger: Logger;
}

/** Drives the sessions of this process, from its start to its stop. */
export class SessionWork {
  private running: Promise<unknown> = Promise.resolve();
  private stopObserving: () => void = () => undefined;

  constructor(private readonly deps: SessionWorkDeps) {}

  /** Starts to recover and to drive sessions. Resolves after the first sweep for lost turns. */
  start(): Promise<void> {
    const { registry, recovery, shutdown, times } = this.deps;
    const { drained, stopping } = shutdown;
    const swept = Promise.withResolvers<void>();
    this.stopObserving = observeTurns(registry);
    this.running = Promise.all([
      recovery.run(times.sweepMs, stopping.signal, swept.resolve),
      repeatEvery(() => registry.runUpkeep(), UPKEEP_MS, drained.signal),
      repeatEvery(() => publishClock(this.deps), CLOCK_HINT_MS, drained.signal),
    ]);
    return swept.promise;
  }

  /** Resolves when recovered turns have ended, or have had a second for themselves. */
  waitForRecovered(): Promise<void> {
    return this.deps.registry.waitUntilIdle(RESUME_FIRST_MS);
  }

  /** Accepts no more turns, drains the running ones and releases the leases. */
  async drain(): Promise<void> {
    const { registry, retryTool, shutdown, times, logger } = this.deps;
    shutdown.stopping.abort();
    this.stopObserving();
    await retryTool
      .release()
      .catch((err: unknown) => logger.warn({ work: 'tool-retry', err }, 'work not released'));
    await registry.drain(times.drainMs);
    shutdown.drained.abort();
  }

  /** Resolves when all loops have ended. */
  async ended(): Promise<void> {
    await this.running;
  }

  /** Ends all loops at once, as the death of the process does. For specs that kill a process. */
  halt(): void {
    const { stopping, drained } = this.deps.shutdown;
    stopping.abort();
    drained.abort();
    this.stopObserving();
  }
}
