import type {
  Attributes,
  BatchObservableCallback,
  Counter,
  Histogram,
  ObservableGauge,
} from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import type { Resource } from '@opentelemetry/resources';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import type { IMetricReader } from '@opentelemetry/sdk-metrics';
import { isAppError } from '@antiphon/kernel';

/**
 * Labels of a metric: few values each, known in advance. Never an id, never text of a person or a
 * model.
 */
export type Labels = Readonly<Record<string, string>>;

interface Registry {
  readonly provider: MeterProvider;
  readonly reader: PrometheusExporter;
}

// The exporter's own server never listens: /metrics is a route of the service.
const createRegistry = (resource?: Resource, readers: readonly IMetricReader[] = []): Registry => {
  const reader = new PrometheusExporter({ preventServerStart: true });
  const provider = new MeterProvider({ resource, readers: [reader, ...readers] });
  return { provider, reader };
};

/** The one registry of the process, as there is one /metrics. */
let registry: Registry | null = null;
const current = (): Registry => (registry ??= createRegistry());
const meter = () => current().provider.getMeter('antiphon');

/** Replaces the registry by one with this resource and these further readers. */
export const openMetrics = (resource: Resource, readers: readonly IMetricReader[]): void => {
  registry = createRegistry(resource, readers);
};

/** Exports the remaining data and drops the registry. */
export const closeMetrics = async (): Promise<void> => {
  const closing = registry;
  registry = null;
  await closing?.provider.shutdown();
};

/** Creates an instrument at its first use, and again after the registry was replaced. */
const lazy = <I>(make: () => I): (() => I) => {
  let made: { readonly of: Registry; readonly instrument: I } | null = null;
  return () => {
    const of = current();
    if (made?.of !== of) made = { of, instrument: make() };
    return made.instrument;
  };
};

export interface CounterMetric {
  add(amount: number, labels?: Labels): void;
}
export interface HistogramMetric {
  record(value: number, labels?: Labels): void;
}

/** Defines a counter; `name` is that of /metrics, without `_total`. */
export const defineCounter = (name: string, description: string): CounterMetric => {
  const counter = lazy((): Counter<Attributes> => meter().createCounter(name, { description }));
  return { add: (amount, labels) => counter().add(amount, labels) };
};

/** Upper bounds of histogram buckets, seconds: from a hot path to a long model call. */
export const SECONDS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

export const defineHistogram = (
  name: string,
  description: string,
  { unit = 's', buckets = SECONDS }: { readonly unit?: string; readonly buckets?: readonly number[] } = {},
): HistogramMetric => {
  const advice = { explicitBucketBoundaries: [...buckets] };
  const histogram = lazy((): Histogram<Attributes> =>
    meter().createHistogram(name, { description, unit, advice }),
  );
  return { record: (value, labels) => histogram().record(value, labels) };
};

export type Gauges<Name extends string> = (
  report: (name: Name, value: number, labels?: Labels) => void,
) => void | Promise<void>;

/**
 * Registers gauges whose values are read only when the metrics are; `descriptions` by name, as in
 * /metrics. Returns a function that removes them.
 */
export const observeGauges = <Name extends string>(
  descriptions: Readonly<Record<Name, string>>,
  observe: Gauges<Name>,
): (() => void) => {
  const own = meter();
  const made = new Map<string, ObservableGauge>(
    Object.entries<string>(descriptions).map(([name, description]) => [
      name,
      own.createObservableGauge(name, { description }),
    ]),
  );
  const callback: BatchObservableCallback = (result) =>
    observe((name, value, labels) => result.observe(made.get(name) as ObservableGauge, value, labels));
  own.addBatchObservableCallback(callback, [...made.values()]);
  return () => own.removeBatchObservableCallback(callback, [...made.values()]);
};

export const METRICS_MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Renders all metrics of the process in Prometheus' text form; also returns the errors of failed
 * gauges.
 */
export const renderMetrics = async (): Promise<{
  readonly text: string;
  readonly errors: readonly unknown[];
}> => {
  const { resourceMetrics, errors } = await current().reader.collect();
  const text = new PrometheusSerializer(undefined, false, undefined, false, true).serialize(resourceMetrics);
  return { text: text.endsWith('\n') ? text : `${text}\n`, errors };
};

/** Place where an error left the system. */
export type ErrorPlace = 'frame' | 'http' | 'request' | 'message' | 'provider' | 'turn';

const errors = defineCounter('antiphon_errors', 'Errors by where they came out, their kind and code');

/** Returns the name of an error in spans and metrics: its code, or its class. */
export const errorTypeOf = (error: unknown): string =>
  isAppError(error) ? error.code : error instanceof Error ? error.name : 'unknown';

/** Counts an error by code; an error that is not an AppError by its class. */
export const countError = (at: ErrorPlace, error: unknown): void =>
  errors.add(1, { at, kind: isAppError(error) ? error.kind : 'bug', code: errorTypeOf(error) });

/** Counts a failure that has no error object: of a provider or a turn. */
export const countFailure = (at: ErrorPlace, kind: string, code: string): void =>
  errors.add(1, { at, kind, code });
