import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import type { TestDatabase } from '@antiphon/testing';
import type { ServiceName } from '@antiphon/contracts/messaging';
import type { Environment } from '../service-env.js';

/** Makes the variables that the supervisor sets, for a service in a spec. */
export const serviceEnv = (service: ServiceName, database: TestDatabase, natsUrl: string): Environment => ({
  ANTIPHON_SERVICE_DATABASE_URL: database.urlFor(service),
  ANTIPHON_SERVICE_NATS_URL: natsUrl,
  ANTIPHON_SERVICE_HTTP_PORT: '0',
  ANTIPHON_SERVICE_ID: `${service}-${randomUUID()}`,
  ANTIPHON_HOME: tmpdir(),
  HOME: tmpdir(),
});
