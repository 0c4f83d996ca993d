import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '@antiphon/bootstrap/user-error';
import type { Logger } from '@antiphon/observability';
import type { ProcessState } from '../stack-json.js';
import { readTail } from './bounded-log.js';
import { startChild } from './child-process.js';
import { waitUntilIdle } from './idle-process.js';
import { DEFAULT_RESTART_POLICY, countFailure, restartDelay } from './restart-policy.js';
import type { RestartPolicy } from './restart-policy.js';
import { StartRefused } from './start-refused.js';
import type { ChildRecord, ChildrenRecord, Exit, Launch, RunningChild } from './child-process.js';

/** One start of a process. */
export interface Incarnation {
  readonly launch: Launch;
  /** Owner of a service's leases. */
  readonly serviceId?: string;
}

export interface ProcessSpec {
  /** Name for people, such as `agent-1`; unique in a stack. */
  readonly name: string;
  /** Position in the start order. */
  readonly rank: number;
  readonly stopSignal: NodeJS.Signals;
  readonly graceMs: number;
  readonly readyTimeoutMs: number;
  /** Time after which a first start that does nothing fails. Undefined for none: it may recover. */
  readonly idleTimeoutMs?: number;
  /** Maximum number of attempts at the first start. */
  readonly attempts: number;
  /** Prepares each start: a port may have been taken since, and a service gets a new id. */
  prepare(): Promise<Incarnation>;
  /** Waits until the process is ready. Resolves to its port where only the process knows it. */
  whenReady(child: RunningChild, signal: AbortSignal): Promise<number | null>;
  /** Rejects while the process does not respond on its port. Undefined for no checks. */
  checkHealth?(port: number, child: RunningChild): Promise<void>;
  /** Runs after each unexpected exit, before the restart. */
  afterExit?(incarnation: Incarnation): Promise<void>;
}

/** When a process that does not respond counts as hung, and how long it may then take to stop. */
export interface HealthPolicy {
  readonly everyMs: number;
  readonly misses: number;
  readonly graceMs: number;
}

export const DEFAULT_HEALTH_POLICY: HealthPolicy = { everyMs: 5_000, misses: 3, graceMs: 5_000 };

export interface ProcessStatus {
  readonly state: ProcessState;
  readonly pid: number | null;
  readonly port: number | null;
  readonly restarts: number;
  readonly startedAt: string | null;
  readonly serviceId: string | null;
}

export interface SupervisionHooks {
  readonly logger: Logger;
  readonly children: ChildrenRecord;
  readonly policy?: RestartPolicy;
  readonly health?: HealthPolicy;
  /** Runs after each change of a status. */
  readonly changed: () => void;
  /** Receives a line about each exit and restart. */
  readonly note: (line: string) => void;
}

interface Outcome {
  /** Null for an incarnation that never became ready. */
  readonly readyForMs: number | null;
  readonly reason: string;
  /** Error of a first start that keeps failing. */
  readonly error: unknown;
  /** True if another attempt would fail as well. */
  readonly isFinal?: boolean;
}

const STOPPED: Outcome = { readyForMs: null, reason: 'was stopped', error: null };

/** Wraps hooks so that none of them throws: what they keep must not stop what they report. */
const guardHooks = (hooks: SupervisionHooks): SupervisionHooks => {
  const guard =
    <A extends unknown[]>(hook: (...args: A) => void) =>
    (...args: A): void => {
      try {
        hook(...args);
      } catch (error) {
        hooks.logger.error({ err: error }, 'supervisor bookkeeping failed');
      }
    };
  const { children } = hooks;
  return {
    ...hooks,
    changed: guard(hooks.changed),
    note: guard(hooks.note),
    children: {
      add: guard((child: ChildRecord) => children.add(child)),
      remove: guard((pid: number) => children.remove(pid)),
      retry: guard(() => children.retry()),
    },
  };
};

const describeExit = ({ code, signal }: Exit): string =>
  signal === null ? `ended with exit code ${code ?? '?'}` : `was ended by ${signal}`;

