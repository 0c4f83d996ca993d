import { z } from 'zod';
import { event } from '../log/stored-event.js';

/** Name of a channel: a key of the configuration, a part of a path and of a session key. */
export const ChannelName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/);

/** Id that a platform gives a peer, an account, a guild, a team or a thread. */
const PlatformId = z.string().regex(/^[^\p{Cc}]{1,200}$/u);
/** A value of a platform on one line. */
const Line = z.string().regex(/^[^\p{Cc}]{0,500}$/u);
const Digest = z.string().regex(/^[0-9a-f]{64}$/);

/** Maximum length of the text of a message, and of one part of a reply. */
export const MAX_CHANNEL_TEXT = 65_536;
export const MAX_ATTACHMENTS = 20;
export const MAX_REPLY_PARTS = 100;

/** File that came with a message. Its bytes stay on the platform. */
export const ChannelAttachment = z.object({
  kind: z.string().max(40),
  name: z.string().max(200).optional(),
  mediaType: Line.optional(),
  size: z.int().nonnegative().optional(),
  /** Id of the file on the platform. */
  id: Line.optional(),
});

export const ChannelSender = z.object({
  id: PlatformId,
  name: z.string().max(200).optional(),
  isBot: z.boolean().default(false),
});

/** A message as every platform is read. */
export const ChannelMessage = z.object({
  /** Conversation on the platform: a person, a group or a channel. */
  peer: PlatformId,
  guild: PlatformId.optional(),
  team: PlatformId.optional(),
  thread: PlatformId.optional(),
  kind: z.enum(['text', 'command', 'button']).default('text'),
  text: z.string().max(MAX_CHANNEL_TEXT),
  /** Value of the button that was pressed. */
  button: z
    .string()
    .regex(/^[^\p{Cc}]{1,300}$/u)
    .optional(),
  attachments: z.array(ChannelAttachment).max(MAX_ATTACHMENTS).default([]),
  sender: ChannelSender,
  /** Id of the delivery on the platform. Two deliveries with one id are one message. */
  deliveryId: z.string().regex(/^[^\p{Cc}]{1,300}$/u),
  /** Values that the plug-in needs to address the reply. */
  replyTo: z.record(z.string().max(40), z.string().regex(/^[^\p{Cc}]{0,2000}$/u)).default({}),
});
export type ChannelMessage = z.infer<typeof ChannelMessage>;

/** Why a message led to no turn. */
export const REFUSALS = ['unpaired', 'blocked', 'bot', 'rate_limited', 'empty', 'own'] as const;
export type Refusal = (typeof REFUSALS)[number];

const messageId = z.uuid();
const at = z.iso.datetime();
const place = { messageId, channel: ChannelName, account: PlatformId };
const part = { messageId, part: z.int().nonnegative(), attempt: z.int().positive() };
const Code = z.string().max(100);
/** Text of a platform about its refusal, without the token. */
const Detail = z.string().max(300).nullable();

