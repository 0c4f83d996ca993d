import { DiagLogLevel, diag } from '@opentelemetry/api';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import type { Resource } from '@opentelemetry/resources';
import { invalid, transient, withTimeout } from '@antiphon/kernel';
import { z } from 'zod';
import type { Logger } from './logger.js';
import { closeMetrics, openMetrics } from './metrics.js';

export interface TelemetryOptions {
  readonly service: string;
  /** Unique for this incarnation of the process. */
  readonly instanceId: string;
  readonly version: string;
  /** Must be `process.env` where it has `OTEL_*` variables: the SDK reads them there. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
}

export interface Telemetry {
  /** Exports the remaining data within a few seconds and stops. Safe to call twice. */
  stop(): Promise<void>;
}

/** Time limit of the last export, ms: an unavailable collector must not delay a shutdown. */
const STOP_MS = 3_000;
const DEFAULT_METRIC_INTERVAL_MS = 60_000;

const optional = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === '' ? undefined : value), schema.optional());
const positive = optional(z.coerce.number().int().positive());
const endpoint = optional(z.url({ protocol: /^https?$/ }));
const protocol = optional(z.enum(['http/protobuf', 'http/json']));
const exporter = optional(z.enum(['otlp', 'none']));

/** Variables whose wrong values the SDK would only warn about and then ignore. */
const TelemetryVariables = z.object({
  OTEL_SDK_DISABLED: optional(z.string()),
  OTEL_TRACES_EXPORTER: exporter,
  OTEL_METRICS_EXPORTER: exporter,
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol,
  OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: protocol,
  OTEL_TRACES_SAMPLER: optional(
    z.enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ]),
  ),
  OTEL_TRACES_SAMPLER_ARG: optional(z.coerce.number().min(0).max(1)),
  OTEL_BSP_SCHEDULE_DELAY: positive,
  OTEL_BSP_EXPORT_TIMEOUT: positive,
  OTEL_BSP_MAX_QUEUE_SIZE: positive,
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: positive,
  OTEL_METRIC_EXPORT_INTERVAL: positive,
});
type TelemetryVariables = z.output<typeof TelemetryVariables>;

/**
 * Checks the `OTEL_*` variables; throws `SERVICE.BAD_ENVIRONMENT` with their names, without their
 * values.
 */
const checkVariables = (env: TelemetryOptions['env']): TelemetryVariables => {
  const parsed = TelemetryVariables.safeParse(env);
  if (parsed.success) return parsed.data;
  const names = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw invalid('SERVICE.BAD_ENVIRONMENT', `the service cannot start: ${names.join('; ')}`);
};

/** Returns true if a signal is exported. The SDK would export to localhost without an endpoint. */
const isExported = (variables: TelemetryVariables, signal: 'TRACES' | 'METRICS'): boolean =>
  variables.OTEL_SDK_DISABLED?.toLowerCase() !== 'true' &&
  variables[`OTEL_${signal}_EXPORTER`] !== 'none' &&
  (variables[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`] ?? variables.OTEL_EXPORTER_OTLP_ENDPOINT) !== undefined;

const protocolOf = (variables: TelemetryVariables, signal: 'TRACES' | 'METRICS') =>
  variables[`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`] ??
  variables.OTEL_EXPORTER_OTLP_PROTOCOL ??
  'http/protobuf';

const resourceOf = ({ service, instanceId, version }: TelemetryOptions): Resource =>
  defaultResource()
    .merge(
      resourceFromAttributes({
        'service.namespace': 'antiphon',
        'service.version': version,
        'service.instance.id': instanceId,
        'service.name': `antiphon-${service}`,
      }),
    )
    .merge(detectResources({ detectors: [envDetector] }))
    // The standard name may be the same for all services, by one variable.
    .merge(resourceFromAttributes({ 'antiphon.service': service }));

/** Logs the libraries' warnings, for example that a collector is unreachable. */
const logDiagnostics = (logger: Logger): void => {
  const write = (level: 'error' | 'warn') => (message: string) =>
    logger[level]({ telemetry: message }, 'telemetry not exported');
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: write('error'), warn: write('warn'), info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
};

const start = async (options: TelemetryOptions): Promise<() => Promise<void>> => {
  const { env, logger } = options;
  const variables = checkVariables(env);
  const [hasTraces, hasMetrics] = [isExported(variables, 'TRACES'), isExported(variables, 'METRICS')];
  const resource = resourceOf(options);
  if (!hasTraces && !hasMetrics) {
    openMetrics(resource, []);
    return closeMetrics;
  }
  // Loaded only here: a process that exports nothing saves its memory and start-up time.
  const { createMetricReader, startTracing } = await import('./telemetry-export.js');
  logDiagnostics(logger);
  const intervalMs = variables.OTEL_METRIC_EXPORT_INTERVAL ?? DEFAULT_METRIC_INTERVAL_MS;
  openMetrics(resource, hasMetrics ? [createMetricReader(protocolOf(variables, 'METRICS'), intervalMs)] : []);
  const stopTracing = hasTraces ? startTracing(resource, protocolOf(variables, 'TRACES')) : undefined;
  // Again, because the SDK installs its own logger when OTEL_LOG_LEVEL is set.
  logDiagnostics(logger);
  return async () => {
    const onTimeout = () => transient('TELEMETRY.TIMEOUT', `not sent within ${STOP_MS} ms`);
    const stopped = await Promise.allSettled(
      [stopTracing?.() ?? Promise.resolve(), closeMetrics()].map((work) =>
        withTimeout(work, STOP_MS, onTimeout),
      ),
    );
    for (const result of stopped)
      if (result.status === 'rejected')
        logger.warn({ err: result.reason as unknown }, 'last telemetry not exported');
    diag.disable();
  };
};

let users = 0;
let running: Promise<() => Promise<void>> | null = null;

/**
 * Starts traces and metrics of this process by OpenTelemetry's `OTEL_*` variables. Without an
 * endpoint nothing is traced or exported, and metrics can be read from `/metrics`. Throws
 * `SERVICE.BAD_ENVIRONMENT`. Services that share a process (in tests) share the first one's
 * telemetry.
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
