import type { LoggerService } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { contextFrom, openSpan, runWithContext } from '@antiphon/observability';
import type { Logger, OpenSpan, RequestContext } from '@antiphon/observability';
import { sendProblem } from './problem.filter.js';

export interface HttpOptions {
  /** Maximum size of a request's body, bytes. Default: 1 MiB. */
  readonly bodyLimit?: number;
}

const DEFAULT_BODY_LIMIT = 1024 * 1024;
/** Time limit for receiving a request: cuts slow clients off. */
const REQUEST_TIMEOUT_MS = 30_000;

const header = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
};

const contexts = new WeakMap<IncomingMessage, RequestContext>();

const contextOfRequest = (service: string, request: IncomingMessage): RequestContext => {
  const known = contexts.get(request);
  if (known) return known;
  const context = contextFrom(service, {
    correlationId: header(request, 'x-request-id') ?? header(request, 'x-correlation-id'),
    traceparent: header(request, 'traceparent'),
  });
  contexts.set(request, context);
  return context;
};

/**
 * Creates Fastify for Nest, with request ids and contexts, limits on size and time, and problem
 * documents.
 */
export const createHttpAdapter = (
  service: string,
  logger: Logger,
  options: HttpOptions = {},
): FastifyAdapter =>
  new FastifyAdapter({
    bodyLimit: options.bodyLimit ?? DEFAULT_BODY_LIMIT,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    genReqId: (request: IncomingMessage) => contextOfRequest(service, request).correlationId,
    // Nest's filters do not see a URL that cannot be decoded.
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      runWithContext(contextOfRequest(service, request.raw), () =>
        sendProblem(logger, error, request, reply),
      ),
  });

/** Routes that probes call every few seconds; they belong to no client's request. */
const UNTRACED: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

const spans = new WeakMap<IncomingMessage, OpenSpan>();

/** Opens the request's span; all work for the request runs inside it. */
const beginSpan = (service: string, request: FastifyRequest): void => {
  const route = request.routeOptions.url;
  if (route !== undefined && UNTRACED.has(route)) return;
  const attributes = { 'http.request.method': request.method, 'http.route': route };
  const name = route === undefined ? request.method : `${request.method} ${route}`;
  const opened = openSpan({ name, role: 'server', attributes }, contextOfRequest(service, request.raw));
  contexts.set(request.raw, opened.context);
  spans.set(request.raw, opened.span);
};

const endSpan = ({ raw }: FastifyRequest, { statusCode }: FastifyReply): void => {
  const span = spans.get(raw);
  span?.set({ 'http.response.status_code': statusCode });
  if (statusCode >= 500) span?.fail(String(statusCode));
  span?.end();
};

/** Runs later hooks and handlers inside the request's context; responses carry its id. */
export const addRequestContext = (app: NestFastifyApplication, service: string): void => {
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  fastify.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id);
    beginSpan(service, request);
    runWithContext(contextOfRequest(service, request.raw), done);
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    endSpan(request, reply);
    done();
  });
  // The body arrives in the asynchronous context of the socket, not of the request.
  fastify.addHook('preValidation', (request, _reply, done) =>
    runWithContext(contextOfRequest(service, request.raw), done),
  );
};

const textOf = (message: unknown): string => (typeof message === 'string' ? message : 'Nest');
const fieldsOf = (message: unknown, rest: readonly unknown[]): object => ({
  ...(message instanceof Error ? { err: message } : typeof message === 'object' ? { nest: message } : {}),
  ...(rest.length > 0 ? { context: rest.at(-1) } : {}),
});

/** Adapts our logger for Nest; Nest's messages about routes and modules become debug lines. */
export const nestLogger = (logger: Logger): LoggerService => ({
  log: (message: unknown, ...rest: unknown[]) => logger.debug(fieldsOf(message, rest), textOf(message)),
  debug: (message: unknown, ...rest: unknown[]) => logger.debug(fieldsOf(message, rest), textOf(message)),
  verbose: (message: unknown, ...rest: unknown[]) => logger.trace(fieldsOf(message, rest), textOf(message)),
  warn: (message: unknown, ...rest: unknown[]) => logger.warn(fieldsOf(message, rest), textOf(message)),
  error: (message: unknown, ...rest: unknown[]) => logger.error(fieldsOf(message, rest), textOf(message)),
  fatal: (message: unknown, ...rest: unknown[]) => logger.fatal(fieldsOf(message, rest), textOf(message)),
});
