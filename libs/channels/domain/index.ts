export { deliveryDecider } from './delivery.decider.js';
export type { DeliveryCommand, ReplyKind } from './delivery.decider.js';
export { evolveDelivery, initialDelivery, isFinal } from './delivery-fold.js';
export type { Delivery, OpenAttempt } from './delivery-fold.js';
export { MAX_PEERS, openCodes, peersDecider } from './peers.decider.js';
export type { ChannelPeers, KnownPeer, PeerCommand } from './peers.decider.js';
export { MAX_ATTEMPTS, backoffMs, readAnswer, valueAt } from './read-answer.js';
export type { AnswerVerdict, PlatformAnswer } from './read-answer.js';
export { splitText } from './split-text.js';
