export { askAgain } from './ask-again.js';
export { HandleRequest } from './handle-request.js';
export { createLogHint, onLogHint } from './log-hint.js';
export { connectNats, inboxPrefix } from './nats-link.js';
export type { NatsLink, NatsLinkOptions } from './nats-link.js';
export { createRequestClient } from './request-client.js';
export type { RequestClient, RequestOptions } from './request-client.js';
export { RequestServer } from './request-server.js';
export type { RequestServerOptions } from './request-server.js';
export { DEFAULT_ACK_POLICY, judge } from './ack-policy.js';
export type { AckPolicy, Verdict } from './ack-policy.js';
export { createConsumerHost } from './consumer-host.js';
export type { ConsumerHost, ConsumerHostOptions, RunningConsumer } from './consumer-host.js';
export { DLQ_HEADERS, deadLetterSubject, sendDeadLetter } from './dead-letter.js';
export { listDeadLetters, replayDeadLetter } from './dead-letters.js';
export type { KeptDeadLetter } from './dead-letters.js';
export { defineConsumer } from './define-consumer.js';
export type { ConsumerDefinition, MessageHandler, MessageMeta } from './define-consumer.js';
export { EVENT_HEADERS } from './event-message.js';
export { createLeadership } from './relay-leadership.js';
export type { Leadership } from './relay-leadership.js';
export { natsPermissions } from './permissions.js';
export type { NatsPermissions } from './permissions.js';
export { startRelay } from './relay.js';
export type { Relay, RelayOptions, RelayStatus } from './relay.js';
export {
  JETSTREAM_CODES,
  STREAMS,
  STREAM_NAMES,
  ensureStream,
  jetstreamCode,
  keepStreams,
  managerOf,
} from './streams.js';
export type { StreamName } from './streams.js';
