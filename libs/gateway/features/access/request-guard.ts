import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { judgeOrigin, type OriginVerdict } from '@antiphon/gateway-domain';
import { exhausted, forbidden, unauthenticated } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { LOGGER, sendProblem } from '@antiphon/service-host';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { TOKEN_GATE } from '../gateway.ports.js';
import { bearerToken, type TokenGate } from './token-gate.js';

/** Decision on a WebSocket upgrade. */
export type Admission =
  | { readonly status: 101; readonly authenticated: boolean }
  | { readonly status: 401 | 403 | 404 | 429; readonly reason: string; readonly retryAfter?: number };

/** Paths of the probes of supervisors and Kubernetes. They show no user data and need no token. */
const OPEN_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

const YAML = ['application/yaml', 'application/x-yaml', 'text/yaml'];

/** Returns true if any proxy header is present, with any value. */
const isForwarded = (headers: IncomingHttpHeaders): boolean =>
  Object.keys(headers).some((name) => name === 'forwarded' || name.startsWith('x-forwarded-'));

const judgeHeaders = (headers: IncomingHttpHeaders, gate: TokenGate): OriginVerdict => {
  const { host, origin } = headers;
  return judgeOrigin({ host, origin, forwarded: isForwarded(headers) }, gate.required);
};

/**
 * Decides an upgrade before the 101 response: path, Host and Origin, rate limit of failed attempts,
 * bearer token. Without a token in the header the client must send it in its first frame.
 */
export const admitUpgrade = ({ url = '', headers, socket }: IncomingMessage, gate: TokenGate): Admission => {
  if (url.split('?', 1)[0] !== '/ws')
    return { status: 404, reason: `no WebSocket at this path; connect to /ws` };
  const verdict = judgeHeaders(headers, gate);
  if (!verdict.allowed) return { status: 403, reason: verdict.reason };
  if (!gate.required) return { status: 101, authenticated: true };
  const address = socket.remoteAddress ?? '';
  const retryAfter = gate.retryAfterSeconds(address);
  if (retryAfter > 0) return { status: 429, reason: 'too many failed attempts', retryAfter };
  if (headers.authorization === undefined) return { status: 101, authenticated: false };
  const token = bearerToken(headers.authorization);
  if (token !== undefined && gate.accepts(token)) return { status: 101, authenticated: true };
  gate.recordFailure(address);
  return { status: 401, reason: 'the token is not valid' };
};

/**
 * Throws unless an HTTP request may be served. Every route is denied by default. The rules are
 * those of an upgrade: Host and Origin, rate limit of failed attempts, bearer token where one is
 * configured.
 */
export const guardRequest = ({ url, headers, ip }: FastifyRequest, gate: TokenGate): void => {
  if (OPEN_PATHS.has(url.split('?', 1)[0] ?? '')) return;
  const verdict = judgeHeaders(headers, gate);
  if (!verdict.allowed) throw forbidden('GATEWAY.ORIGIN_REFUSED', verdict.reason);
  if (!gate.required) return;
  const retryAfterSeconds = gate.retryAfterSeconds(ip);
  if (retryAfterSeconds > 0)
    throw exhausted('GATEWAY.TOO_MANY_FAILURES', 'too many failed attempts', { data: { retryAfterSeconds } });
  const token = bearerToken(headers.authorization);
  if (token !== undefined && gate.accepts(token)) return;
  gate.recordFailure(ip);
  throw unauthenticated('GATEWAY.UNAUTHENTICATED', 'a valid `Authorization: Bearer` token is needed');
};

/**
 * Installs the guard before every route, including unknown ones, and passes YAML bodies on as text.
 */
export const configureGatewayHttp = (app: NestFastifyApplication): void => {
  const gate = app.get<TokenGate>(TOKEN_GATE);
  const logger = app.get<Logger>(LOGGER);
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  fastify.addContentTypeParser(YAML, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  fastify.addHook('onRequest', (request, reply, done) => {
    try {
      guardRequest(request, gate);
      done();
    } catch (error) {
      sendProblem(logger, error, request, reply);
    }
  });
};
