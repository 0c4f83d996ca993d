import { AsyncLocalStorage } from 'node:async_hooks';
import { uuidIds } from './system-ports.js';
import { activeTracing, childTraceparent, parseTraceparent } from './trace-context.js';

/** Ids of one request. Its logs, messages and events carry them. */
export interface RequestContext {
  /** Constant over all effects of one outside request. */
  readonly correlationId: string;
  /** The message or event that directly caused this work. */
  readonly causationId?: string;
  /**
   * The current span of the request's trace (W3C): spans opened in this context are its children.
   */
  readonly traceparent: string;
  /** True while no span has the id above: the first span that is opened starts the trace. */
  readonly begins?: true;
  readonly workspace?: string;
  readonly sessionId?: string;
  readonly turnId?: string;
  /** Position of the log that projections must reach before this request reads them. */
  readonly after?: number;
  /** Ids that became known while the request was handled. All its contexts share them. */
  readonly found?: FoundIds;
  /** The service that handles the request. */
  readonly service: string;
}

/** Ids of a request that did not bring them. */
export interface FoundIds {
  workspace?: string;
  sessionId?: string;
  turnId?: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

/** Runs `fn`, and all asynchronous work that it starts, inside the context. */
export const runWithContext = <T>(context: RequestContext, fn: () => T): T => storage.run(context, fn);

/** Returns the context of the current asynchronous call chain, undefined outside of one. */
export const currentContext = (): RequestContext | undefined => storage.getStore();

/** Adds ids to the later log lines of the current request. The first id of each kind stays. */
export const addFoundIds = (ids: Readonly<FoundIds>): void => {
  const found = storage.getStore()?.found;
  if (!found) return;
  if (ids.workspace !== undefined) found.workspace ??= ids.workspace;
  if (ids.sessionId !== undefined) found.sessionId ??= ids.sessionId;
  if (ids.turnId !== undefined) found.turnId ??= ids.turnId;
};

/** Ids that came with a request; a missing or unreadable one is created. */
export interface IncomingContext {
  readonly correlationId?: string | undefined;
  readonly causationId?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly turnId?: string | undefined;
  readonly after?: number | undefined;
}

/**
 * Returns the position in the trace. With tracing on, only spans have ids. With tracing off, each
 * unit of work gets its own, so that log lines tell units apart.
 */
const positionOf = (incoming: string | undefined): Pick<RequestContext, 'traceparent' | 'begins'> => {
  if (parseTraceparent(incoming) === null) return { traceparent: childTraceparent(undefined), begins: true };
  return { traceparent: activeTracing() && incoming ? incoming : childTraceparent(incoming) };
};

/** Maximum length of an id from outside; the log's metadata has the same limit. */
const MAX_ID_LENGTH = 200;
// Ids from outside end up in headers, log lines and rows: printable ASCII only.
const PRINTABLE = /^[\x21-\x7e]+$/;
const isUsable = (id: string | undefined): id is string =>
  id !== undefined && id.length <= MAX_ID_LENGTH && PRINTABLE.test(id);

/** Makes the context of a unit of work: same correlation, same trace, this service. */
export const contextFrom = (service: string, incoming: IncomingContext = {}): RequestContext => ({
  correlationId: isUsable(incoming.correlationId) ? incoming.correlationId : uuidIds.next(),
  ...(isUsable(incoming.causationId) ? { causationId: incoming.causationId } : {}),
  ...positionOf(incoming.traceparent),
  ...(isUsable(incoming.sessionId) ? { sessionId: incoming.sessionId } : {}),
  ...(isUsable(incoming.turnId) ? { turnId: incoming.turnId } : {}),
  ...(incoming.after === undefined ? {} : { after: incoming.after }),
  found: {},
  service,
});

/**
 * Runs `fn` in the current context with further fields, such as its session. Without a context it
 * just runs.
 */
export const runWithContextFields = <T>(
  fields: Partial<Pick<RequestContext, 'workspace' | 'sessionId' | 'turnId' | 'causationId' | 'after'>>,
  fn: () => T,
): T => {
  const context = storage.getStore();
  return context ? storage.run({ ...context, ...fields }, fn) : fn();
};

/**
 * Returns a function that runs work in the current context, with further fields. Callbacks of a
 * shared subscription run in another one.
 */
export const keepContext = (
  fields: Parameters<typeof runWithContextFields>[0] = {},
): (<T>(work: () => T) => T) => {
  const context = storage.getStore();
  return (work) => (context ? storage.run({ ...context, ...fields }, work) : work());
};

/** A request's context as plain data, for a Temporal workflow's input or header. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly correlationId: string;
  readonly causationId?: string;
  readonly workspace?: string;
  readonly sessionId?: string;
  readonly turnId?: string;
}

/** Returns the headers of a context, by default the current one or a new one. */
export const traceHeadersOf = (
  service: string,
  context: RequestContext = currentContext() ?? contextFrom(service),
): TraceHeaders => {
  const { service: _service, begins: _begins, found: _found, after: _after, ...headers } = context;
  return headers;
};

/** Runs work as part of the request that the headers came from. */
export const runInTrace = <T>(service: string, headers: Partial<TraceHeaders>, work: () => T): T => {
  const { workspace } = headers;
  const context = contextFrom(service, headers);
  return runWithContext(workspace === undefined ? context : { ...context, workspace }, work);
};
