import { SERVICES } from '@antiphon/contracts/messaging';
import { natsPermissions } from '@antiphon/messaging';
import type { Credentials } from '../home/home.js';

export const NATS_OPERATOR = 'operator';
/** User of the system account, by which the supervisor asks for the server's health. */
export const NATS_SYSTEM = 'system';

const MIB = 1024 * 1024;

/**
 * Limits of every server. JetStream flushes to disk once a second; the relay publishes again what a
 * crash of the machine loses (docs/adr/0025).
 */
const NATS_LIMITS = {
  maxPayload: 8 * MIB,
  jetstream: { sync_interval: '1s', max_memory_store: 256 * MIB, max_file_store: 8192 * MIB },
} as const;

/** Returns the operator and one user per service with its own subjects. */
const users = (passwordOf: (user: (typeof SERVICES)[number] | typeof NATS_OPERATOR) => string): object[] => [
  { user: NATS_OPERATOR, password: passwordOf(NATS_OPERATOR) },
  ...SERVICES.map((service) => {
    const { publish, subscribe, allowResponses } = natsPermissions(service);
    const permissions = { publish, subscribe, allow_responses: allowResponses };
    return { user: service, password: passwordOf(service), permissions };
  }),
];

export interface NatsConfigOptions {
  readonly port: number;
  readonly storeDir: string;
  readonly credentials: Credentials;
  /** True makes clients without a password the operator. For tests only. */
  readonly anonymous?: boolean;
}

/** Renders the configuration of a nats-server on loopback; its format contains JSON. */
export const natsConfig = ({ port, storeDir, credentials, anonymous }: NatsConfigOptions): string =>
  JSON.stringify(
    {
      server_name: `antiphon-${credentials.homeId}`,
      host: '127.0.0.1',
      port,
      max_payload: NATS_LIMITS.maxPayload,
      jetstream: { store_dir: storeDir, ...NATS_LIMITS.jetstream },
      authorization: {
        users: users((user) =>
          user === NATS_OPERATOR ? credentials.natsOperator : credentials.services[user].nats,
        ),
      },
      accounts: { $SYS: { users: [{ user: NATS_SYSTEM, password: credentials.natsOperator }] } },
      ...(anonymous ? { no_auth_user: NATS_OPERATOR } : {}),
    },
    null,
    2,
  );

/** Returns the variable with a user's password in a container of NATS. */
export const natsPasswordVariable = (user: string): string => `ANTIPHON_${user.toUpperCase()}_NATS_PASSWORD`;

const HEADER = [
  '# Generated from libs/platform/messaging/permissions.ts by `node tools/deploy/nats-config.mjs`; do not edit it.',
  '# Passwords come by the environment, each with quotes inside the value ("…"), because nats-server would read one',
  '# that begins with a digit as a number.',
].join('\n');

/** Matches the placeholder of a variable, which the configuration needs without quotes. */
const VARIABLE = /"\{\{([A-Z_]+)\}\}"/g;

/**
 * Renders `deploy/nats/nats.conf` for a container, with the users and subjects of `npm start`. Its
 * monitoring port has no password, so it listens on loopback only.
 */
export const containerNatsConfig = (): string => {
  const config = {
    server_name: 'antiphon',
    host: '0.0.0.0',
    port: 4222,
    http: '127.0.0.1:8222',
    max_payload: NATS_LIMITS.maxPayload,
    jetstream: { store_dir: '/data', ...NATS_LIMITS.jetstream },
    authorization: { users: users((user) => `{{${natsPasswordVariable(user)}}}`) },
  };
  return `${HEADER}\n${JSON.stringify(config, null, 2).replace(VARIABLE, '$$$1')}\n`;
};
