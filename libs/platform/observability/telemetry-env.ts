import { invalid } from '@antiphon/kernel';
import { z } from 'zod';

const blankIsMissing = (value: unknown): unknown => (value === '' ? undefined : value);
const optional = <S extends z.ZodType>(schema: S) => z.preprocess(blankIsMissing, schema.optional());
const milliseconds = optional(z.coerce.number().int().positive());
const count = optional(z.coerce.number().int().positive());
const endpoint = optional(z.url({ protocol: /^https?$/ }));
const protocol = optional(z.enum(['http/protobuf', 'http/json']));
const exporter = optional(z.enum(['otlp', 'none']));

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type SamplerName = (typeof SAMPLERS)[number];

/** OpenTelemetry's own variables (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). */
const TelemetryVariables = z.object({
  OTEL_SDK_DISABLED: optional(z.string()),
  OTEL_SERVICE_NAME: optional(z.string().max(200)),
  OTEL_RESOURCE_ATTRIBUTES: optional(z.string().max(4_000)),
  OTEL_TRACES_EXPORTER: exporter,
  OTEL_METRICS_EXPORTER: exporter,
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol,
  OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: protocol,
  OTEL_TRACES_SAMPLER: optional(z.enum(SAMPLERS)),
  OTEL_TRACES_SAMPLER_ARG: optional(z.coerce.number().min(0).max(1)),
  OTEL_BSP_SCHEDULE_DELAY: milliseconds,
  OTEL_BSP_EXPORT_TIMEOUT: milliseconds,
  OTEL_BSP_MAX_QUEUE_SIZE: count,
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: count,
  OTEL_METRIC_EXPORT_INTERVAL: milliseconds,
});
type TelemetryVariables = z.output<typeof TelemetryVariables>;

export interface OtlpTarget {
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
}

export interface TelemetryEnv {
  /** Null: tracing is off. */
  readonly traces: OtlpTarget | null;
  /** Null: metrics are only read, at `/metrics`. */
  readonly metrics: OtlpTarget | null;
  readonly serviceName: string | undefined;
  readonly resourceAttributes: Readonly<Record<string, string>>;
  readonly sampler: { readonly name: SamplerName; readonly ratio: number };
  /** As the SDK takes them; what is not set has the SDK's default. */
  readonly batch: {
    readonly scheduledDelayMillis?: number;
    readonly exportTimeoutMillis?: number;
    readonly maxQueueSize?: number;
    readonly maxExportBatchSize?: number;
  };
  readonly metricIntervalMs: number;
}

const under = (base: string, path: string): string => `${base.replace(/\/$/, '')}/${path}`;

const targetOf = (variables: TelemetryVariables, signal: 'TRACES' | 'METRICS'): OtlpTarget | null => {
  if (variables.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return null;
  if (variables[`OTEL_${signal}_EXPORTER`] === 'none') return null;
  const base = variables.OTEL_EXPORTER_OTLP_ENDPOINT;
  const url =
    variables[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`] ?? (base && under(base, `v1/${signal.toLowerCase()}`));
  if (url === undefined) return null;
  const protocol =
    variables[`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`] ?? variables.OTEL_EXPORTER_OTLP_PROTOCOL;
  return { url, protocol: protocol ?? 'http/protobuf' };
};

const pairsOf = (text: string | undefined): Record<string, string> =>
  Object.fromEntries(
    (text ?? '').split(',').flatMap((pair) => {
      const [, name, value] = /^\s*([\w.-]+)\s*=\s*([^\s]*)\s*$/.exec(pair) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value]];
    }),
  );

const batchOf = (variables: TelemetryVariables): TelemetryEnv['batch'] => {
  const settings = {
    scheduledDelayMillis: variables.OTEL_BSP_SCHEDULE_DELAY,
    exportTimeoutMillis: variables.OTEL_BSP_EXPORT_TIMEOUT,
    maxQueueSize: variables.OTEL_BSP_MAX_QUEUE_SIZE,
    maxExportBatchSize: variables.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
};

/**
 * Reads what OpenTelemetry's variables say; throws `SERVICE.BAD_ENVIRONMENT` naming each that is wrong, never its value.
 * Headers, certificates, compression and timeouts of the exporter (`OTEL_EXPORTER_OTLP_HEADERS`, …) its library reads.
 */
export const readTelemetryEnv = (env: Readonly<Record<string, string | undefined>>): TelemetryEnv => {
  const parsed = TelemetryVariables.safeParse(env);
  if (!parsed.success) {
    const names = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw invalid('SERVICE.BAD_ENVIRONMENT', `the service cannot start: ${names.join('; ')}`);
  }
  const variables = parsed.data;
  return {
    traces: targetOf(variables, 'TRACES'),
    metrics: targetOf(variables, 'METRICS'),
    serviceName: variables.OTEL_SERVICE_NAME,
    resourceAttributes: pairsOf(variables.OTEL_RESOURCE_ATTRIBUTES),
    sampler: {
      name: variables.OTEL_TRACES_SAMPLER ?? 'parentbased_always_on',
      ratio: variables.OTEL_TRACES_SAMPLER_ARG ?? 1,
    },
    batch: batchOf(variables),
    metricIntervalMs: variables.OTEL_METRIC_EXPORT_INTERVAL ?? 60_000,
  };
};
