import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { silentLogger, type Logger } from '@antiphon/observability';
import { startService, type RunningService } from '@antiphon/service-host';
import {
  createTestDatabase,
  startNatsServer,
  type TestDatabase,
  type TestNatsServer,
} from '@antiphon/testing';
import { configureGatewayHttp } from '../gateway-http.js';
import { GatewayModule } from '../gateway.module.js';

/** Gateways on a NATS server and a database of their own, without other services. */
export interface GatewayWorld {
  readonly nats: TestNatsServer;
  readonly database: TestDatabase;
  /** Starts a gateway on a free port. */
  start(env?: Readonly<Record<string, string>>, logger?: Logger): Promise<RunningService>;
  /** Stops all gateways, then the engines. */
  close(): Promise<void>;
}

export const createGatewayWorld = async (): Promise<GatewayWorld> => {
  const [nats, database] = await Promise.all([startNatsServer(), createTestDatabase()]);
  const gateways: RunningService[] = [];
  return {
    nats,
    database,
    start: async (env = {}, logger = silentLogger) => {
      const gateway = await startService({
        ...{ service: 'gateway', module: GatewayModule, configure: configureGatewayHttp, cwd: '/', logger },
        env: {
          ANTIPHON_SERVICE_DATABASE_URL: database.urlFor('gateway'),
          ANTIPHON_SERVICE_NATS_URL: nats.url,
          ANTIPHON_SERVICE_HTTP_PORT: '0',
          ANTIPHON_SERVICE_ID: `gateway-${randomUUID()}`,
          ANTIPHON_HOME: tmpdir(),
          HOME: tmpdir(),
          ...env,
        },
      });
      gateways.push(gateway);
      return gateway;
    },
    close: async () => {
      await Promise.all(gateways.map((gateway) => gateway.stop()));
      await Promise.all([nats.remove(), database.drop()]);
    },
  };
};
