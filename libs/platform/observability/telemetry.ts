import { DiagLogLevel, diag } from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import type { Resource } from '@opentelemetry/resources';
import type { IMetricReader } from '@opentelemetry/sdk-metrics';
import { transient } from '@antiphon/kernel';
import { setActiveTracing } from './active-tracing.js';
import type { Logger } from './logger.js';
import { closeMetrics, openMetrics } from './metrics.js';
import { readTelemetryEnv } from './telemetry-env.js';
import type { TelemetryEnv } from './telemetry-env.js';

export interface TelemetryOptions {
  readonly service: string;
  /** Unique for this incarnation of the process. */
  readonly instanceId: string;
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
}

export interface Telemetry {
  /** Sends what waits, within a few seconds; the last user in this process turns it off. Safe to call twice. */
  stop(): Promise<void>;
}

/** What is sent when a process ends has this long: a collector that is away must not hold it up. */
const STOP_MS = 3_000;

const resourceOf = ({ service, instanceId, version }: TelemetryOptions, settings: TelemetryEnv): Resource =>
  defaultResource().merge(
    resourceFromAttributes({
      'service.namespace': 'antiphon',
      'service.version': version,
      'service.instance.id': instanceId,
      ...settings.resourceAttributes,
      'service.name':
        settings.serviceName ?? settings.resourceAttributes['service.name'] ?? `antiphon-${service}`,
      // Beside the standard name, which one variable may give to all services alike.
      'antiphon.service': service,
    }),
  );

/** What the libraries complain of: above all that a collector cannot be reached. */
const listenToDiagnostics = (logger: Logger): void => {
  const say = (level: 'error' | 'warn') => (message: string) =>
    logger[level]({ telemetry: message }, 'telemetry could not be sent or read');
  const quiet = (): void => undefined;
  diag.setLogger(
    { error: say('error'), warn: say('warn'), info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
};

const within = async (ms: number, work: Promise<unknown>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(transient('TELEMETRY.TIMEOUT', `not sent within ${ms} ms`)), ms);
  });
  await Promise.race([work, limit]).finally(() => clearTimeout(timer));
};

// Loaded only where it is used: a process that exports nothing has neither its memory nor its start-up time.
const openTracing = async (settings: TelemetryEnv, resource: Resource): Promise<() => Promise<void>> => {
  if (settings.traces === null) return () => Promise.resolve();
  const { createSpanExport } = await import('./span-export.js');
  const { tracing, provider } = createSpanExport(settings.traces, settings, resource);
  setActiveTracing(tracing);
  return () => {
    setActiveTracing(null);
    return provider.shutdown();
  };
};

const metricReaders = async ({ metrics, metricIntervalMs }: TelemetryEnv): Promise<IMetricReader[]> => {
  if (metrics === null) return [];
  const { createMetricReader } = await import('./metric-export.js');
  return [createMetricReader(metrics, metricIntervalMs)];
};

const start = async (options: TelemetryOptions): Promise<() => Promise<void>> => {
  const settings = readTelemetryEnv(options.env);
  const resource = resourceOf(options, settings);
  const exporting = settings.traces !== null || settings.metrics !== null;
  if (exporting) listenToDiagnostics(options.logger);
  openMetrics(resource, await metricReaders(settings));
  const endTracing = await openTracing(settings, resource);
  return async () => {
    const ends = await Promise.allSettled([within(STOP_MS, endTracing()), within(STOP_MS, closeMetrics())]);
    for (const end of ends)
      if (end.status === 'rejected')
        options.logger.warn({ err: end.reason as unknown }, 'the last telemetry could not be sent');
    if (exporting) diag.disable();
  };
};

let users = 0;
let running: Promise<() => Promise<void>> | null = null;

/**
 * Traces and metrics of this process, as OpenTelemetry's variables say: without an endpoint nothing is traced and
 * nothing is sent, and metrics are there to be read. Throws `SERVICE.BAD_ENVIRONMENT`. One for each process:
 * services that share one (in tests) share the first one's.
 */
export const startTelemetry = async (options: TelemetryOptions): Promise<Telemetry> => {
  users++;
  running ??= start(options);
  const mine = running;
  const end = await mine.catch((error: unknown) => {
    users--;
    if (running === mine) running = null;
    throw error;
  });
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    if (--users > 0) return;
    running = null;
    await end();
  };
  return { stop: () => (stopped ??= stop()) };
};
