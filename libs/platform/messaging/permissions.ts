import { LOG_NOTIFICATION_SUBJECT, LOG_ROOT_SUBJECT } from '@antiphon/contracts/log';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { deadLetterSubject, requestDeadLetters } from './consumers/dead-letters.js';
import { inboxPrefix } from './link/nats-link.js';
import type { StreamName } from './link/streams.js';
import { ALL_STARTS, startSubject } from './requests/service-starts.js';

/** Permissions of one service's NATS credential; all else is a permissions violation. */
export interface NatsPermissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  /** Allows one reply to each request that the service receives. */
  readonly allowResponses: true;
}

/** Subject on which a gateway tells the others the id of an API key that has changed. */
export const KEY_CHANGED_SUBJECT = 'hint.gateway.key';

/** Subject on which a gateway tells the others that a caller wrote, and up to which position. */
export const CALLER_WROTE_SUBJECT = 'hint.gateway.wrote';

interface Needs {
  /**
   * Requests that it sends, by service, without `cmd.<service>.`. A wildcard covers all requests
   * about one kind of thing.
   */
  readonly requests: Readonly<Partial<Record<ServiceName, readonly string[]>>>;
  /** Streams that it owns: it creates them and publishes to them. */
  readonly owns: readonly StreamName[];
  /** Streams that it reads single messages from. */
  readonly reads: readonly StreamName[];
  /** Names of its durable consumers of `EVENTS`. */
  readonly durables: readonly string[];
  /** Further subjects. */
  readonly publish?: readonly string[];
  readonly subscribe?: readonly string[];
}

const HEALTH = 'health.check';

const NEEDS: Readonly<Record<ServiceName, Needs>> = {
  gateway: {
    // No `tool.call`, `budget.settle` or `context.assemble`: a leak of its credential runs no tool.
    requests: {
      agent: [
        HEALTH,
        'agent.*',
        'message.*',
        'task.*',
        'file.*',
        'chat.*',
        'plan.*',
        'session.*',
        'turn.*',
        // To the process that drives the session.
        'turn.submit.*',
        'approval.*',
        'workflow.*',
        'run.*',
        'credential.*',
        ...['secret.set', 'secret.list', 'secret.remove'],
        'channel.*',
        'provider.*',
        'projection.replay',
      ],
      sandbox: [HEALTH, 'plugin.*', 'remote.*', 'mcp.*'],
      metering: [HEALTH, 'budget.read', 'usage.read', 'session.costs', 'limit.set', 'dead-letter.*'],
      memory: [HEALTH, 'entry.query', 'entry.recall', 'log.*', 'projection.replay'],
    },
    owns: [],
    reads: ['LIVE'],
    durables: [],
    // One gateway tells the others that a key was revoked, and that a caller wrote.
    // It tells the sandbox and the other gateways about programs that serve tools.
    publish: [
      KEY_CHANGED_SUBJECT,
      CALLER_WROTE_SUBJECT,
      'hint.sandbox.tool-workers',
      'hint.gateway.tool-progress',
    ],
    subscribe: ['live.>', 'hint.turn-end.>', 'hint.agent.speech.>', 'hint.agent.samples.>'],
  },
  agent: {
    requests: {
      // The process that assigns tasks lets any process run their turns.
      agent: ['turn.submit', 'turn.cancel'],
      // Large results come from the process that holds them.
      sandbox: [
        ...[HEALTH, 'tool.list', 'tool.call', 'call.find'],
        ...['result.read', 'result.read.*', 'result.release', 'result.release.*', 'channel.*'],
      ],
      metering: [
        'budget.reserve',
        'budget.settle',
        'charge.correct',
        'limit.set',
        'reservation.expire',
        'period.roll',
        'usage.read',
      ],
      memory: ['context.assemble', 'fact.believed', 'entry.turns'],
    },
    owns: ['LIVE'],
    reads: [],
    durables: [],
    // A driver wakes another; cancels and clocks go to every sandbox process.
    publish: ['hint.agent.>', 'hint.sandbox.cancel', 'hint.sandbox.clock'],
  },
  sandbox: {
    // To the process that made a call, before the call's first effect.
    // To the gateway whose program serves a tool. It inserts secrets where tools may have them.
    requests: {
      agent: ['call.begin', 'call.begin.*', 'secret.read'],
      gateway: ['tool.run', 'tool.run.*', 'tool.result.*', 'tool.release.*'],
    },
    owns: [],
    reads: [],
    durables: [],
    publish: ['hint.gateway.tool-workers', 'hint.gateway.tool-cancel'],
  },
  metering: {
    // Its dead letters: it reads, handles and deletes them for an operator.
    requests: { metering: ['replay.*'] },
    owns: [],
    reads: ['DLQ'],
    durables: ['metering-settle-calls'],
    publish: ['$JS.API.STREAM.MSG.DELETE.DLQ'],
  },
  memory: {
    requests: {},
    owns: ['EVENTS'],
    reads: [],
    durables: [],
    // The relay tells the gateways of the ends of turns.
    publish: [LOG_ROOT_SUBJECT, 'hint.turn-end.>'],
  },
};

const SUBJECTS_OF: Readonly<Record<StreamName, string>> = { EVENTS: 'evt.>', LIVE: 'live.>', DLQ: 'dlq.>' };

const api = (verb: string, ...rest: string[]): string => ['$JS.API', verb, ...rest].join('.');

const createStream = (stream: StreamName): string[] =>
  ['CREATE', 'UPDATE', 'INFO'].map((verb) => api('STREAM', verb, stream));

const ownStream = (stream: StreamName): string[] => [
  SUBJECTS_OF[stream],
  ...createStream(stream),
  // The relay recreates a stream whose history differs from the log.
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

const requestsOf = (service: ServiceName): string[] =>
  Object.entries(NEEDS[service].requests).flatMap(([other, names]) =>
    names.map((name) => `cmd.${other}.${name}`),
  );

/** Returns true if a pattern has this subject; `*` stands for one token. */
const hasSubject = (pattern: string, subject: string): boolean => {
  const [wanted, tokens] = [pattern.split('.'), subject.split('.')];
  return (
    wanted.length === tokens.length &&
    wanted.every((token, index) => token === '*' || token === tokens[index])
  );
};

/** Returns true if a service may send requests to this subject. */
export const mayRequest = (service: ServiceName, subject: string): boolean =>
  requestsOf(service).some((pattern) => hasSubject(pattern, subject));

/**
 * Returns the permissions of a service: its own requests and inbox, and the subjects that it uses.
 */
export const natsPermissions = (service: ServiceName): NatsPermissions => {
  const needs = NEEDS[service];
  return {
    publish: [
      ...requestsOf(service),
      ...needs.owns.flatMap(ownStream),
      ...needs.reads.flatMap(readStream),
      ...needs.durables.flatMap(consumeEvents),
      ...(needs.durables.length > 0 ? createStream('DLQ') : []),
      ...(needs.publish ?? []),
      deadLetterSubject(requestDeadLetters(service)),
      LOG_NOTIFICATION_SUBJECT,
      startSubject(service),
    ],
    subscribe: [
      `cmd.${service}.>`,
      `${inboxPrefix(service)}.>`,
      `hint.${service}.>`,
      LOG_NOTIFICATION_SUBJECT,
      ALL_STARTS,
      ...(needs.subscribe ?? []),
    ],
    allowResponses: true,
  };
};
