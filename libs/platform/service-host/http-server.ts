import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { contextFrom, openSpan, runWithContext } from '@antiphon/observability';
import type { Logger, OpenSpan, RequestContext } from '@antiphon/observability';
import { sendProblem } from './problem.filter.js';

export interface HttpOptions {
  /** Bytes of a request's body at most, default 1 MiB (contract §4). */
  readonly bodyLimit?: number;
}

const DEFAULT_BODY_LIMIT = 1024 * 1024;
/** A client that dribbles its request is cut off. */
const REQUEST_TIMEOUT_MS = 30_000;

const header = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
};

const contexts = new WeakMap<IncomingMessage, RequestContext>();

const contextOfHttp = (service: string, request: IncomingMessage): RequestContext => {
  const known = contexts.get(request);
  if (known) return known;
  const context = contextFrom(service, {
    correlationId: header(request, 'x-request-id') ?? header(request, 'x-correlation-id'),
    traceparent: header(request, 'traceparent'),
  });
  contexts.set(request, context);
  return context;
};

/** Fastify for Nest: ids and context for each request, bounds on size and time, problem documents from the router. */
export const createHttpAdapter = (
  service: string,
  logger: Logger,
  options: HttpOptions = {},
): FastifyAdapter =>
  new FastifyAdapter({
    bodyLimit: options.bodyLimit ?? DEFAULT_BODY_LIMIT,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    genReqId: (request: IncomingMessage) => contextOfHttp(service, request).correlationId,
    // A URL that cannot be decoded never reaches Nest's filters.
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      runWithContext(contextOfHttp(service, request.raw), () => sendProblem(logger, error, request, reply)),
  });

/** Asked every few seconds by machines: nobody's request. */
const UNTRACED: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

const spans = new WeakMap<IncomingMessage, OpenSpan>();

/** Opens the request's span: what is done for it happens inside. */
const beginSpan = (service: string, request: FastifyRequest): void => {
  const route = request.routeOptions.url;
  if (route !== undefined && UNTRACED.has(route)) return;
  const attributes = { 'http.request.method': request.method, 'http.route': route };
  const name = route === undefined ? request.method : `${request.method} ${route}`;
  const opened = openSpan({ name, role: 'server', attributes }, contextOfHttp(service, request.raw));
  contexts.set(request.raw, opened.context);
  spans.set(request.raw, opened.span);
};

const endSpan = ({ raw }: FastifyRequest, { statusCode }: FastifyReply): void => {
  const span = spans.get(raw);
  span?.set({ 'http.response.status_code': statusCode });
  if (statusCode >= 500) span?.fail(String(statusCode));
  span?.end();
};

/** Runs every later hook and handler inside the request's context; answers carry its id. */
export const addRequestContext = (app: NestFastifyApplication, service: string): void => {
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  fastify.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id);
    beginSpan(service, request);
    runWithContext(contextOfHttp(service, request.raw), done);
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    endSpan(request, reply);
    done();
  });
  // The body arrives in the socket's asynchronous context, not in ours.
  fastify.addHook('preValidation', (request, _reply, done) =>
    runWithContext(contextOfHttp(service, request.raw), done),
  );
};
