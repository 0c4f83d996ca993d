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

/** Labels of a metric: few values each, known in advance. Never an id, never what a person or a model wrote. */
export type Labels = Readonly<Record<string, string>>;

interface Registry {
  readonly provider: MeterProvider;
  readonly reader: PrometheusExporter;
}

// Read by whoever asks for /metrics through the service's own server: this one never listens.
const createRegistry = (resource?: Resource, readers: readonly IMetricReader[] = []): Registry => {
  const reader = new PrometheusExporter({ preventServerStart: true });
  const provider = new MeterProvider({ ...(resource ? { resource } : {}), readers: [reader, ...readers] });
  return { provider, reader };
};

/** One for each process, as there is one /metrics. */
let registry: Registry | null = null;
const current = (): Registry => (registry ??= createRegistry());
const meter = () => current().provider.getMeter('antiphon');

/** Begins anew, with what the process is and where else its metrics go. */
export const openMetrics = (resource: Resource, readers: readonly IMetricReader[]): void => {
  registry = createRegistry(resource, readers);
};

/** Sends what has not been sent, and forgets everything. */
export const closeMetrics = async (): Promise<void> => {
  const closing = registry;
  registry = null;
  await closing?.provider.shutdown();
};

/** Made when it is first used, in the registry that is there then. */
const late = <I>(make: () => I): (() => I) => {
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

/** `name` as it stands at /metrics, without `_total`. */
export const defineCounter = (name: string, description: string): CounterMetric => {
  const counter = late((): Counter<Attributes> => meter().createCounter(name, { description }));
  return { add: (amount, labels) => counter().add(amount, labels) };
};

/** Upper bounds in seconds, from what a hot path takes to what a long answer takes. */
export const SECONDS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

export const defineHistogram = (
  name: string,
  description: string,
  { unit = 's', buckets = SECONDS }: { readonly unit?: string; readonly buckets?: readonly number[] } = {},
): HistogramMetric => {
  const advice = { explicitBucketBoundaries: [...buckets] };
  const histogram = late((): Histogram<Attributes> =>
    meter().createHistogram(name, { description, unit, advice }),
  );
  return { record: (value, labels) => histogram().record(value, labels) };
};

export type Gauges<Name extends string> = (
  report: (name: Name, value: number, labels?: Labels) => void,
) => void | Promise<void>;

/**
 * Values that are asked for only when somebody reads the metrics; `descriptions` by name, as they stand at /metrics.
 * Answers how to stop being asked.
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

/** All metrics of the process in Prometheus' text form, and what could not be read. */
export const renderMetrics = async (): Promise<{
  readonly text: string;
  readonly errors: readonly unknown[];
}> => {
  const { resourceMetrics, errors } = await current().reader.collect();
  const text = new PrometheusSerializer(undefined, false, undefined, false, true).serialize(resourceMetrics);
  return { text: text.endsWith('\n') ? text : `${text}\n`, errors };
};
