import { LOG_NOTIFICATION_SUBJECT, LOG_ROOT_SUBJECT } from '@antiphon/contracts/log';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { deadLetterSubject } from './consumers/dead-letter.js';
import { inboxPrefix } from './link/nats-link.js';
import { requestDeadLetters } from './requests/request-server.js';
import type { StreamName } from './link/streams.js';

/** What the server lets one service's credential do; everything else is a permissions violation. */
export interface NatsPermissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  /** Besides, one reply to each request that it was sent. */
  readonly allowResponses: true;
}

interface Needs {
  /** Services that it asks. */
  readonly asks: readonly ServiceName[];
  /** Streams whose owner it is: it makes them, and publishes what they hold. */
  readonly owns: readonly StreamName[];
  /** Streams that it looks things up in. */
  readonly reads: readonly StreamName[];
  /** Its durable consumers of `EVENTS`, by name. */
  readonly durables: readonly string[];
  /** Subjects beyond these rules. */
  readonly publish?: readonly string[];
  readonly subscribe?: readonly string[];
}

const HEALTH: readonly ServiceName[] = ['agent', 'sandbox', 'metering', 'memory'];

const NEEDS: Readonly<Record<ServiceName, Needs>> = {
  gateway: { asks: HEALTH, owns: [], reads: ['LIVE'], durables: [], subscribe: ['live.>', 'evt.>'] },
  agent: {
    asks: ['sandbox', 'metering', 'memory'],
    owns: ['LIVE'],
    reads: [],
    durables: [],
    // One driver wakes another; a cancelled turn tells every sandbox process.
    publish: ['hint.agent.>', 'hint.sandbox.cancel'],
  },
  sandbox: { asks: [], owns: [], reads: [], durables: [] },
  metering: { asks: [], owns: [], reads: [], durables: ['metering-settle-calls'] },
  memory: { asks: [], owns: ['EVENTS'], reads: [], durables: [], publish: [LOG_ROOT_SUBJECT] },
};

const SUBJECTS_OF: Readonly<Record<StreamName, string>> = { EVENTS: 'evt.>', LIVE: 'live.>', DLQ: 'dlq.>' };

const api = (verb: string, ...rest: string[]): string => ['$JS.API', verb, ...rest].join('.');

const makeStream = (stream: StreamName): string[] =>
  ['CREATE', 'UPDATE', 'INFO'].map((verb) => api('STREAM', verb, stream));

const ownStream = (stream: StreamName): string[] => [
  SUBJECTS_OF[stream],
  ...makeStream(stream),
  // The relay makes a stream anew that holds another history than the log.
  api('STREAM.DELETE', stream),
  ...readStream(stream),
];

const readStream = (stream: StreamName): string[] => [
  api('STREAM.INFO', stream),
  api('STREAM.MSG.GET', stream),
  api('DIRECT.GET', stream),
  api('DIRECT.GET', stream, '>'),
];

const consumeEvents = (durable: string): string[] => [
  ...['CREATE', 'DURABLE.CREATE', 'INFO'].map((verb) => api(`CONSUMER.${verb}`, 'EVENTS', durable)),
  // The filter is part of the subject.
  api('CONSUMER.CREATE.EVENTS', durable, '>'),
  api('CONSUMER.MSG.NEXT.EVENTS', durable),
  `$JS.ACK.EVENTS.${durable}.>`,
  deadLetterSubject(durable),
];

/** Subjects of a service's credential (contract §6): its own requests and inbox, and what its work needs; no more. */
export const natsPermissions = (service: ServiceName): NatsPermissions => {
  const needs = NEEDS[service];
  return {
    publish: [
      ...needs.asks.map((other) => `cmd.${other}.>`),
      ...needs.owns.flatMap(ownStream),
      ...needs.reads.flatMap(readStream),
      ...needs.durables.flatMap(consumeEvents),
      ...(needs.durables.length > 0 ? makeStream('DLQ') : []),
      ...(needs.publish ?? []),
      deadLetterSubject(requestDeadLetters(service)),
      LOG_NOTIFICATION_SUBJECT,
    ],
    subscribe: [
      `cmd.${service}.>`,
      `${inboxPrefix(service)}.>`,
      `hint.${service}.>`,
      LOG_NOTIFICATION_SUBJECT,
      ...(needs.subscribe ?? []),
    ],
    allowResponses: true,
  };
};
