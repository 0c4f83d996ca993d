import { exhausted, forbidden, unauthenticated } from '@antiphon/kernel';
import { judgeOrigin } from '@antiphon/gateway-domain';
import type { FastifyRequest } from 'fastify';
import { bearerToken, type TokenGate } from './token-gate.js';

/** Probes of a supervisor or of Kubernetes, which say nothing of anybody's data. */
const OPEN_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

const isForwarded = (headers: FastifyRequest['headers']): boolean =>
  Object.keys(headers).some((name) => name === 'forwarded' || name.startsWith('x-forwarded-'));

/**
 * Throws unless the request may be served: every route is denied by default. The same rules as for a socket:
 * Host and Origin first, then who guesses too often, then the bearer token where one is configured.
 */
export const guardRequest = (request: FastifyRequest, gate: TokenGate): void => {
  const path = request.url.split('?', 1)[0] ?? '';
  if (OPEN_PATHS.has(path)) return;
  const { host, origin, authorization } = request.headers;
  const verdict = judgeOrigin({ host, origin, forwarded: isForwarded(request.headers) }, gate.required);
  if (!verdict.allowed) throw forbidden('GATEWAY.ORIGIN_REFUSED', verdict.reason);
  if (!gate.required) return;
  const wait = gate.retryAfterSeconds(request.ip);
  if (wait > 0)
    throw exhausted('GATEWAY.TOO_MANY_FAILURES', 'too many failed attempts', {
      data: { retryAfterSeconds: wait },
    });
  const token = bearerToken(authorization);
  if (token !== undefined && gate.accepts(token)) return;
  gate.recordFailure(request.ip);
  throw unauthenticated('GATEWAY.UNAUTHENTICATED', 'a valid `Authorization: Bearer` token is needed');
};
