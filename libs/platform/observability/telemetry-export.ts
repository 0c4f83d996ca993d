import { context, logs, propagation, trace } from '@opentelemetry/api';
import { OTLPMetricExporter as JsonMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPMetricExporter as ProtobufMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter as JsonTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { Resource } from '@opentelemetry/resources';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import type { IMetricReader } from '@opentelemetry/sdk-metrics';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import { MAX_ATTRIBUTE_CHARS, allowedAttributes } from './span-attributes.js';
import { SpanIds, setActiveTracing } from './trace-context.js';

const hasText = ({ events, links, status }: ReadableSpan): boolean =>
  events.length > 0 || links.length > 0 || status.message !== undefined;

/** Returns a span without all but the allowed attributes, without events and status text. */
const toExportable = (span: ReadableSpan): ReadableSpan => {
  const attributes = allowedAttributes(span.attributes);
  // Most spans are ours and have nothing to remove; an ended span does not change any more.
  if (attributes === span.attributes && !hasText(span)) return span;
  const dropped = Object.keys(span.attributes).length - Object.keys(attributes).length;
  return {
    name: span.name,
    kind: span.kind,
    spanContext: () => span.spanContext(),
    ...(span.parentSpanContext ? { parentSpanContext: span.parentSpanContext } : {}),
    startTime: span.startTime,
    endTime: span.endTime,
    duration: span.duration,
    ended: span.ended,
    status: { code: span.status.code },
    attributes,
    links: span.links.map((link) => ({ context: link.context })),
    // An exception's event has its message and stack. The span's log line has them, redacted.
    events: [],
    resource: span.resource,
    instrumentationScope: span.instrumentationScope,
    droppedAttributesCount: span.droppedAttributesCount + dropped,
    droppedEventsCount: span.droppedEventsCount + span.events.length,
    droppedLinksCount: span.droppedLinksCount,
  };
};

/** Wraps an exporter so that it exports only what `toExportable` leaves (docs/adr/0062). */
export const onlyExportable = (inner: SpanExporter): SpanExporter => ({
  export: (spans, done) => inner.export(spans.map(toExportable), done),
  forceFlush: () => inner.forceFlush?.() ?? Promise.resolve(),
  shutdown: () => inner.shutdown(),
});

/** OTLP protocols that the exporters speak. */
export type OtlpProtocol = 'http/protobuf' | 'http/json';

/**
 * Starts to export spans. The SDK and its exporter read sampler, batching, limits, endpoint and
 * headers from the `OTEL_*` variables. Returns a function that exports the remaining spans and
 * stops.
 */
export const startTracing = (resource: Resource, protocol: OtlpProtocol): (() => Promise<void>) => {
  const ids = new SpanIds();
  const exporter = protocol === 'http/json' ? new JsonTraceExporter() : new ProtobufTraceExporter();
  const sdk = new NodeSDK({
    resource,
    autoDetectResources: false,
    traceExporter: onlyExportable(exporter),
    idGenerator: ids,
    spanLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_CHARS },
    // Metrics have their own registry, which /metrics reads as well; log lines go to standard
    // output.
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  setActiveTracing({ tracer: trace.getTracer('antiphon'), ids });
  return async () => {
    setActiveTracing(null);
    // A later start in the same process registers its own.
    for (const api of [trace, context, propagation, logs]) api.disable();
    await sdk.shutdown();
  };
};

/** Creates a reader that exports all metrics of the process periodically. */
export const createMetricReader = (protocol: OtlpProtocol, intervalMs: number): IMetricReader =>
  new PeriodicExportingMetricReader({
    exporter: protocol === 'http/json' ? new JsonMetricExporter() : new ProtobufMetricExporter(),
    exportIntervalMillis: intervalMs,
    exportTimeoutMillis: Math.min(intervalMs, 30_000),
  });
