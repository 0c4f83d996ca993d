export { requestWithRetry } from './requests/request-with-retry.js';
export { HandleRequest } from './requests/handle-request.js';
export { createLogNotifier, onLogNotification } from './link/log-notification.js';
export { connectNats, inboxPrefix } from './link/nats-link.js';
export type { NatsLink, NatsLinkOptions } from './link/nats-link.js';
export { createRequestClient } from './requests/request-client.js';
export type { RequestClient, RequestOptions } from './requests/request-client.js';
export { RequestServer } from './requests/request-server.js';
export type { RequestServerOptions } from './requests/request-server.js';
export { DEFAULT_ACK_POLICY, decideAck } from './consumers/ack-policy.js';
export type { AckPolicy, Verdict } from './consumers/ack-policy.js';
export { createConsumerHost } from './consumers/consumer-host.js';
export type { ConsumerHost, ConsumerHostOptions, RunningConsumer } from './consumers/consumer-host.js';
export { DLQ_HEADERS, deadLetterSubject, sendDeadLetter } from './consumers/dead-letter.js';
export { listDeadLetters, replayDeadLetter } from './consumers/dead-letters.js';
export type { StoredDeadLetter } from './consumers/dead-letters.js';
export { defineConsumer } from './consumers/define-consumer.js';
export type { ConsumerDefinition, MessageHandler, MessageMeta } from './consumers/define-consumer.js';
export { EVENT_HEADERS } from './relay/event-message.js';
export { createLeadership } from './relay/leadership.js';
export type { Leadership } from './relay/leadership.js';
export { natsPermissions } from './permissions.js';
export type { NatsPermissions } from './permissions.js';
export { startRelay } from './relay/relay.js';
export type { Relay, RelayOptions, RelayStatus } from './relay/relay.js';
export {
  JETSTREAM_CODES,
  STREAMS,
  STREAM_NAMES,
  ensureStream,
  jetstreamErrorCode,
  maintainStreams,
  openJetStreamManager,
} from './link/streams.js';
export type { StreamName } from './link/streams.js';