export const ChannelMessageReceived = event('ChannelMessageReceived', {
  ...place,
  message: ChannelMessage,
  /** Digest of the module that read the delivery. */
  moduleDigest: z.string().max(100),
  at,
});
/** A message that leads to no turn. Its text is not stored. */
export const ChannelMessageRefused = event('ChannelMessageRefused', {
  ...place,
  peer: PlatformId,
  sender: PlatformId,
  deliveryId: z.string().regex(/^[^\p{Cc}]{1,300}$/u),
  reason: z.enum(REFUSALS),
  at,
});
/** A delivery with a right signature that the plug-in could not read. */
export const ChannelDeliveryFailed = event('ChannelDeliveryFailed', {
  ...place,
  /** SHA-256 of the body, hex. */
  digest: Digest,
  bytes: z.int().nonnegative(),
  code: Code,
  tries: z.int().positive(),
  at,
});
export const ChannelTurnStarted = event('ChannelTurnStarted', {
  messageId,
  agentId: z.string().max(200),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  at,
});
/** Kind of a reply: the answer of a turn, or a text of the channel itself. */
export const REPLY_KINDS = [
  ...(['answer', 'failed', 'cancelled', 'paired', 'new_session', 'refused'] as const),
  'decision',
] as const;
export const ChannelReplyQueued = event('ChannelReplyQueued', {
  messageId,
  kind: z.enum(REPLY_KINDS),
  /** Texts, one for each message on the platform. Empty: there is nothing to send. */
  parts: z.array(z.string().max(MAX_CHANNEL_TEXT)).max(MAX_REPLY_PARTS),
  at,
});
/** An approval is shown to the conversation that waits for it, with buttons. */
export const ChannelApprovalQueued = event('ChannelApprovalQueued', {
  ...place,
  /** Message whose turn waits. */
  message: ChannelMessage,
  approvalId: z.uuid(),
  /** Digest that the approval had when it was shown. */
  digest: z.string().max(128),
  text: z.string().max(MAX_CHANNEL_TEXT),
  at,
});
/** Written before a request leaves. Until its outcome is known, the part is not sent again. */
export const ChannelReplyAttempted = event('ChannelReplyAttempted', {
  ...part,
  by: z.string().max(200),
  at,
});
/** The platform refused the part for now, or was not reached. It is sent again at `retryAt`. */
export const ChannelReplyDelayed = event('ChannelReplyDelayed', {
  ...part,
  code: Code,
  status: z.int().nullable(),
  retryAt: at,
  at,
});
export const ChannelReplySent = event('ChannelReplySent', {
  ...part,
  via: z.enum(['request', 'response']),
  platformId: PlatformId.nullable(),
  at,
});
/** The outcome of an attempt is lost. The part may be visible, and is not sent again by itself. */
export const ChannelReplyUnknown = event('ChannelReplyUnknown', { ...part, code: Code, at });
/** A dead letter: the platform refused the part for good, or too often. */
export const ChannelReplyFailed = event('ChannelReplyFailed', {
  ...part,
  code: Code,
  status: z.int().nullable(),
  detail: Detail,
  at,
});
/** An operator sends a dead letter again. */
export const ChannelReplyReplayed = event('ChannelReplyReplayed', {
  messageId,
  by: z.string().max(200),
  at,
});

/** Every event of a `channel-<id>` stream of one delivery. */
export const ChannelMessageEvent = z.discriminatedUnion('type', [
  ChannelMessageReceived,
  ChannelMessageRefused,
  ChannelDeliveryFailed,
  ChannelTurnStarted,
  ChannelReplyQueued,
  ChannelReplyAttempted,
  ChannelReplyDelayed,
  ChannelReplySent,
  ChannelReplyUnknown,
  ChannelReplyFailed,
  ChannelReplyReplayed,
  ChannelApprovalQueued,
]);
export type ChannelMessageEvent = z.infer<typeof ChannelMessageEvent>;

const by = z.string().min(1).max(200);
const change = { channel: ChannelName, by, at };

/** A secret of the channel was stored. The secret itself is in no event. */
export const ChannelConnected = event('ChannelConnected', {
  ...change,
  /** Name of the secret, such as `token`. */
  secret: z.string().max(40),
  credentialId: z.uuid(),
});
/** A code that pairs one peer. Only its digest is stored. */
export const PairingCodeCreated = event('PairingCodeCreated', {
  ...change,
  codeDigest: Digest,
  expiresAt: at,
});
/** The peer may talk to agents from here on. `codeDigest` is null if an operator paired it. */
export const PeerPaired = event('PeerPaired', {
  ...change,
  peer: PlatformId,
  codeDigest: Digest.nullable(),
});
export const PeerUnpaired = event('PeerUnpaired', { ...change, peer: PlatformId });
/** Messages of the peer are refused from here on, also if the configuration allows it. */
export const PeerBlocked = event('PeerBlocked', { ...change, peer: PlatformId });

/** Every event of the `channel-<id>` stream with the peers of a channel. */
export const ChannelPeerEvent = z.discriminatedUnion('type', [
  ChannelConnected,
  PairingCodeCreated,
  PeerPaired,
  PeerUnpaired,
  PeerBlocked,
]);
export type ChannelPeerEvent = z.infer<typeof ChannelPeerEvent>;

/** The id takes a UUID that is derived from the delivery, or from the channel. */
export const channelStream = (id: string): string => `channel-${id}`;

/** Returns the id of the Temporal workflow that delivers the reply to a message. */
export const channelWorkflowId = (messageId: string): string => `channel/${messageId}`;
