import { SERVICES } from '@antiphon/contracts/messaging';
import { natsPermissions } from '@antiphon/messaging';
import type { Credentials } from '../home/credentials.js';

export interface NatsConfigOptions {
  readonly port: number;
  readonly storeDir: string;
  readonly credentials: Credentials;
  /** True: whoever gives no password is the operator. For tests only. */
  readonly anonymous?: boolean;
}

export const NATS_OPERATOR = 'operator';

const MIB = 1024 * 1024;

/**
 * The same wherever the server runs. JetStream flushes to the disk once a second: what a crash of the machine takes from
 * it, the relay brings again (docs/adr/0025).
 */
export const NATS_LIMITS = {
  maxPayload: 8 * MIB,
  jetstream: { sync_interval: '1s', max_memory_store: 256 * MIB, max_file_store: 8192 * MIB },
} as const;

const users = (credentials: Credentials): object[] => [
  { user: NATS_OPERATOR, password: credentials.natsOperator },
  ...SERVICES.map((service) => {
    const { publish, subscribe, allowResponses } = natsPermissions(service);
    const permissions = { publish, subscribe, allow_responses: allowResponses };
    return { user: service, password: credentials.services[service].nats, permissions };
  }),
];

/**
 * Configuration of nats-server, whose format contains JSON: loopback only, one user for each service with its own
 * subjects.
 */
export const natsConfig = ({ port, storeDir, credentials, anonymous }: NatsConfigOptions): string =>
  JSON.stringify(
    {
      server_name: `antiphon-${credentials.homeId}`,
      host: '127.0.0.1',
      port,
      max_payload: NATS_LIMITS.maxPayload,
      jetstream: { store_dir: storeDir, ...NATS_LIMITS.jetstream },
      authorization: { users: users(credentials) },
      ...(anonymous ? { no_auth_user: NATS_OPERATOR } : {}),
    },
    null,
    2,
  );
