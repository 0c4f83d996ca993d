import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Principal } from '@antiphon/contracts/identity';
import { exhausted, forbidden } from '@antiphon/kernel';
import type { FastifyRequest } from 'fastify';
import { missingCredential, routeOf } from './access-guard.js';
import { bearerToken, type Attempt, type Authenticator } from './authenticator.js';
import { addressGroup } from './client-address.js';
import { judgeHeaders, requireOwnPage } from './session-cookie.js';

/** Returns true if a request authenticates by the cookie of a dashboard. */
export const hasCookie = (headers: IncomingHttpHeaders, { cookie }: Authenticator): boolean =>
  headers.authorization === undefined && cookie.read(headers) !== undefined;

/** Authenticates the bearer token or the cookie of a request; null for a request without either. */
export const authenticateHeaders = async (
  headers: IncomingHttpHeaders,
  peer: string | undefined,
  authenticator: Authenticator,
  isForeign: boolean,
): Promise<Attempt | null> => {
  const { authorization } = headers;
  const address = authenticator.clientAddress(peer, headers);
  if (authorization !== undefined) {
    const token = bearerToken(authorization) ?? '';
    return isForeign
      ? authenticator.authenticateForeign(token, address)
      : authenticator.authenticate(token, address);
  }
  const cookie = authenticator.cookie.read(headers);
  if (cookie === undefined) return null;
  const attempt = await authenticator.authenticateSession(cookie, address);
  // A session that has ended does not lock out the local operator.
  if (attempt.principal || !authenticator.local) return attempt;
  return { principal: authenticator.local, retryAfterSeconds: 0 };
};

/**
 * Returns the principal of an HTTP request, before its body is read. Every path is denied by
 * default, also an unknown one. The rules are those of an upgrade: Host and Origin, then the bearer
 * token. Only open routes return null. They are charged to the address, except those that every
 * service has: a probe must not fail because of other clients.
 */
export const authenticateRequest = async (
  request: FastifyRequest,
  authenticator: Authenticator,
): Promise<Principal | null> => {
  const { headers, socket } = request;
  const route = routeOf(request);
  if (route?.access === 'open') {
    const address = authenticator.clientAddress(socket.remoteAddress, headers);
    if (route.everywhere !== true) authenticator.limits.chargeAddress(addressGroup(address));
    return null;
  }
  const verdict = judgeHeaders(headers, authenticator.local !== null, authenticator.allowedOrigins);
  if (!verdict.allowed) throw forbidden('GATEWAY.ORIGIN_REFUSED', verdict.reason);
  const { isForeign } = verdict;
  if (hasCookie(headers, authenticator)) requireOwnPage(request.method, headers);
  const attempt = await authenticateHeaders(headers, socket.remoteAddress, authenticator, isForeign);
  if (attempt === null) {
    if (authenticator.local && !isForeign) return authenticator.local;
    throw missingCredential();
  }
  const { principal, retryAfterSeconds: wait } = attempt;
  if (!principal && wait === 0) throw missingCredential();
  if (!principal)
    throw exhausted('GATEWAY.TOO_MANY_FAILURES', 'too many failed attempts', {
      data: { retryAfterSeconds: wait },
    });
  authenticator.limits.chargeRequest(principal);
  return principal;
};

/** Bytes of each connection that are charged to a principal. */
const charged = new WeakMap<Socket, number>();

/** Charges the bytes that a connection received since its request before. */
export const chargeReceived = ({ principal, socket }: FastifyRequest, { limits }: Authenticator): void => {
  const before = charged.get(socket) ?? 0;
  charged.set(socket, socket.bytesRead);
  if (principal) limits.chargeBytes(principal, socket.bytesRead - before);
};
