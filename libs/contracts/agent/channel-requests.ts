import { z } from 'zod';
import { WorkspaceId } from '../log/stored-event.js';
import { defineRequest } from '../messaging/index.js';
import { ChannelName } from './channel-events.js';

/** Maximum size of the body of a delivery of any channel, bytes. */
export const MAX_DELIVERY_BYTES = 4 * 1024 * 1024;

const Caller = z.string().min(1).max(200);

/** Headers of a delivery by lower-case name, as far as schemes and plug-ins need them. */
const Headers = z.record(z.string().max(60), z.string().max(4_096));

/** Takes a delivery of a platform, with its body as it came. Replies what the platform gets. */
export const receiveDelivery = defineRequest({
  subject: 'cmd.agent.channel.receive',
  request: z.strictObject({
    workspace: WorkspaceId,
    channel: ChannelName,
    method: z.enum(['GET', 'POST']),
    headers: Headers,
    query: z.record(z.string().max(100), z.string().max(2_000)),
    /** Base64. */
    body: z.base64(),
  }),
  reply: z.object({
    status: z.int().min(200).max(599),
    contentType: z.string().max(100),
    body: z.string(),
  }),
  timeoutMs: 15_000,
});

export const ChannelView = z.object({
  name: ChannelName,
  plugin: z.string().describe('Plug-in that reads and writes its messages.'),
  account: z.string().describe('Account in bindings and session keys.'),
  connection: z.enum(['webhook', 'polling', 'socket']),
  status: z.enum(['ready', 'unavailable']),
  problem: z.string().nullable().describe('Why it takes no messages; null if it does.'),
  secrets: z.array(z.string()).describe('Names of the secrets that are stored or in the environment.'),
  pairedPeers: z.int().nonnegative(),
});
export type ChannelView = z.infer<typeof ChannelView>;

export const listChannels = defineRequest({
  subject: 'cmd.agent.channel.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ channels: z.array(ChannelView) }),
  timeoutMs: 10_000,
});

/** Secrets of a channel: of outgoing calls, of incoming signatures, and of Meta's subscription. */
export const CHANNEL_SECRETS = ['token', 'secret', 'verify'] as const;
export const ChannelSecretName = z.enum(CHANNEL_SECRETS);
export type ChannelSecretName = z.infer<typeof ChannelSecretName>;
export const ChannelSecret = z
  .string()
  .regex(/^[\x21-\x7e]{1,4096}$/, 'must be 1 to 4096 printable ASCII characters without spaces')
  .describe('The secret. No response, event or log line has it.');

/** Encrypts and stores a secret of a channel. It replaces the one before it. */
export const connectChannel = defineRequest({
  subject: 'cmd.agent.channel.connect',
  request: z.strictObject({
    workspace: WorkspaceId,
    channel: ChannelName,
    name: ChannelSecretName,
    secret: ChannelSecret,
    caller: Caller,
  }),
  reply: ChannelView,
  timeoutMs: 10_000,
});

/** Creates a code that pairs the peer who sends it first. */
export const createPairingCode = defineRequest({
  subject: 'cmd.agent.channel.pair',
  request: z.strictObject({ workspace: WorkspaceId, channel: ChannelName, caller: Caller }),
  reply: z.object({
    code: z.string().describe('The peer sends it as a message. It is shown only here.'),
    expiresAt: z.iso.datetime(),
  }),
  timeoutMs: 10_000,
});

export const PeerView = z.object({
  peer: z.string(),
  state: z.enum(['paired', 'blocked']),
  by: z.string(),
  at: z.iso.datetime(),
});
export type PeerView = z.infer<typeof PeerView>;

export const listPeers = defineRequest({
  subject: 'cmd.agent.channel.list-peers',
  request: z.strictObject({ workspace: WorkspaceId, channel: ChannelName }),
  reply: z.object({ peers: z.array(PeerView) }),
  timeoutMs: 10_000,
});

export const PEER_ACTIONS = ['pair', 'unpair', 'block'] as const;

export const changePeer = defineRequest({
  subject: 'cmd.agent.channel.change-peer',
  request: z.strictObject({
    workspace: WorkspaceId,
    channel: ChannelName,
    peer: z.string().min(1).max(200),
    action: z.enum(PEER_ACTIONS),
    caller: Caller,
  }),
  reply: z.object({ changed: z.boolean() }),
  timeoutMs: 10_000,
});

export const DELIVERY_STATES = [
  'received',
  'answering',
  'queued',
  'sending',
  'sent',
  'unknown',
  'failed',
  'refused',
  'unreadable',
] as const;
export const DeliveryState = z
  .enum(DELIVERY_STATES)
  .describe('`failed`, `unknown` and `unreadable` are dead letters.');
export type DeliveryState = z.infer<typeof DeliveryState>;

export const DeliveryView = z.object({
  messageId: z.uuid(),
  channel: ChannelName,
  peer: z.string().nullable(),
  state: DeliveryState,
  code: z.string().nullable().describe('Code of the last failure or refusal.'),
  attempts: z.int().nonnegative(),
  receivedAt: z.iso.datetime(),
  changedAt: z.iso.datetime(),
});
export type DeliveryView = z.infer<typeof DeliveryView>;

/** Lists deliveries, newest first. */
export const listDeliveries = defineRequest({
  subject: 'cmd.agent.channel.list-deliveries',
  request: z.strictObject({
    workspace: WorkspaceId,
    channel: ChannelName.optional(),
    states: z.array(DeliveryState).max(DELIVERY_STATES.length).optional(),
    before: z.int().positive().optional(),
    limit: z.int().min(1).max(200).default(50),
  }),
  reply: z.object({ deliveries: z.array(DeliveryView), before: z.int().positive().nullable() }),
  timeoutMs: 10_000,
});

/** Sends the reply of a dead letter again. */
export const replayDelivery = defineRequest({
  subject: 'cmd.agent.channel.replay',
  request: z.strictObject({ workspace: WorkspaceId, messageId: z.uuid(), caller: Caller }),
  reply: DeliveryView,
  timeoutMs: 10_000,
});
