import type { LoggerService } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { isUtf8 } from 'node:buffer';
import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { findJsonExcess, invalid } from '@antiphon/kernel';
import { countFailure, contextFrom, openSpan, runWithContext } from '@antiphon/observability';
import type { Logger, OpenSpan, RequestContext } from '@antiphon/observability';
import { makeProblem, PROBLEM_MEDIA_TYPE, sendProblem } from './problem.filter.js';

export interface HttpOptions {
  /** Maximum size of a request's body, bytes. Default: 1 MiB. */
  readonly bodyLimit?: number;
  /** Timeout for the headers of a request, ms. Default: 10 s. */
  readonly headersTimeoutMs?: number;
  /** Timeout for a whole request with its body, ms. Default: 30 s. */
  readonly requestTimeoutMs?: number;
  /** Time until a stop destroys the connections of open requests, ms. Default: 5 s. */
  readonly stopTimeoutMs?: number;
}

const DEFAULT_BODY_LIMIT = 1024 * 1024;
const DEFAULT_HEADERS_TIMEOUT_MS = 10_000;
const DEFAULT_REQUEST_TIMEOUT_MS = 30_000;
const DEFAULT_STOP_TIMEOUT_MS = 5_000;
/** Interval at which Node applies both timeouts, ms. Its default of 30 s would double them. */
const TIMEOUT_CHECK_MS = 1_000;

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

/** Replies in progress, by the connection of their request. */
const replies = new WeakMap<Socket, FastifyReply>();

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
}

/** Refusals of requests that Node could not parse, by Node's error code. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: {
    ...{ status: 408, code: 'HTTP.TIMEOUT' },
    detail: 'the request did not arrive in time',
  },
  HPE_HEADER_OVERFLOW: {
    ...{ status: 431, code: 'HTTP.HEADERS_TOO_LARGE' },
    detail: 'the headers of the request are too large',
  },
};
const MALFORMED: Refusal = { status: 400, code: 'HTTP.MALFORMED', detail: 'the request is not valid HTTP' };

/**
 * Refuses a request that arrives too slowly or is malformed by a problem document, and destroys its
 * connection. No framework handles such a request.
 */
