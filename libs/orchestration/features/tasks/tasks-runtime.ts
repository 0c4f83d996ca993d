import type pg from 'pg';
import { cancelTurn, submitTurn } from '@antiphon/contracts/agent';
import { runProjection } from '@antiphon/event-store';
import type { RunningProjection } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import { onLogNotification, requestWithRetry } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { TurnCommands } from '@antiphon/conversation-features';
import { agentTasks } from './agent-tasks.projection.js';
import type { Delegation } from './delegation.js';
import type { TaskChanges } from './task-changes.js';

/** Errors after which a request has reached no process. */
const NOT_SENT: ReadonlySet<string> = new Set(['MESSAGING.FORBIDDEN', 'MESSAGING.NO_RESPONDERS']);

/**
 * Returns commands for turns that any agent process carries out. This process does so itself if no
 * other one can be reached. A turn is accepted once: its idempotency key is the claim of its task.
 */
export const turnsInAnyProcess = (requests: RequestClient, own: TurnCommands): TurnCommands => {
  const withFallback = async <T>(sent: Promise<T>, here: () => Promise<T>): Promise<T> => {
    try {
      return await sent;
    } catch (error) {
      if (!isAppError(error) || !NOT_SENT.has(error.code)) throw error;
      return here();
    }
  };
  return {
    submitTurn: (request) =>
      withFallback(
        requestWithRetry((options) => requests.request(submitTurn, request, options)),
        () => own.submitTurn(request),
      ),
    cancelTurn: (request) =>
      withFallback(
        requestWithRetry((options) => requests.request(cancelTurn, request, options)),
        () => own.cancelTurn(request),
      ),
  };
};

export interface TasksRuntimeDeps {
  readonly delegation: Delegation;
  readonly changes: TaskChanges;
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly logger: Logger;
}

/** Tasks in one agent process: the rows of lists, and the delegation. */
export class TasksRuntime {
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();
  private projection: RunningProjection | null = null;

  constructor(private readonly deps: TasksRuntimeDeps) {}

  start(): void {
    const { delegation, changes, pool, nats, logger } = this.deps;
    this.projection = runProjection({
      ...agentTasks,
      pool,
      logger,
      subscribe: (wake, categories) => onLogNotification(nats, wake, { categories }),
    });
    const unfollow = changes.follow();
    this.running = delegation.run(this.stopping.signal).finally(unfollow);
  }

  /** Stops to assign tasks, and releases the lease. Running turns continue elsewhere. */
  async stop(): Promise<void> {
    this.deps.changes.close();
    this.stopping.abort();
    await this.running;
    await this.projection?.stop();
  }

  /**
   * Ends the loops of a process that a test has killed. Nothing that they wait for settles again.
   */
  halt(): void {
    this.deps.changes.close();
    this.stopping.abort();
    void this.projection?.stop();
  }
}
