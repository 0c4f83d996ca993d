import { LOG_HINT_SUBJECT } from '@antiphon/contracts/log';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { inboxPrefix } from '@antiphon/messaging';

/** What one NATS user may send and hear; everything else is refused by the server. */
export interface SubjectPermissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** Whom a service asks (contract: gateway → everybody, agent → what a turn needs). */
const CALLS: Readonly<Record<ServiceName, readonly ServiceName[]>> = {
  gateway: ['agent', 'sandbox', 'metering', 'memory'],
  agent: ['sandbox', 'metering', 'memory'],
  sandbox: [],
  metering: [],
  memory: [],
};

/** Every request of JetStream's API that touches one stream; its first token after the verb is the stream. */
const ownsStream = (stream: string): string[] => [
  '$JS.API.INFO',
  ...['CREATE', 'UPDATE', 'INFO', 'PURGE', 'DELETE', 'MSG.GET', 'MSG.DELETE'].map(
    (verb) => `$JS.API.STREAM.${verb}.${stream}`,
  ),
];

const readsStream = (stream: string): string[] => [
  '$JS.API.INFO',
  `$JS.API.STREAM.INFO.${stream}`,
  `$JS.API.STREAM.MSG.GET.${stream}`,
  `$JS.API.DIRECT.GET.${stream}`,
  `$JS.API.DIRECT.GET.${stream}.>`,
];

const consumesStream = (stream: string): string[] => [
  ...readsStream(stream),
  `$JS.API.CONSUMER.*.${stream}`,
  `$JS.API.CONSUMER.*.${stream}.>`,
  `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.>`,
  `$JS.API.CONSUMER.MSG.NEXT.${stream}.>`,
  `$JS.ACK.${stream}.>`,
  `$JS.FC.${stream}.>`,
  // A message that cannot be handled goes to its consumer's dead letters.
  'dlq.>',
];

/** Beyond requests: the memory service hosts the relay (the log into EVENTS), the agent owns the frames' stream. */
const EXTRA: Readonly<Record<ServiceName, SubjectPermissions>> = {
  gateway: {
    publish: [...readsStream('LIVE'), ...readsStream('EVENTS')],
    subscribe: ['live.>', 'evt.>'],
  },
  agent: {
    publish: ['live.>', ...ownsStream('LIVE'), ...readsStream('LIVE'), ...consumesStream('EVENTS')],
    subscribe: [],
  },
  sandbox: { publish: [], subscribe: [] },
  metering: { publish: consumesStream('EVENTS'), subscribe: [] },
  memory: { publish: ['evt.>', ...ownsStream('EVENTS'), ...consumesStream('EVENTS')], subscribe: [] },
};

const permissionsOf = (service: ServiceName): SubjectPermissions => ({
  publish: [
    ...new Set(['hint.>', ...CALLS[service].map((other) => `cmd.${other}.>`), ...EXTRA[service].publish]),
  ],
  subscribe: [
    `cmd.${service}.>`,
    `${inboxPrefix(service)}.>`,
    `hint.${service}.>`,
    LOG_HINT_SUBJECT,
    ...EXTRA[service].subscribe,
  ],
});

/** The subjects of each service's credential (contract §6). Answers to requests are allowed besides, one for each. */
export const NATS_PERMISSIONS = Object.fromEntries(
  SERVICES.map((service) => [service, permissionsOf(service)]),
) as Readonly<Record<ServiceName, SubjectPermissions>>;
