export { DEFAULT_ACK_POLICY, decideAck } from './consumers/ack-policy.js';
export type { AckPolicy, Verdict } from './consumers/ack-policy.js';
export { createConsumerHost } from './consumers/consumer-host.js';
export type { ConsumerHost, ConsumerHostOptions, RunningConsumer } from './consumers/consumer-host.js';
export {
  DLQ_HEADERS,
  deadLetterSubject,
  eventIdOfLetter,
  listDeadLetters,
  readDeadLetter,
  requestDeadLetters,
  sendDeadLetter,
  workspaceOfLetter,
} from './consumers/dead-letters.js';
export type { StoredDeadLetter } from './consumers/dead-letters.js';
export { defineConsumer } from './consumers/define-consumer.js';
export type { ConsumerDefinition, MessageHandler, MessageMeta } from './consumers/define-consumer.js';
export { replayDeadLetter } from './consumers/replay-dead-letters.js';
export { createLogNotifier, onLogNotification } from './link/log-notification.js';
export { callWhileConnected, connectNats, inboxPrefix, readNatsTls } from './link/nats-link.js';
export type { NatsLink, NatsLinkOptions, NatsTls } from './link/nats-link.js';
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
export { CALLER_WROTE_SUBJECT, KEY_CHANGED_SUBJECT, mayRequest, natsPermissions } from './permissions.js';
export type { NatsPermissions } from './permissions.js';
export { EVENT_HEADERS } from './relay/event-message.js';
export { LeaderLoop } from './relay/leader-loop.js';
export type { LeaderWork } from './relay/leader-loop.js';
export { Leadership } from './relay/leadership.js';
export { startRelay } from './relay/relay.js';
export type { Announcement, Relay, RelayOptions, RelayStatus } from './relay/relay.js';
export { fetchParts } from './requests/fetch-parts.js';
export { createRequestClient, requestWithRetry } from './requests/request-client.js';
export type { RequestClient, RequestOptions } from './requests/request-client.js';
export { LocalRequests } from './requests/local-requests.js';
export { HandleRequest, RequestServer } from './requests/request-server.js';
export type { RequestServerOptions } from './requests/request-server.js';
export { nextServiceStart, startSubject } from './requests/service-starts.js';
