import { z } from 'zod';
import {
  ChannelName,
  ChannelSecret,
  ChannelSecretName,
  ChannelView,
  createPairingCode,
  DeliveryState,
  DeliveryView,
  listChannels,
  listPeers,
  PEER_ACTIONS,
} from '../agent/index.js';
import { defineRoute } from './http-route.js';

const ByChannel = z.object({ channel: ChannelName.describe('Name of the channel.') });
/** Unknown names have the answer of unknown channels, not that of a wrong form. */
const AnyChannel = z.object({ channel: z.string().max(200).describe('Name of the channel.') });

const CHANNEL = {
  name: 'telegram',
  plugin: 'telegram',
  account: 'default',
  connection: 'webhook',
  status: 'ready',
  problem: null,
  secrets: ['token', 'secret'],
  pairedPeers: 1,
} as const;
const DELIVERY = {
  messageId: '0192f0c1-7a2b-5c3d-8e4f-000000000071',
  channel: 'telegram',
  peer: '4711',
  state: 'failed',
  code: 'HTTP.403',
  attempts: 1,
  receivedAt: '2026-11-28T10:00:00.000Z',
  changedAt: '2026-11-28T10:00:03.000Z',
} as const;
const NO_CHANNEL = { 404: '`CHANNEL.NOT_FOUND`: the workspace has no channel with this name' };

const DELIVERY_TEXT =
  'Takes a delivery of a platform. No API key is needed: the signature or the secret is checked on the bytes of the body, ' +
  'by the scheme of the plug-in, and a signed time must be within five minutes. A repeated delivery adds nothing. The ' +
  'response is that of the platform: empty, the answer of a challenge, or a reply in the form of the platform.';
const DELIVERY_PROBLEMS = {
  401: '`CHANNEL.REFUSED`: the signature, the secret or the time is not right',
  404: '`CHANNEL.REFUSED`: there is no such channel; the body is the same as for 401',
  413: 'the body is larger than the channel takes',
  429: '`CHANNEL.RATE_LIMITED`: more deliveries in a second than the channel takes',
  503: 'the plug-in or a service is not there; the platform sends again',
};