/** Runs one process, restarts it after each unexpected exit, and stops it. */
export class SupervisedProcess {
  private readonly stopping = new AbortController();
  private readonly firstReady = Promise.withResolvers<void>();
  private readonly policy: RestartPolicy;
  private current: RunningChild | null = null;
  private loop: Promise<void> = Promise.resolve();
  private hasBeenReady = false;
  private state: ProcessStatus = {
    state: 'stopped',
    pid: null,
    port: null,
    restarts: 0,
    startedAt: null,
    serviceId: null,
  };

  private readonly hooks: SupervisionHooks;

  constructor(
    private readonly spec: ProcessSpec,
    hooks: SupervisionHooks,
  ) {
    this.hooks = guardHooks(hooks);
    this.policy = hooks.policy ?? DEFAULT_RESTART_POLICY;
  }

  get name(): string {
    return this.spec.name;
  }

  status(): ProcessStatus {
    return this.state;
  }

  /** Starts the process. Resolves when it is ready, rejects when its attempts are used up. */
  start(): Promise<void> {
    this.update({ state: 'starting' });
    this.loop = this.keepRunning().catch((error: unknown) => this.firstReady.reject(error));
    return this.firstReady.promise;
  }

  /** Stops the process for good. Safe at any time, also twice. */
  async stop({ now = false }: { readonly now?: boolean } = {}): Promise<void> {
    this.firstReady.reject(new UserError(`${this.name} was stopped before it was ready`));
    this.firstReady.promise.catch(() => undefined);
    this.stopping.abort();
    if (this.current !== null) this.update({ state: 'stopping' });
    await this.current?.end(now ? 'SIGKILL' : this.spec.stopSignal, this.spec.graceMs);
    await this.loop;
    this.update({ state: 'stopped', pid: null });
  }

  private get isStopping(): boolean {
    return this.stopping.signal.aborted;
  }

  private update(change: Partial<ProcessStatus>): void {
    this.state = { ...this.state, ...change };
    this.hooks.changed();
  }

  private async keepRunning(): Promise<void> {
    for (let failures = 0; !this.isStopping;) {
      const { readyForMs, reason, error, isFinal = false } = await this.runSafely();
      if (this.isStopping) return;
      this.hasBeenReady ||= readyForMs !== null;
      failures = countFailure(this.policy, failures, readyForMs);
      if (!this.hasBeenReady && (isFinal || failures >= this.spec.attempts)) throw error;
      const delay = restartDelay(this.policy, failures);
      this.hooks.note(`${this.name} ${reason}; restarting${delay === 0 ? '' : ` in ${delay / 1000} s`}`);
      await sleep(delay, undefined, { signal: this.stopping.signal }).catch(() => undefined);
      this.update({ state: 'starting', restarts: this.state.restarts + 1 });
    }
  }

  private runSafely(): Promise<Outcome> {
    return this.runOnce().catch((error: unknown) => {
      this.hooks.logger.error({ err: error, process: this.name }, 'process start failed');
      return { readyForMs: null, reason: 'could not be started', error };
    });
  }

  private async runOnce(): Promise<Outcome> {
    const incarnation = await this.spec.prepare();
    if (this.isStopping) return STOPPED;
    const child = await this.launch(incarnation);
    if (this.isStopping) void child.end(this.spec.stopSignal, this.spec.graceMs);
    const failure = await this.becomeReady(child);
    const readyAt = Date.now();
    if (failure === null) this.firstReady.resolve();
    const hung = failure === null ? await this.watchHealth(child) : null;
    const exit = await child.exited;
    const readyForMs = Date.now() - readyAt;
    await this.handleExit(child, exit, incarnation);
    if (failure === null) return { readyForMs, reason: hung ?? describeExit(exit), error: null };
    const error = this.startFailure(failure.reason, incarnation.launch, child.logStart);
    return { readyForMs: null, ...failure, error };
  }

  private async launch({ launch, serviceId }: Incarnation): Promise<RunningChild> {
    const { name, rank, stopSignal, graceMs } = this.spec;
    const child = await startChild(launch, stopSignal, (identity) =>
      this.hooks.children.add({ ...identity, name, rank, stopSignal, graceMs, serviceId }),
    );
    this.current = child;
    const startedAt = new Date().toISOString();
    this.update({ pid: child.identity.pid, startedAt, serviceId: serviceId ?? null });
    return child;
  }

