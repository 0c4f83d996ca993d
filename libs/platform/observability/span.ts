import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Span } from '@opentelemetry/api';
import { isAppError } from '@antiphon/kernel';
import { activeTracing } from './active-tracing.js';
import type { ActiveTracing } from './active-tracing.js';
import { currentContext, runWithContext } from './request-context.js';
import type { RequestContext } from './request-context.js';
import type { SpanAttributes } from './span-attributes.js';
import { spanIdOf } from './span-ids.js';
import { formatTraceparent, parseTraceparent } from './trace-context.js';

export type SpanRole = 'internal' | 'server' | 'client' | 'consumer';

export interface SpanStart {
  /** Of few different values: no id, nothing that a person or a model wrote. */
  readonly name: string;
  /** Default `internal`. */
  readonly role?: SpanRole;
  readonly attributes?: SpanAttributes;
}

/** A span that is open. Its names and values go through the allowlist (span-attributes.ts). */
export interface OpenSpan {
  set(attributes: SpanAttributes): void;
  /** The work has failed, as an error code or class says it; messages never enter a span. */
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

/** What an error is called in a span and a metric: its code, or its class. */
export const errorTypeOf = (error: unknown): string =>
  isAppError(error) ? error.code : error instanceof Error ? error.name : 'unknown';

const liveSpan = (span: Span): OpenSpan => ({
  set: (attributes) => void span.setAttributes(attributes),
  fail: (errorType) => {
    span.setAttribute('error.type', errorType);
    span.setStatus({ code: SpanStatusCode.ERROR });
  },
  end: () => span.end(),
});

const knownOf = ({ workspace, correlationId, sessionId, turnId }: RequestContext): SpanAttributes => ({
  'antiphon.request.id': correlationId,
  'antiphon.workspace': workspace,
  'gen_ai.conversation.id': sessionId,
  'antiphon.turn.id': turnId,
});

/** Calls of other services and the database, half of all spans, leave it to their parents: sending text is what spans cost. */
const saysWhose = (role: SpanRole, attributes: SpanAttributes): boolean =>
  role !== 'client' || attributes['gen_ai.operation.name'] !== undefined;

const parentOf = (traceparent: string): Context | null => {
  const parent = parseTraceparent(traceparent);
  if (!parent?.sampled) return null;
  const { traceId, spanId } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1 });
};

/** The parent of what begins here; null in a trace that is not sampled. */
const startingPoint = ({ ids }: ActiveTracing, { traceparent, begins }: RequestContext): Context | null => {
  if (!begins) return parentOf(traceparent);
  ids.next({ traceId: parseTraceparent(traceparent)?.traceId ?? '' });
  return ROOT_CONTEXT;
};

const traceparentOf = (span: Span): string => {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return formatTraceparent({ traceId, spanId, sampled: (traceFlags & 1) === 1 });
};

/**
 * Opens a span under a context, and answers it with the context of what happens inside. The caller ends it.
 * With tracing off, or in a trace that is not sampled, nothing is made and the context stays as it is.
 */
export const openSpan = (
  { name, role = 'internal', attributes = {} }: SpanStart,
  context: RequestContext,
): { readonly span: OpenSpan; readonly context: RequestContext } => {
  const tracing = activeTracing();
  const parent = tracing && startingPoint(tracing, context);
  if (!parent) return { span: NO_SPAN, context };
  const options = {
    kind: KINDS[role],
    attributes: { ...(saysWhose(role, attributes) ? knownOf(context) : {}), ...attributes } as Attributes,
  };
  const span = tracing.tracer.startSpan(name, options, parent);
  const { begins: _begun, ...inside } = context;
  return { span: liveSpan(span), context: { ...inside, traceparent: traceparentOf(span) } };
};

const observed = async <T>(span: OpenSpan, work: (span: OpenSpan) => Promise<T>): Promise<T> => {
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
 * Does the work inside a span of the current context; an error that it throws fails the span and passes through.
 * Outside of any request, and with tracing off, it just does the work.
 */
export const withSpan = <T>(start: SpanStart, work: (span: OpenSpan) => Promise<T>): Promise<T> => {
  const current = activeTracing() ? currentContext() : undefined;
  if (!current) return work(NO_SPAN);
  const { span, context } = openSpan(start, current);
  return span === NO_SPAN ? work(span) : runWithContext(context, () => observed(span, work));
};

/**
 * The position, in a trace, of a unit of work that may outlive the process that began it (a turn, a run): the span
 * that its UUID stands for. Its children hang there, whichever process makes them; `recordSpan` writes it in the end.
 */
export const namedTraceparent = (traceparent: string | undefined, uuid: string): string | undefined => {
  const parent = parseTraceparent(traceparent);
  return parent ? formatTraceparent({ ...parent, spanId: spanIdOf(uuid) }) : undefined;
};

export interface EndedSpan extends SpanStart {
  /** What its span id is made of. */
  readonly uuid: string;
  /** The span under which the work was asked for. */
  readonly traceparent: string | undefined;
  /** Ms since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Set when the work failed. */
  readonly errorType?: string;
}

/** Writes the span of a unit of work whose end has just been committed. Once: whoever commits the end, and nobody else. */
export const recordSpan = (ended: EndedSpan): void => {
  const tracing = activeTracing();
  const parent = tracing && parentOf(ended.traceparent ?? '');
  if (!parent) return;
  const { name, role = 'internal', attributes, uuid, startedAt, endedAt, errorType } = ended;
  tracing.ids.next({ spanId: spanIdOf(uuid) });
  const options = { kind: KINDS[role], attributes: { ...attributes } as Attributes, startTime: startedAt };
  const span = tracing.tracer.startSpan(name, options, parent);
  if (errorType !== undefined) liveSpan(span).fail(errorType);
  span.end(endedAt);
};
