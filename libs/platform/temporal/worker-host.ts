import type * as Sdk from '@temporalio/worker';
import type { NativeConnection, Worker } from '@temporalio/worker';
import { backoffDelay, sleep } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { toConnectionOptions } from './temporal-server.js';
import type { TemporalServer } from './temporal-server.js';

export interface WorkerSettings {
  readonly server: string | TemporalServer;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Absolute path of the workflow bundle. Without it the worker runs activities only. */
  readonly bundlePath?: string;
  /** Maximum concurrent activities. Default: 200. */
  readonly maxActivities?: number;
  readonly activities: Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;
  /** Name in Temporal, unique for this incarnation of the process. */
  readonly identity: string;
  readonly logger: Logger;
  /** Called each time the worker starts to poll. */
  readonly onPolling?: () => void;
}

export interface RunningWorker {
  isPolling(): boolean;
  /**
   * Drains: polls no more and cancels activities, which another worker retries. Safe to call twice.
   */
  stop(): Promise<void>;
}

/** Maximum workflow histories in memory; evicted ones are read from Temporal again. */
const MAX_CACHED = 200;
const MAX_ACTIVITIES = 200;
const BACKOFF = { firstMs: 250, maxMs: 5_000 };
/**
 * Time for which a workflow's next task waits for the process with its history, which may be dead.
 */
const STICKY = '1s' as const;
/** Time limit for cancelled activities at shutdown; later ones end by their heartbeat timeout. */
const FORCE_AFTER = '4s';

let isRuntimeInstalled = false;

/** Redirects the SDK's log lines to our logger, and keeps the SDK from handling signals. */
const installRuntime = (sdk: typeof Sdk, logger: Logger): void => {
  const { Runtime, DefaultLogger, makeTelemetryFilterString } = sdk;
  if (isRuntimeInstalled) return;
  isRuntimeInstalled = true;
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

/** Runs a Temporal worker, and replaces it whenever its connection fails. */
class WorkerHost implements RunningWorker {
  readonly #settings: WorkerSettings;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #worker: Worker | null = null;
  #failures = 0;

  constructor(settings: WorkerSettings) {
    this.#settings = settings;
    this.#running = this.#run();
  }

  isPolling(): boolean {
    return this.#worker !== null;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#shutDown();
    // A worker that is still connecting has no activities, and shuts down as soon as it runs.
    if (this.#worker !== null) await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#pollUntilClosed();
      } catch (error) {
        this.#settings.logger.warn({ err: error }, 'Temporal worker failed, retrying');
        await sleep(backoffDelay(BACKOFF, this.#failures++), signal).catch(() => undefined);
      }
    }
  }

  /** Polls until the worker is stopped or the server refuses it; resolves once it has drained. */
  async #pollUntilClosed(): Promise<void> {
    // Loaded here: the SDK takes 70 MB and time that the start of a service must not wait for.
    const sdk = await import('@temporalio/worker');
    installRuntime(sdk, this.#settings.logger);
    const connection = await sdk.NativeConnection.connect(toConnectionOptions(this.#settings.server));
    try {
      const worker = await createWorker(sdk, this.#settings, connection);
      const running = worker.run();
      this.#worker = worker;
      this.#failures = 0;
      if (this.#stopping.signal.aborted) this.#shutDown();
      else this.#settings.onPolling?.();
      await running.finally(() => (this.#worker = null));
    } finally {
      await connection.close();
    }
  }

  #shutDown(): void {
    if (this.#worker?.getState() === 'RUNNING') this.#worker.shutdown();
  }
}

/** Starts a worker that runs until it is stopped. An unavailable server is retried with backoff. */
export const startWorker = (settings: WorkerSettings): RunningWorker => new WorkerHost(settings);
