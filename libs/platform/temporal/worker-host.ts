import { setTimeout as sleep } from 'node:timers/promises';
import type * as Sdk from '@temporalio/worker';
import type { NativeConnection, Worker } from '@temporalio/worker';
import type { Logger } from '@antiphon/observability';

export interface WorkerSettings {
  readonly address: string;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Absolute path of the bundle that the build made; without it, only activities are taken. */
  readonly bundlePath?: string;
  /** Activities at once at most. Default: 200. */
  readonly maxActivities?: number;
  readonly activities: Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;
  /** Unique for this incarnation of the process, as Temporal shows it. */
  readonly identity: string;
  readonly logger: Logger;
  /** Called each time the worker has begun to poll. */
  readonly onPolling?: () => void;
}

export interface RunningWorker {
  /** Whether it polls now. */
  isPolling(): boolean;
  /** Takes nothing new; activities are told to stop, and are tried again elsewhere. Safe to call twice. */
  stop(): Promise<void>;
}

/** Histories in memory; what was put out is read again from Temporal. */
const MAX_CACHED = 200;
const MAX_ACTIVITIES = 200;
const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 5_000;
/** How long the next step waits for the process that has the history in memory, before any other takes it: it may be dead. */
const STICKY = '1s';
/** Activities learn at once that the worker stops; what has not ended by then is left to its heartbeat timeout. */
const FORCE_AFTER = '4s';

let runtimeInstalled = false;
/** The SDK's own log lines become ours, and the signals stay ours too. */
const installRuntime = (sdk: typeof Sdk, logger: Logger): void => {
  const { Runtime, DefaultLogger, makeTelemetryFilterString } = sdk;
  if (runtimeInstalled) return;
  runtimeInstalled = true;
  const write = new DefaultLogger('WARN', ({ level, message, meta }) => {
    const line = { temporal: level, ...(meta?.['error'] ? { err: meta['error'] as Error } : {}) };
    if (level === 'ERROR') logger.error(line, message);
    else logger.warn(line, message);
  });
  const telemetryOptions = {
    logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) },
  };
  Runtime.install({ logger: write, telemetryOptions, shutdownSignals: [] });
};

const workflowOptions = (codePath: string) => ({
  workflowBundle: { codePath },
  maxCachedWorkflows: MAX_CACHED,
  workflowThreadPoolSize: 1,
  stickyQueueScheduleToStartTimeout: STICKY,
});

const createWorker = async (
  sdk: typeof Sdk,
  settings: WorkerSettings,
  connection: NativeConnection,
): Promise<Worker> =>
  sdk.Worker.create({
    connection,
    namespace: settings.namespace,
    taskQueue: settings.taskQueue,
    identity: settings.identity,
    activities: settings.activities as Record<string, (...args: unknown[]) => Promise<unknown>>,
    maxConcurrentActivityTaskExecutions: settings.maxActivities ?? MAX_ACTIVITIES,
    ...(settings.bundlePath === undefined ? {} : workflowOptions(settings.bundlePath)),
    shutdownGraceTime: 0,
    shutdownForceTime: FORCE_AFTER,
  });

/** Polls until it is stopped or the server refuses it for good; answers after everything has drained. */
const pollOnce = async (
  settings: WorkerSettings,
  current: (worker: Worker | null) => void,
): Promise<void> => {
  // Loaded here: it takes 70 MB and its time, which a start must not wait for.
  const sdk = await import('@temporalio/worker');
  installRuntime(sdk, settings.logger);
  const connection = await sdk.NativeConnection.connect({ address: settings.address });
  try {
    const worker = await createWorker(sdk, settings, connection);
    const running = worker.run();
    current(worker);
    settings.onPolling?.();
    await running.finally(() => current(null));
  } finally {
    await connection.close();
  }
};

/** Runs a worker for as long as this process lives: a server that is away or refuses is tried again, with backoff. */
export const startWorker = (settings: WorkerSettings): RunningWorker => {
  const stopping = new AbortController();
  let worker: Worker | null = null;
  const shutDown = (): void => {
    if (worker?.getState() === 'RUNNING') worker.shutdown();
  };
  const take = (next: Worker | null): void => {
    worker = next;
    if (stopping.signal.aborted) shutDown();
  };
  const keepPolling = async (): Promise<void> => {
    let backoffMs = FIRST_BACKOFF_MS;
    while (!stopping.signal.aborted) {
      try {
        await pollOnce(settings, (next) => {
          take(next);
          backoffMs = FIRST_BACKOFF_MS;
        });
      } catch (error) {
        settings.logger.warn({ err: error }, 'Temporal gives no work; it will be asked again');
        await sleep(backoffMs, undefined, { signal: stopping.signal }).catch(() => undefined);
        backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
      }
    }
  };
  const running = keepPolling();
  return {
    isPolling: () => worker !== null,
    stop: async () => {
      stopping.abort();
      shutDown();
      // One that is only just connecting has no work, and ends as soon as it is there.
      if (worker !== null) await running;
    },
  };
};
