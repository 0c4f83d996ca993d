import type pg from 'pg';
import { driverNotificationSubject } from '@antiphon/contracts/agent';
import { WorkspaceId } from '@antiphon/contracts/log';
import { repeatEvery } from '@antiphon/kernel';
import { z } from 'zod';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { findAbandoned } from './session-queries.js';
import type { SessionRegistry } from './session-registry.js';

/** Maximum number of sessions that one sweep takes over. */
const MAX_FOUND = 200;
/**
 * Time after the start of a process in which it sweeps more often, ms, and the time between two of
 * these sweeps. The projection of sessions lags behind the log: the first sweep does not see turns
 * that were accepted just before a kill.
 */
const START_MS = 3_000;
const START_SWEEP_MS = 50;
/** Sessions taken over concurrently: a start after a crash must leave connections to new turns. */
const PARALLEL = 8;

const DriverNotification = z.object({ workspace: WorkspaceId, sessionId: z.uuid() });

export interface RecoveryDeps {
  readonly registry: Pick<SessionRegistry, 'claimAndWake'>;
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  /** Owner of this process's leases: notifications are addressed to it. */
  readonly owner: string;
  readonly logger: Logger;
}

/**
 * Takes over sessions without a driver: those whose process died, and those with turns that were
 * accepted while no process could start them.
 */
export class SessionRecovery {
  constructor(private readonly deps: RecoveryDeps) {}

  /**
   * Sweeps at once, at notifications, and every `sweepMs` (more often after the start), until
   * `signal` aborts.
   */
  async run(sweepMs: number, signal: AbortSignal, onSwept: () => void): Promise<void> {
    const unsubscribe = this.followNotifications();
    const sweep = (): Promise<void> =>
      this.takeOverAbandoned()
        .catch((error: unknown) => this.deps.logger.warn({ err: error }, 'abandoned session sweep failed'))
        .then(onSwept);
    const start = AbortSignal.any([signal, AbortSignal.timeout(START_MS)]);
    await repeatEvery(sweep, Math.min(sweepMs, START_SWEEP_MS), start);
    await repeatEvery(sweep, sweepMs, signal);
    unsubscribe();
  }

  async takeOverAbandoned(): Promise<void> {
    const { registry, pool, logger } = this.deps;
    const found = await findAbandoned(pool, MAX_FOUND);
    const takeOver = async (): Promise<void> => {
      for (let session = found.shift(); session; session = found.shift()) {
        const { workspace, sessionId } = session;
        await registry.claimAndWake(workspace, sessionId).catch((error: unknown) => {
          logger.warn({ err: error, workspace, sessionId }, 'session takeover failed');
        });
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, takeOver));
  }

  /**
   * Subscribes to other processes' notifications of appends to our sessions. Returns the
   * unsubscribe function.
   */
  private followNotifications(): () => void {
    const { nats, owner, registry, logger } = this.deps;
    const wake = async (payload: unknown): Promise<void> => {
      const { workspace, sessionId } = DriverNotification.parse(payload);
      await registry.claimAndWake(workspace, sessionId);
    };
    const subscription = nats.connection.subscribe(driverNotificationSubject(owner), {
      callback: (_error, message) => {
        Promise.resolve()
          .then(() => wake(message.json()))
          .catch((error: unknown) => logger.warn({ err: error }, 'driver notification failed'));
      },
    });
    return () => subscription.unsubscribe();
  }
}
