import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Span } from '@opentelemetry/api';
import { errorTypeOf } from './metrics.js';
import { currentContext, runWithContext } from './request-context.js';
import type { RequestContext } from './request-context.js';
import type { SpanAttributes } from './span-attributes.js';
import { activeTracing, formatTraceparent, parseTraceparent, spanIdOf } from './trace-context.js';
import type { ActiveTracing } from './trace-context.js';

export type SpanRole = 'internal' | 'server' | 'client' | 'consumer';

export interface SpanStart {
  /** One of few values: no id, no text of a person or a model. */
  readonly name: string;
  /** Default `internal`. */
  readonly role?: SpanRole;
  readonly attributes?: SpanAttributes;
}

/** An open span. Its attributes pass the allow-list (span-attributes.ts). */
export interface OpenSpan {
  set(attributes: SpanAttributes): void;
  /** Marks the work as failed, by error code or class; messages never enter a span. */
  fail(errorType: string): void;
  end(): void;
}

const NO_SPAN: OpenSpan = { set: () => undefined, fail: () => undefined, end: () => undefined };

const KINDS: Readonly<Record<SpanRole, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
};

const liveSpan = (span: Span): OpenSpan => ({
  set: (attributes) => void span.setAttributes(attributes),
  fail: (errorType) => {
    span.setAttribute('error.type', errorType);
    span.setStatus({ code: SpanStatusCode.ERROR });
  },
  end: () => span.end(),
});

const contextAttributesOf = ({
  workspace,
  correlationId,
  sessionId,
  turnId,
}: RequestContext): SpanAttributes => ({
  'antiphon.request.id': correlationId,
  'antiphon.workspace': workspace,
  'gen_ai.conversation.id': sessionId,
  'antiphon.turn.id': turnId,
});

/**
 * Returns whether a span repeats the ids of its context. Calls of services and the database, half
 * of all spans, leave them to their parents: text is the main cost of a span.
 */
const hasContextAttributes = (role: SpanRole, attributes: SpanAttributes): boolean =>
  role !== 'client' || attributes['gen_ai.operation.name'] !== undefined;

const parentOf = (traceparent: string): Context | null => {
  const parent = parseTraceparent(traceparent);
  if (!parent?.sampled) return null;
  const { traceId, spanId } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1 });
};

/** Returns the parent of a new span; null in a trace that is not sampled. */
const parentInContext = ({ ids }: ActiveTracing, { traceparent, begins }: RequestContext): Context | null => {
  if (!begins) return parentOf(traceparent);
  ids.setNext({ traceId: parseTraceparent(traceparent)?.traceId ?? '' });
  return ROOT_CONTEXT;
};

const traceparentOf = (span: Span): string => {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return formatTraceparent({ traceId, spanId, sampled: (traceFlags & 1) === 1 });
};

/**
 * Opens a span and returns it with the context of the work inside; the caller ends it. With tracing
 * off, or in a trace that is not sampled, no span is made and the context is returned unchanged.
 */
export const openSpan = (
  { name, role = 'internal', attributes = {} }: SpanStart,
  context: RequestContext,
): { readonly span: OpenSpan; readonly context: RequestContext } => {
  const tracing = activeTracing();
  const parent = tracing && parentInContext(tracing, context);
  if (!parent) return { span: NO_SPAN, context };
  const options = {
    kind: KINDS[role],
    attributes: {
      ...(hasContextAttributes(role, attributes) ? contextAttributesOf(context) : {}),
      ...attributes,
    } as Attributes,
  };
  const span = tracing.tracer.startSpan(name, options, parent);
  const { begins: _begun, ...inside } = context;
  return { span: liveSpan(span), context: { ...inside, traceparent: traceparentOf(span) } };
};

const runInSpan = async <T>(span: OpenSpan, work: (span: OpenSpan) => Promise<T>): Promise<T> => {
  try {
    return await work(span);
  } catch (error) {
    span.fail(errorTypeOf(error));
    throw error;
  } finally {
    span.end();
  }
};

/**
 * Runs the work inside a span of the current context. A thrown error fails the span and is
 * rethrown. Outside of any request, and with tracing off, the work runs without a span.
 */
export const withSpan = <T>(start: SpanStart, work: (span: OpenSpan) => Promise<T>): Promise<T> => {
  const current = activeTracing() ? currentContext() : undefined;
  if (!current) return work(NO_SPAN);
  const { span, context } = openSpan(start, current);
  return span === NO_SPAN ? work(span) : runWithContext(context, () => runInSpan(span, work));
};

/**
 * Returns the trace position of work that may outlive its process (a turn, a run): the span that
 * its UUID stands for. Spans of any process can be its children; `recordSpan` writes it at the end.
 */
export const namedTraceparent = (traceparent: string | undefined, uuid: string): string | undefined => {
  const parent = parseTraceparent(traceparent);
  return parent ? formatTraceparent({ ...parent, spanId: spanIdOf(uuid) }) : undefined;
};

export interface EndedSpan extends SpanStart {
  /** Source of the span's id. */
  readonly uuid: string;
  /** The span that requested the work. */
  readonly traceparent: string | undefined;
  /** Ms since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Set when the work failed. */
  readonly errorType?: string;
}

/**
 * Writes the span of finished work. Only the process that commits the work's end may call it, once.
 */
export const recordSpan = (ended: EndedSpan): void => {
  const tracing = activeTracing();
  const parent = tracing && parentOf(ended.traceparent ?? '');
  if (!parent) return;
  const { name, role = 'internal', attributes, uuid, startedAt, endedAt, errorType } = ended;
  tracing.ids.setNext({ spanId: spanIdOf(uuid) });
  const options = { kind: KINDS[role], attributes: { ...attributes } as Attributes, startTime: startedAt };
  const span = tracing.tracer.startSpan(name, options, parent);
  if (errorType !== undefined) liveSpan(span).fail(errorType);
  span.end(endedAt);
};
