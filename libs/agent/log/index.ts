export {
  agentUuidOf,
  approvalIdOf,
  callIdOf,
  channelMessageIdOf,
  channelPeersIdOf,
  chatIdOf,
  endMessageIdOf,
  fileErasuresIdOf,
  fileTreeIdOf,
  keyIdOf,
  planIdOf,
  providersIdOf,
  secretsIdOf,
  toolDigestOf,
  topicUuidOf,
} from './derived-ids.js';
export { eventMetadata, toNewEvent } from './event-envelope.js';
export type { EventOrigin } from './event-envelope.js';
export { eventForms } from './event-envelope.js';
export { storableCause } from './storable-cause.js';