  /**
   * Returns null when the process is ready, else the reason; the process has ended or is ending
   * then.
   */
  private async becomeReady(child: RunningChild): Promise<Pick<Outcome, 'reason' | 'isFinal'> | null> {
    const abandoned = new AbortController();
    const timeout = AbortSignal.timeout(this.spec.readyTimeoutMs);
    const signal = AbortSignal.any([abandoned.signal, timeout, this.stopping.signal]);
    const ready = this.spec.whenReady(child, signal).then(
      (port) => ({ port }),
      (error: unknown) => ({ error }),
    );
    const outcome = await Promise.race([ready, child.exited, this.stall(child, signal)]);
    abandoned.abort();
    if ('port' in outcome) {
      this.update({ state: 'ready', port: outcome.port ?? this.state.port });
      return null;
    }
    if ('code' in outcome) return { reason: describeExit(outcome) };
    // `stop` ends it gracefully; a late process is killed.
    if (!this.isStopping) await child.end('SIGKILL', 0);
    if (timeout.aborted) return { reason: `was not ready within ${this.spec.readyTimeoutMs / 1000} s` };
    if ('idleMs' in outcome)
      return { reason: `waited for ${outcome.idleMs / 1000} s and was not ready`, isFinal: true };
    const { error } = outcome;
    const isFinal = error instanceof StartRefused;
    return { reason: error instanceof Error ? error.message : String(error), isFinal };
  }

  /** Resolves when a first start does nothing: another attempt would wait in the same way. */
  private async stall(child: RunningChild, signal: AbortSignal): Promise<{ readonly idleMs: number }> {
    const idleMs = this.hasBeenReady ? undefined : this.spec.idleTimeoutMs;
    if (idleMs !== undefined && (await waitUntilIdle(child.identity.pid, idleMs, signal))) return { idleMs };
    return new Promise(() => undefined);
  }

  /**
   * Checks a ready process until it exits. Ends one that misses several checks in a row, and then
   * returns the reason; a suspended process ignores all signals but SIGKILL.
   */
  private async watchHealth(child: RunningChild): Promise<string | null> {
    const { everyMs, misses, graceMs } = this.hooks.health ?? DEFAULT_HEALTH_POLICY;
    const { port } = this.state;
    if (this.spec.checkHealth === undefined || port === null) return null;
    const ended = new AbortController();
    void child.exited.then(() => ended.abort());
    for (let missed = 0; !ended.signal.aborted;) {
      await sleep(everyMs, undefined, { signal: ended.signal }).catch(() => undefined);
      if (ended.signal.aborted || this.isStopping) break;
      const failure = await this.spec.checkHealth(port, child).then(
        () => null,
        (error: unknown) => error,
      );
      missed = failure === null ? 0 : missed + 1;
      if (failure !== null && !ended.signal.aborted)
        this.hooks.logger.warn({ err: failure, process: this.name, missed }, 'health check missed');
      if (missed < misses || this.isStopping) continue;
      this.hooks.logger.error({ process: this.name }, 'process hangs, ending it');
      await child.end(this.spec.stopSignal, graceMs);
      return `did not respond to ${misses} health checks and was ended`;
    }
    return null;
  }

  private async handleExit(child: RunningChild, exit: Exit, incarnation: Incarnation): Promise<void> {
    const { logger, children } = this.hooks;
    this.current = null;
    children.remove(child.identity.pid);
    if (this.isStopping) return;
    this.update({ state: 'restarting', pid: null });
    logger.warn({ process: this.name, ...exit }, 'process exited unexpectedly');
    await this.spec.afterExit?.(incarnation).catch((error: unknown) => {
      // Its leases expire a few seconds later.
      logger.warn({ err: error, process: this.name }, 'lease release failed');
    });
  }

  private startFailure(reason: string, launch: Launch, logStart: number): UserError {
    const tail = readTail(launch.logFile, logStart);
    const output = tail === '' ? '' : `\nIts last output (${launch.logFile}):\n${tail.replace(/^/gm, '  ')}`;
    return new UserError(`${this.name} did not start: it ${reason}.${output}`);
  }
}