/** Routes of channels: deliveries of platforms, and what operators see and change. */
export const CHANNEL_ROUTES = {
  receiveDelivery: defineRoute({
    method: 'post',
    path: '/webhook/{channel}',
    tag: 'Channels',
    summary: 'Take a delivery of a platform',
    description: DELIVERY_TEXT,
    access: 'open',
    params: AnyChannel,
    body: z.json().optional(),
    upload: true,
    reply: { schema: z.string(), media: '*/*' },
    example: { params: { channel: 'telegram' }, body: { update_id: 1 } },
    problems: DELIVERY_PROBLEMS,
  }),
  subscribeChannel: defineRoute({
    method: 'get',
    path: '/webhook/{channel}',
    tag: 'Channels',
    summary: 'Confirm a subscription of Meta',
    description:
      'Returns `hub.challenge` as text if `hub.verify_token` is the secret `verify` of the channel, as WhatsApp demands.',
    access: 'open',
    params: AnyChannel,
    reply: { schema: z.string(), media: 'text/plain' },
    example: { params: { channel: 'whatsapp' } },
    problems: { 401: DELIVERY_PROBLEMS[401], 404: DELIVERY_PROBLEMS[404] },
  }),
  listChannels: defineRoute({
    method: 'get',
    path: '/api/v1/channels',
    tag: 'Channels',
    summary: 'List channels',
    description: 'Returns the configured channels of the workspace, without their secrets.',
    access: 'plugins:read',
    reply: { schema: listChannels.reply },
    example: { reply: { channels: [CHANNEL] } },
  }),
  connectChannel: defineRoute({
    method: 'put',
    path: '/api/v1/channels/{channel}/secrets/{name}',
    tag: 'Channels',
    summary: 'Store a secret of a channel',
    description:
      'Encrypts and stores the token of outgoing calls, the `secret` of signatures, or the `verify` token of Meta. The event ' +
      '`ChannelConnected` has its name only.',
    access: 'credentials:manage',
    params: ByChannel.extend({ name: ChannelSecretName.describe('`token`, `secret` or `verify`.') }),
    body: z.strictObject({ secret: ChannelSecret }),
    reply: { schema: ChannelView },
    example: {
      params: { channel: 'telegram', name: 'token' },
      body: { secret: 'the-token-of-the-bot' },
      reply: CHANNEL,
    },
    problems: NO_CHANNEL,
  }),
  createPairingCode: defineRoute({
    method: 'post',
    path: '/api/v1/channels/{channel}/pairing-codes',
    tag: 'Channels',
    summary: 'Create a pairing code',
    description: 'Returns a code that pairs the sender who sends it first. It is valid for an hour.',
    access: 'operations:write',
    params: ByChannel,
    reply: { schema: createPairingCode.reply, status: 201 },
    example: {
      params: { channel: 'telegram' },
      reply: { code: 'K7Q2M9XWPA', expiresAt: '2026-11-28T11:00:00.000Z' },
    },
    problems: { ...NO_CHANNEL, 422: '`CHANNEL.TOO_MANY_CODES`' },
  }),
  listPeers: defineRoute({
    method: 'get',
    path: '/api/v1/channels/{channel}/peers',
    tag: 'Channels',
    summary: 'List peers of a channel',
    description:
      'Returns the paired and the blocked peers. Those of `allow` in the configuration are not in it.',
    access: 'sessions:read',
    params: ByChannel,
    reply: { schema: listPeers.reply },
    example: {
      params: { channel: 'telegram' },
      reply: { peers: [{ peer: '4711', state: 'paired', by: 'peer/4711', at: '2026-11-28T10:00:00.000Z' }] },
    },
    problems: NO_CHANNEL,
  }),
  changePeer: defineRoute({
    method: 'put',
    path: '/api/v1/channels/{channel}/peers/{peer}',
    tag: 'Channels',
    summary: 'Pair, unpair or block a peer',
    description:
      'A blocked peer is refused also if the configuration allows it. `changed` is false for a repeat.',
    access: 'operations:write',
    params: ByChannel.extend({ peer: z.string().min(1).max(200).describe('Id of the sender or the peer.') }),
    body: z.strictObject({ action: z.enum(PEER_ACTIONS) }),
    reply: { schema: z.object({ changed: z.boolean() }) },
    example: {
      params: { channel: 'telegram', peer: '4711' },
      body: { action: 'block' },
      reply: { changed: true },
    },
    problems: { ...NO_CHANNEL, 422: '`CHANNEL.TOO_MANY_PEERS`' },
  }),
  listDeliveries: defineRoute({
    method: 'get',
    path: '/api/v1/deliveries',
    tag: 'Channels',
    summary: 'List deliveries and dead letters of channels',
    description:
      'Returns deliveries, newest first, without their texts. `state=dead` lists dead letters: `failed`, `unknown` and `unreadable`.',
    access: 'sessions:read',
    query: z.object({
      channel: ChannelName.optional().describe('Channel of the deliveries.'),
      state: z
        .enum([...DeliveryState.options, 'dead'])
        .optional()
        .describe('State of the deliveries, or `dead` for all dead letters.'),
      before: z.coerce.number().int().positive().optional().describe('`before` of the page before.'),
      limit: z.coerce.number().int().min(1).max(200).default(50).describe('Number of deliveries.'),
    }),
    reply: {
      schema: z.object({
        deliveries: z.array(DeliveryView),
        before: z.int().positive().nullable().describe('Pass it for the next page; null on the last one.'),
      }),
    },
    example: { query: { state: 'dead' }, reply: { deliveries: [DELIVERY], before: null } },
  }),
  replayDelivery: defineRoute({
    method: 'post',
    path: '/api/v1/deliveries/{id}/replay',
    tag: 'Channels',
    summary: 'Send a dead letter again',
    description:
      'Sends the parts of a reply that failed or whose outcome is unknown. A part with an unknown outcome may be shown twice.',
    access: 'operations:write',
    params: z.object({ id: z.uuid().describe('`messageId` of the delivery.') }),
    reply: { schema: DeliveryView },
    example: { params: { id: DELIVERY.messageId }, reply: { ...DELIVERY, state: 'queued' } },
    problems: { 404: '`CHANNEL.NO_DELIVERY`', 422: '`CHANNEL.NOT_DEAD`' },
  }),
} as const;
