import { AsyncLocalStorage } from 'node:async_hooks';
import { activeTracing } from './active-tracing.js';
import { uuidIds } from './system-ports.js';
import { childTraceparent, parseTraceparent } from './trace-context.js';

/** What everything done on behalf of one request knows about it; logs, messages and events carry it on. */
export interface RequestContext {
  /** Constant over everything that one outside request causes. */
  readonly correlationId: string;
  /** The message or event that directly caused this work. */
  readonly causationId?: string;
  /** The span of the request's trace that this is part of (W3C): what is begun from here is its child. */
  readonly traceparent: string;
  /** True while no span has the id above: the first one that is opened begins the trace. */
  readonly begins?: true;
  readonly workspace?: string;
  readonly sessionId?: string;
  readonly turnId?: string;
  /** The service that works on it. */
  readonly service: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

/** Runs `fn`, and whatever it awaits or schedules, inside the context. */
export const runWithContext = <T>(context: RequestContext, fn: () => T): T => storage.run(context, fn);

/** The context of the current asynchronous call chain, undefined outside of one. */
export const currentContext = (): RequestContext | undefined => storage.getStore();

/** What came with a request; everything missing or unreadable is made anew. */
export interface IncomingContext {
  readonly correlationId?: string | undefined;
  readonly causationId?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly turnId?: string | undefined;
}

/** With tracing on, spans have ids and units of work none; without, log lines still tell units of work apart. */
const positionOf = (incoming: string | undefined): Pick<RequestContext, 'traceparent' | 'begins'> => {
  if (parseTraceparent(incoming) === null) return { traceparent: childTraceparent(undefined), begins: true };
  return { traceparent: activeTracing() && incoming ? incoming : childTraceparent(incoming) };
};

/** Longest id taken over from outside; the log's metadata has the same bound. */
const MAX_ID_LENGTH = 200;
// Ids from outside end up in headers, log lines and rows: printable ASCII only.
const PRINTABLE = /^[\x21-\x7e]+$/;
const usable = (id: string | undefined): id is string =>
  id !== undefined && id.length <= MAX_ID_LENGTH && PRINTABLE.test(id);

/** Makes the context of a unit of work: same correlation, same trace, this service. */
export const contextFrom = (service: string, incoming: IncomingContext = {}): RequestContext => ({
  correlationId: usable(incoming.correlationId) ? incoming.correlationId : uuidIds.next(),
  ...(usable(incoming.causationId) ? { causationId: incoming.causationId } : {}),
  ...positionOf(incoming.traceparent),
  ...(usable(incoming.sessionId) ? { sessionId: incoming.sessionId } : {}),
  ...(usable(incoming.turnId) ? { turnId: incoming.turnId } : {}),
  service,
});

/** Runs `fn` in the current context with more known about it, e.g. its session; without one it just runs. */
export const runWithContextFields = <T>(
  more: Partial<Pick<RequestContext, 'workspace' | 'sessionId' | 'turnId' | 'causationId'>>,
  fn: () => T,
): T => {
  const context = storage.getStore();
  return context ? storage.run({ ...context, ...more }, fn) : fn();
};
