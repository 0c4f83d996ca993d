import { contextFrom, currentContext, runWithContext } from './request-context.js';
import type { RequestContext } from './request-context.js';

/** A request's context as it travels where our messages do not: a Temporal workflow's input or header. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly correlationId: string;
  readonly causationId?: string;
  readonly workspace?: string;
  readonly sessionId?: string;
  readonly turnId?: string;
}

/** What a request's context says to whoever goes on with it elsewhere; plain data. Without one, a new request's. */
export const traceHeadersOf = (
  service: string,
  context: RequestContext = currentContext() ?? contextFrom(service),
): TraceHeaders => {
  const { service: _service, begins: _begins, ...headers } = context;
  return headers;
};

/** Does the work as part of the request that the headers came from: its log lines, messages, events and spans belong to it. */
export const runInTrace = <T>(service: string, headers: Partial<TraceHeaders>, work: () => T): T => {
  const { workspace } = headers;
  const context = contextFrom(service, headers);
  return runWithContext(workspace === undefined ? context : { ...context, workspace }, work);
};
