import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from '@antiphon/observability';
import { LOGGER, sendProblem } from '@antiphon/service-host';
import type { FastifyInstance } from 'fastify';
import { TOKEN_GATE } from '../gateway.tokens.js';
import { acceptYaml } from '../read-body/yaml-bodies.js';
import { guardRequest } from './http-guard.js';
import type { TokenGate } from './token-gate.js';

/** Puts the guard before every route of the gateway, those that do not exist included. */
export const configureGatewayHttp = (app: NestFastifyApplication): void => {
  const gate = app.get<TokenGate>(TOKEN_GATE);
  const logger = app.get<Logger>(LOGGER);
  const fastify = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  acceptYaml(fastify);
  fastify.addHook('onRequest', (request, reply, done) => {
    try {
      guardRequest(request, gate);
      done();
    } catch (error) {
      sendProblem(logger, error, request, reply);
    }
  });
};
