import { cancelTurn, submitTurn } from '@antiphon/contracts/agent';
import { runProjection } from '@antiphon/event-store';
import type { PastReads, RunningProjection } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import { onLogNotification, requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import type { AgentDirectory } from '@antiphon/agents-features';
import type { TurnCommands, TurnEndWatcher } from '@antiphon/conversation-features';
import { agentTasks } from './agent-tasks.projection.js';
import { Delegation } from './delegation.js';
import type { DelegationTimes } from './delegation.js';
import { OpenTasks } from './open-tasks.js';
import { KnownAgents } from './task-agents.js';
import type { TaskAgents } from './task-agents.js';
import { TaskStreams } from './task-streams.js';
import type { TaskPlatform } from './task-streams.js';

/** Subject that tells the agent processes of new events of tasks. */
export const TASK_CHANGE_SUBJECT = 'hint.agent.tasks';
/** Time within which changes share one notification, ms. */
const PUBLISH_DEBOUNCE_MS = 5;
/** Maximum number of open tasks of a workspace. */
export const MAX_OPEN_TASKS = 10_000;

/** Dependencies of this folder's handlers. */
export interface TaskServices extends TaskPlatform {
  readonly tasks: TaskStreams;
  readonly open: OpenTasks;
  readonly agents: TaskAgents;
  readonly directory: Pick<AgentDirectory, 'load'>;
  readonly maxOpenTasks: number;
  readonly past: PastReads;
}

/** Injection token of `TaskServices`. */
export const TASK_SERVICES = Symbol('TASK_SERVICES');

export interface TasksRuntimeOptions extends TaskPlatform {
  /** Owner of this process's leases. */
  readonly owner: string;
  readonly turns: TurnCommands;
  readonly turnEnds: Pick<TurnEndWatcher, 'waitForEnd'>;
  readonly directory: AgentDirectory;
  readonly times?: Partial<DelegationTimes>;
  readonly maxOpenTasks?: number;
  readonly past: PastReads;
}

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

/** Tasks in one agent process: their streams, the rows of lists, and the delegation. */
export class TasksRuntime {
  readonly services: TaskServices;
  readonly delegation: Delegation;
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();
  private projection: RunningProjection | null = null;
  private publishing: NodeJS.Timeout | undefined;

  constructor(private readonly options: TasksRuntimeOptions) {
    const { config, store, leases, pool, nats, clock, ids, logger } = options;
    const tasks = new TaskStreams({ store, ids, clock }, () => this.announce());
    const open = new OpenTasks({ pool, store, clock });
    const agents = new KnownAgents({ config, pool, directory: options.directory });
    const maxOpenTasks = options.maxOpenTasks ?? MAX_OPEN_TASKS;
    const platform = { config, store, leases, pool, nats, clock, ids, logger };
    const { directory, past } = options;
    this.services = { ...platform, tasks, open, agents, directory, maxOpenTasks, past };
    this.delegation = new Delegation({ ...options, tasks, open, agents });
  }

  start(): void {
    const { pool, nats, logger } = this.options;
    this.projection = runProjection({
      ...agentTasks,
      pool,
      logger,
      subscribe: (wake, categories) => onLogNotification(nats, wake, { categories }),
    });
    const subscription = nats.connection.subscribe(TASK_CHANGE_SUBJECT, {
      callback: () => this.delegation.wake(),
    });
    this.running = this.delegation.run(this.stopping.signal).finally(() => subscription.unsubscribe());
  }

  /** Stops to assign tasks, and releases the lease. Running turns continue elsewhere. */
  async stop(): Promise<void> {
    clearTimeout(this.publishing);
    this.stopping.abort();
    await this.running;
    await this.projection?.stop();
  }

  /**
   * Ends the loops of a process that a test has killed. Nothing that they wait for settles again.
   */
  halt(): void {
    clearTimeout(this.publishing);
    this.stopping.abort();
    void this.projection?.stop();
  }

  /** Tells every process, this one too, that tasks changed. A lost notification costs a poll. */
  private announce(): void {
    const { nats } = this.options;
    this.publishing ??= setTimeout(() => {
      this.publishing = undefined;
      this.delegation.wake();
      if (nats.isConnected() && !nats.connection.isDraining()) nats.connection.publish(TASK_CHANGE_SUBJECT);
    }, PUBLISH_DEBOUNCE_MS);
  }
}
