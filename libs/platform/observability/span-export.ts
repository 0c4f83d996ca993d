import type { Context } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { Resource } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { ReadableSpan, Sampler, Span, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { ActiveTracing } from './active-tracing.js';
import { MAX_ATTRIBUTE_CHARS, allowedAttributes } from './span-attributes.js';
import { createSpanIds } from './span-ids.js';
import type { OtlpTarget, TelemetryEnv } from './telemetry-env.js';

const hasText = ({ events, links, status }: ReadableSpan): boolean =>
  events.length > 0 || links.length > 0 || status.message !== undefined;

/** A span as it may leave the process: no attribute but the allowed ones, no event, no status text. */
export const toExportable = (span: ReadableSpan): ReadableSpan => {
  const attributes = allowedAttributes(span.attributes);
  // Most spans are ours, and have nothing to lose; one that has ended does not change any more.
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
    links: span.links.map(({ context }) => ({ context })),
    // An exception's event has its message and stack: the log line of the same span has them, without secrets.
    events: [],
    resource: span.resource,
    instrumentationScope: span.instrumentationScope,
    droppedAttributesCount: span.droppedAttributesCount + dropped,
    droppedEventsCount: span.droppedEventsCount + span.events.length,
    droppedLinksCount: span.droppedLinksCount,
  };
};

/** Lets nothing through to `inner` but what `toExportable` leaves. */
export const onlyExportable = (inner: SpanProcessor): SpanProcessor => ({
  onStart: (span: Span, parent: Context) => inner.onStart(span, parent),
  onEnd: (span) => inner.onEnd(toExportable(span)),
  forceFlush: () => inner.forceFlush(),
  shutdown: () => inner.shutdown(),
});

const createSampler = ({ name, ratio }: TelemetryEnv['sampler']): Sampler => {
  const base = name.endsWith('always_off')
    ? new AlwaysOffSampler()
    : name.endsWith('traceidratio')
      ? new TraceIdRatioBasedSampler(ratio)
      : new AlwaysOnSampler();
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root: base }) : base;
};

/** The tracer of a process, and how it ends: what is waiting is sent first. */
export interface SpanExport {
  readonly tracing: ActiveTracing;
  readonly provider: TracerProvider;
}

export const createSpanExport = (
  target: OtlpTarget,
  { sampler, batch }: Pick<TelemetryEnv, 'sampler' | 'batch'>,
  resource: Resource,
): SpanExport => {
  const { url } = target;
  const exporter =
    target.protocol === 'http/json' ? new JsonExporter({ url }) : new ProtobufExporter({ url });
  const ids = createSpanIds();
  const provider = new TracerProvider({
    resource,
    sampler: createSampler(sampler),
    idGenerator: ids,
    spanLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_CHARS },
    spanProcessors: [onlyExportable(new BatchSpanProcessor({ exporter, ...batch }))],
  });
  return { tracing: { tracer: provider.getTracer('antiphon'), ids }, provider };
};
