import { SERVICES } from '@antiphon/contracts/messaging';
import { natsPermissions } from '@antiphon/messaging';
import { NATS_LIMITS, NATS_OPERATOR } from '../engines/nats-config.js';

/** The variable that a container of NATS finds a user's password in. */
export const natsPasswordVariable = (user: string): string => `ANTIPHON_${user.toUpperCase()}_NATS_PASSWORD`;

const HEADER = [
  '# Generated from libs/platform/messaging/permissions.ts by `node tools/deploy/nats-config.mjs`; do not edit it.',
  '# Passwords come by the environment, each with quotes inside the value ("…"), because nats-server would read one',
  '# that begins with a digit as a number.',
].join('\n');

/** Marks what must stand without quotes, to be read as a variable. */
const VARIABLE = /"\{\{([A-Z_]+)\}\}"/g;

const users = (): object[] => [
  { user: NATS_OPERATOR, password: `{{${natsPasswordVariable(NATS_OPERATOR)}}}` },
  ...SERVICES.map((service) => {
    const { publish, subscribe, allowResponses } = natsPermissions(service);
    const permissions = { publish, subscribe, allow_responses: allowResponses };
    return { user: service, password: `{{${natsPasswordVariable(service)}}}`, permissions };
  }),
];

/**
 * `deploy/nats/nats.conf`: what nats-server gets in a container. The users and their subjects are those of `npm start`;
 * its monitoring port, which asks for no password, answers on loopback only.
 */
export const containerNatsConfig = (): string => {
  const config = {
    server_name: 'antiphon',
    host: '0.0.0.0',
    port: 4222,
    http: '127.0.0.1:8222',
    max_payload: NATS_LIMITS.maxPayload,
    jetstream: { store_dir: '/data', ...NATS_LIMITS.jetstream },
    authorization: { users: users() },
  };
  return `${HEADER}\n${JSON.stringify(config, null, 2).replace(VARIABLE, '$$$1')}\n`;
};
