import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@antiphon/observability';
import { UserError } from '@antiphon/bootstrap/user-error';
import type { ProcessState } from '../stack-json.js';
import { readTail } from './bounded-log.js';
import { startChild } from './child-process.js';
import type { Exit, Launch, RunningChild } from './child-process.js';
import type { ChildrenRecord } from './children-record.js';
import { countFailure, DEFAULT_RESTART_POLICY, restartDelay } from './restart-policy.js';
import type { RestartPolicy } from './restart-policy.js';

/** What one incarnation is called and how it is started. */
export interface Incarnation {
  readonly launch: Launch;
  /** Owner of its leases, for a service. */
  readonly serviceId?: string;
}

export interface ProcessSpec {
  /** Shown to people, e.g. `agent-1`; unique in a stack. */
  readonly name: string;
  readonly rank: number;
  readonly stopSignal: NodeJS.Signals;
  readonly graceMs: number;
  readonly readyTimeoutMs: number;
  /** How often the first start is tried before it fails for good. */
  readonly attempts: number;
  /** Called before each start: a port that was taken since may be another one, a service gets a new id. */
  prepare(): Promise<Incarnation>;
  /** Resolves, with the port if only the process knows it, once it does its work. */
  whenReady(child: RunningChild, signal: AbortSignal): Promise<number | null>;
  /** Called after each death that nobody asked for, before the next start. */
  afterDeath?(incarnation: Incarnation): Promise<void>;
}

export interface ProcessStatus {
  readonly state: ProcessState;
  readonly pid: number | null;
  readonly port: number | null;
  readonly restarts: number;
  readonly startedAt: string | null;
  readonly serviceId: string | null;
}

export interface SupervisedProcess {
  readonly name: string;
  readonly status: () => ProcessStatus;
  /** Starts it and keeps it running; resolves when it is ready for the first time, rejects when it never gets there. */
  start(): Promise<void>;
  /** Ends it for good. Safe to call at any time, twice too. */
  stop(options?: { readonly now?: boolean }): Promise<void>;
}

export interface SupervisionHooks {
  readonly logger: Logger;
  readonly children: ChildrenRecord;
  readonly policy?: RestartPolicy;
  /** Called after each change of a status. */
  readonly changed: () => void;
  /** Told in a sentence of deaths and restarts. */
  readonly note: (line: string) => void;
}

const IDLE: ProcessStatus = {
  state: 'stopped',
  pid: null,
  port: null,
  restarts: 0,
  startedAt: null,
  serviceId: null,
};

interface Outcome {
  /** Null for an incarnation that never became ready. */
  readonly readyForMs: number | null;
  readonly why: string;
  /** What a first start that keeps failing is answered with. */
  readonly error: unknown;
}

const STOPPED: Outcome = { readyForMs: null, why: 'was stopped', error: null };

const describeExit = ({ code, signal }: Exit): string =>
  signal === null ? `ended with exit code ${code ?? '?'}` : `was ended by ${signal}`;

const startFailure = (spec: ProcessSpec, why: string, launch: Launch, logStart: number): UserError => {
  const tail = readTail(launch.logFile, logStart);
  const said =
    tail === '' ? '' : `\nThe last that it said (${launch.logFile}):\n${tail.replace(/^/gm, '  ')}`;
  return new UserError(`${spec.name} did not start: it ${why}.${said}`);
};