const refuseConnection = (
  service: string,
  logger: Logger,
  error: NodeJS.ErrnoException,
  socket: Socket,
): void => {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const { status, code, detail } = REFUSALS[error.code ?? ''] ?? MALFORMED;
  const reply = replies.get(socket);
  const { correlationId } = reply ? contextOfRequest(service, reply.request.raw) : contextFrom(service, {});
  countFailure('http', 'refused', code);
  logger.info({ correlationId, status, code, reason: error.code }, 'HTTP request refused');
  // The text would become a part of a response that has begun.
  const hasBegun = reply?.raw.headersSent === true && !reply.raw.writableFinished;
  if (socket.writable && !hasBegun) {
    const body = JSON.stringify(makeProblem(status, code, detail, correlationId));
    const lines = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`,
      'Connection: close',
      `Content-Type: ${PROBLEM_MEDIA_TYPE}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${correlationId}`,
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  }
  socket.destroy();
};

/** Maximum length of a path parameter, characters: a file's path has 1,024 bytes, each as `%00`. */
const MAX_PARAM_LENGTH = 3 * 1_024;

/** Path of an empty file name: it is refused, and is not the list of files. */
const EMPTY_FILE = '/files/';

/** Returns a URL without the slash at the end of its path. */
const withoutSlash = (url: string): string => {
  const end = url.indexOf('?');
  const [path, query] = end < 0 ? [url, ''] : [url.slice(0, end), url.slice(end)];
  // A path with an empty part has two readings: the routes refuse it.
  const isKept = path.length < 2 || path.includes('//') || path.endsWith(EMPTY_FILE);
  return isKept || !path.endsWith('/') ? url : path.slice(0, -1) + query;
};

/**
 * Creates Fastify for Nest, with request ids and contexts, limits on size and time, and problem
 * documents.
 */
export const createHttpAdapter = (
  service: string,
  logger: Logger,
  options: HttpOptions = {},
): FastifyAdapter => {
  const requestTimeout = options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS;
  return new FastifyAdapter({
    bodyLimit: options.bodyLimit ?? DEFAULT_BODY_LIMIT,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    requestTimeout,
    rewriteUrl: (request: IncomingMessage) => withoutSlash(request.url ?? '/'),
    http: {
      requestTimeout,
      headersTimeout: Math.min(options.headersTimeoutMs ?? DEFAULT_HEADERS_TIMEOUT_MS, requestTimeout),
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    },
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) =>
      refuseConnection(service, logger, error, socket),
    forceCloseConnections: 'idle',
    genReqId: (request: IncomingMessage) => contextOfRequest(service, request).correlationId,
    // Nest's filters do not see a URL that cannot be decoded.
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      runWithContext(contextOfRequest(service, request.raw), () =>
        sendProblem(logger, error, request, reply),
      ),
  });
};

/**
 * Accepts JSON bodies only, unless a route's service adds a type. Forms and plain text can be sent
 * by a page of another origin without a preflight request.
 */
const acceptJsonOnly = (app: NestFastifyApplication, fastify: FastifyInstance): void => {
  fastify.removeContentTypeParser(['application/json', 'text/plain']);
  const bodyLimit = fastify.initialConfig.bodyLimit ?? DEFAULT_BODY_LIMIT;
  const parse = fastify.getDefaultJsonParser('error', 'error');
  app.useBodyParser('application/json', { bodyLimit }, (request, body, done) => {
    if (!isUtf8(body)) return done(invalid('GATEWAY.INVALID_BODY', 'the body is not valid UTF-8'));
    const text = body.toString('utf8');
    // Many clients send the type with every request, also without a body. A route that needs one
    // refuses its absence.
    if (text === '') return done(null, undefined);
    const excess = findJsonExcess(text);
    if (excess !== null) return done(invalid('GATEWAY.INVALID_BODY', `the body ${excess}`));
    void parse(request as FastifyRequest, text, done);
  });
};

/**
 * Destroys the connections that are still open some time after the server has begun to close. A
 * peer that sends or reads slowly would keep the process from stopping.
 */
const limitClose = (fastify: FastifyInstance, timeoutMs: number): void => {
  fastify.addHook('preClose', (done) => {
    const server = fastify.server as Server;
    const cut = setTimeout(() => server.closeAllConnections(), timeoutMs).unref();
    server.once('close', () => clearTimeout(cut));
    done();
  });
};

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

/** Logs a response, so that each request of a client has a line with its ids. */
const logResponse = (
  { service, logger }: HttpServerParts,
  request: FastifyRequest,
  { statusCode: status, elapsedTime }: FastifyReply,
): void => {
  const route = request.routeOptions.url;
  if (route !== undefined && UNTRACED.has(route)) return;
  const fields = { method: request.method, route, status, durationMs: Math.round(elapsedTime) };
  runWithContext(contextOfRequest(service, request.raw), () =>
    logger.debug(fields, 'HTTP request completed'),
  );
};

interface HttpServerParts {
  readonly service: string;
  readonly logger: Logger;
}

/** Runs later hooks and handlers inside the request's context; responses carry its id. */
const addRequestContext = (fastify: FastifyInstance, parts: HttpServerParts): void => {
  const { service } = parts;
  fastify.addHook('onRequest', (request, reply, done) => {
    replies.set(request.raw.socket, reply);
    void reply.header('x-request-id', request.id);
    beginSpan(service, request);
    runWithContext(contextOfRequest(service, request.raw), done);
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    endSpan(request, reply);
    logResponse(parts, request, reply);
    done();
  });
  // The body arrives in the asynchronous context of the socket, not of the request.
  fastify.addHook('preValidation', (request, _reply, done) =>
    runWithContext(contextOfRequest(service, request.raw), done),
  );
};

/**
 * Configures an application that was created without body parsers: contexts of requests, JSON
 * bodies, and a bounded stop.
 */
export const configureHttp = (
  app: NestFastifyApplication,
  parts: HttpServerParts,
  options: HttpOptions = {},
): void => {
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  addRequestContext(fastify, parts);
  acceptJsonOnly(app, fastify);
  limitClose(fastify, options.stopTimeoutMs ?? DEFAULT_STOP_TIMEOUT_MS);
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
