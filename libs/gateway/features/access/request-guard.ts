import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Principal } from '@antiphon/contracts/identity';
import { UPLOAD_MEDIA } from '@antiphon/contracts/reference';
import { exhausted, forbidden, invalid, isAppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { LOGGER, retryAfterSeconds, sendProblem } from '@antiphon/service-host';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { DashboardFiles } from '../dashboard/dashboard-files.js';
import { findDashboardContent, sendDashboardContent } from '../dashboard/serve-dashboard.js';
import { AUTHENTICATOR, DASHBOARD_FILES } from '../gateway.ports.js';
import { GatewayClients, SocketAdapter } from '../sockets/client-gateway.js';
import { missingCredential, routeOf } from './access-guard.js';
import { bearerToken, type Attempt, type Authenticator } from './authenticator.js';
import { addressGroup } from './client-address.js';
import { addCrossOriginHeaders, isPreflight } from './cross-origin.js';
import { isOwnPage, judgeHeaders, requireOwnPage } from './session-cookie.js';
import { EVENTS_PATH } from '../events/events-socket.js';

/** Decision on a WebSocket upgrade. */
export type Admission =
  /** `principal` is null if the client has to authenticate by its first frame. */
  | { readonly status: 101; readonly principal: Principal | null; readonly isForeign: boolean }
  | { readonly status: 401 | 403 | 404 | 429 | 503; readonly reason: string; readonly retryAfter?: number };

/** `/ws/events` is `/ws` with one subscription to events from the beginning. */
const SOCKET_PATHS: ReadonlySet<string> = new Set(['/ws', EVENTS_PATH]);

const YAML = ['application/yaml', 'application/x-yaml', 'text/yaml'];

/** Returns true if a request authenticates by the cookie of a dashboard. */
const hasCookie = (headers: IncomingHttpHeaders, { cookie }: Authenticator): boolean =>
  headers.authorization === undefined && cookie.read(headers) !== undefined;

/** Authenticates the bearer token or the cookie of a request; null for a request without either. */
const authenticateHeaders = async (
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
 * Decides an upgrade before the 101 response: path, Host and Origin, bearer token. Without a token
 * in the header the client must send it in its first frame.
 */
export const admitUpgrade = async (
  { url = '', headers, socket }: IncomingMessage,
  authenticator: Authenticator,
): Promise<Admission> => {
  if (!SOCKET_PATHS.has(url.split('?', 1)[0] ?? ''))
    return { status: 404, reason: `no WebSocket at this path; connect to /ws` };
  const verdict = judgeHeaders(headers, authenticator.local !== null, authenticator.allowedOrigins);
  if (!verdict.allowed) return { status: 403, reason: verdict.reason };
  const { isForeign } = verdict;
  if (hasCookie(headers, authenticator) && !isOwnPage(headers))
    return { status: 403, reason: 'a cookie is accepted from the own page of the dashboard only' };
  try {
    const attempt = await authenticateHeaders(headers, socket.remoteAddress, authenticator, isForeign);
    if (attempt === null)
      return { status: 101, principal: isForeign ? null : authenticator.local, isForeign };
    const { principal, retryAfterSeconds: wait } = attempt;
    if (principal) {
      authenticator.limits.chargeRequest(principal);
      return { status: 101, principal, isForeign };
    }
    if (wait > 0) return { status: 429, reason: 'too many failed attempts', retryAfter: wait };
    return { status: 401, reason: 'the token is not valid' };
  } catch (error) {
    if (!isAppError(error)) throw error;
    const retryAfter = retryAfterSeconds(error);
    if (retryAfter === undefined) throw error;
    return { status: error.kind === 'exhausted' ? 429 : 503, reason: error.message, retryAfter };
  }
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
const chargeReceived = ({ principal, socket }: FastifyRequest, { limits }: Authenticator): void => {
  const before = charged.get(socket) ?? 0;
  charged.set(socket, socket.bytesRead);
  if (principal) limits.chargeBytes(principal, socket.bytesRead - before);
};

/**
 * Sends a page or a file of the dashboard, which need no credential, and returns true; returns
 * false for any other request. Without a token the `Host` must be loopback. Links of other pages
 * may open the dashboard: no page may show it in a frame, and no page reads it.
 */
const serveDashboard = async (
  files: DashboardFiles,
  authenticator: Authenticator,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<boolean> => {
  const content = await findDashboardContent(files, request);
  if (!content) return false;
  const { 'sec-fetch-site': _site, ...headers } = request.headers;
  const verdict = judgeHeaders(headers, authenticator.local !== null);
  if (!verdict.allowed) throw forbidden('GATEWAY.ORIGIN_REFUSED', verdict.reason);
  await sendDashboardContent(files, content, request, reply);
  return true;
};

const REPORTS = ['application/csp-report', 'application/reports+json'];
const MAX_REPORT_BYTES = 16 * 1_024;

const parseReport = (text: string): Promise<unknown> => {
  try {
    return Promise.resolve(JSON.parse(text) as unknown);
  } catch {
    return Promise.reject(invalid('GATEWAY.INVALID_BODY', 'the report is not JSON'));
  }
};

/** Reads bodies of YAML as text, and reports of browsers as JSON. Uploads are passed on unread. */
const addBodyParsers = (fastify: FastifyInstance): void => {
  fastify.addContentTypeParser(YAML, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  const limits = { parseAs: 'string', bodyLimit: MAX_REPORT_BYTES } as const;
  fastify.addContentTypeParser(REPORTS, limits, (_request: FastifyRequest, text: string) =>
    parseReport(text),
  );
  // An upload is read by its handler, which knows the bound; other routes refuse the type.
  fastify.addContentTypeParser(UPLOAD_MEDIA, (_request, payload, done) => done(null, payload));
};

/**
 * Serves the dashboard, and authenticates every other request before its route, also of unknown
 * paths. Reads bodies of YAML and reports, and connects Nest's gateways with the socket server.
 */
export const configureGatewayHttp = (app: NestFastifyApplication): void => {
  const authenticator = app.get<Authenticator>(AUTHENTICATOR);
  const logger = app.get<Logger>(LOGGER);
  const dashboard = app.get<DashboardFiles>(DASHBOARD_FILES);
  app.useWebSocketAdapter(new SocketAdapter(app.get(GatewayClients)));
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  addBodyParsers(fastify);
  fastify.decorateRequest('principal', null);
  fastify.addHook('onRequest', async (request, reply) => {
    // Answered before authentication, because browsers send no credential with it.
    if (isPreflight(request, authenticator.allowedOrigins)) return reply.code(204).send();
    try {
      if (await serveDashboard(dashboard, authenticator, request, reply)) return reply;
      request.principal = await authenticateRequest(request, authenticator);
    } catch (error) {
      sendProblem(logger, error, request, reply);
      return reply;
    }
  });
  fastify.addHook('onSend', (request, reply, _payload, done) => {
    addCrossOriginHeaders(request, reply, authenticator.allowedOrigins);
    done();
  });
  fastify.addHook('onResponse', (request, _reply, done) => {
    chargeReceived(request, authenticator);
    done();
  });
};