/** Runs one process for as long as it is wanted: starts it, waits until it is ready, starts it again when it dies. */
export const superviseProcess = (spec: ProcessSpec, hooks: SupervisionHooks): SupervisedProcess => {
  const { logger, children, policy = DEFAULT_RESTART_POLICY } = hooks;
  const stopping = new AbortController();
  let status = IDLE;
  let current: RunningChild | null = null;
  const firstReady = Promise.withResolvers<void>();
  let loop: Promise<void> = Promise.resolve();

  const update = (change: Partial<ProcessStatus>): void => {
    status = { ...status, ...change };
    hooks.changed();
  };

  const launchOne = async ({ launch, serviceId }: Incarnation): Promise<RunningChild> => {
    const child = await startChild(launch, spec.stopSignal, (identity) =>
      children.add({
        ...identity,
        name: spec.name,
        rank: spec.rank,
        stopSignal: spec.stopSignal,
        graceMs: spec.graceMs,
        ...(serviceId === undefined ? {} : { serviceId }),
      }),
    );
    current = child;
    update({ pid: child.identity.pid, startedAt: new Date().toISOString(), serviceId: serviceId ?? null });
    return child;
  };

  /** Resolves to null when it is ready, else to why it is not; the process has ended or is ending then. */
  const becomeReady = async (child: RunningChild): Promise<string | null> => {
    const gaveUp = new AbortController();
    const timeout = AbortSignal.timeout(spec.readyTimeoutMs);
    const signal = AbortSignal.any([gaveUp.signal, timeout, stopping.signal]);
    const ready = spec.whenReady(child, signal).then(
      (port) => ({ port }),
      (error: unknown) => ({ failed: error }),
    );
    const outcome = await Promise.race([ready, child.exited]);
    gaveUp.abort();
    if ('port' in outcome) {
      update({ state: 'ready', port: outcome.port ?? status.port });
      return null;
    }
    if ('code' in outcome) return describeExit(outcome);
    // Whoever stops it ends it gracefully; a process that is merely late is not worth a grace.
    if (!stopping.signal.aborted) await child.end('SIGKILL', 0);
    if (timeout.aborted) return `was not ready within ${spec.readyTimeoutMs / 1000} s`;
    return outcome.failed instanceof Error ? outcome.failed.message : String(outcome.failed);
  };

  const bury = async (child: RunningChild, incarnation: Incarnation): Promise<void> => {
    const exit = await child.exited;
    current = null;
    children.remove(child.identity.pid);
    if (stopping.signal.aborted) return;
    update({ state: 'restarting', pid: null });
    logger.warn({ process: spec.name, ...exit }, `a process ${describeExit(exit)}`);
    await spec.afterDeath?.(incarnation).catch((error: unknown) => {
      // Its leases lapse by themselves a few seconds later.
      logger.warn({ err: error, process: spec.name }, 'what a dead process held could not be freed');
    });
  };

  const runOnce = async (): Promise<Outcome> => {
    const incarnation = await spec.prepare();
    if (stopping.signal.aborted) return STOPPED;
    const child = await launchOne(incarnation);
    if (stopping.signal.aborted) void child.end(spec.stopSignal, spec.graceMs);
    const failure = await becomeReady(child);
    const readyAt = Date.now();
    if (failure === null) firstReady.resolve();
    const exit = await child.exited;
    const readyForMs = Date.now() - readyAt;
    await bury(child, incarnation);
    if (failure === null) return { readyForMs, why: describeExit(exit), error: null };
    const error = startFailure(spec, failure, incarnation.launch, child.logStart);
    return { readyForMs: null, why: failure, error };
  };

  const runSafely = (): Promise<Outcome> =>
    runOnce().catch((error: unknown) => {
      logger.error({ err: error, process: spec.name }, 'a process could not be started');
      return { readyForMs: null, why: 'could not be started', error };
    });

  const keepRunning = async (): Promise<void> => {
    let everReady = false;
    for (let failures = 0; !stopping.signal.aborted;) {
      const { readyForMs, why, error } = await runSafely();
      if (stopping.signal.aborted) return;
      everReady ||= readyForMs !== null;
      failures = countFailure(policy, failures, readyForMs);
      if (!everReady && failures >= spec.attempts) throw error;
      const delay = restartDelay(policy, failures);
      hooks.note(`${spec.name} ${why}; starting it again${delay === 0 ? '' : ` in ${delay / 1000} s`}`);
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => undefined);
      update({ state: 'starting', restarts: status.restarts + 1 });
    }
  };

  return {
    name: spec.name,
    status: () => status,
    start: () => {
      update({ state: 'starting' });
      loop = keepRunning().catch((error: unknown) => firstReady.reject(error));
      return firstReady.promise;
    },
    stop: async ({ now = false } = {}) => {
      firstReady.reject(new UserError(`${spec.name} was stopped before it was ready`));
      firstReady.promise.catch(() => undefined);
      stopping.abort();
      if (current !== null) update({ state: 'stopping' });
      await current?.end(now ? 'SIGKILL' : spec.stopSignal, spec.graceMs);
      await loop;
      update({ state: 'stopped', pid: null });
    },
  };
};
