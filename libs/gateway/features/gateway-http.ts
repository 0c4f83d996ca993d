import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { UPLOAD_MEDIA } from '@antiphon/contracts/reference';
import { forbidden, invalid } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { LOGGER, sendProblem } from '@antiphon/service-host';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator } from './access/authenticator.js';
import { addCrossOriginHeaders, isPreflight } from './access/cross-origin.js';
import { authenticateRequest, chargeReceived } from './access/request-guard.js';
import { judgeHeaders } from './access/session-cookie.js';
import type { DashboardFiles } from './dashboard/dashboard-files.js';
import { keepRawBody } from './channels/webhook-body.js';
import { findDashboardContent, sendDashboardContent } from './dashboard/serve-dashboard.js';
import { AUTHENTICATOR, DASHBOARD_FILES } from './gateway.ports.js';
import { SocketAdapter, SocketMethods } from './sockets/socket-adapter.js';

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

const YAML = ['application/yaml', 'application/x-yaml', 'text/yaml'];
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
  app.useWebSocketAdapter(new SocketAdapter(app.get(SocketMethods)));
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  addBodyParsers(fastify);
  fastify.decorateRequest('principal', null);
  fastify.addHook('onRequest', async (request, reply) => {
    keepRawBody(request);
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
