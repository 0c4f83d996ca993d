import { z } from 'zod';
import { WorkspaceId } from '../log/stored-event.js';
import { defineRequest } from '../messaging/index.js';

/** Schemes by which platforms prove the origin of a delivery. */
export const CHANNEL_SCHEMES = ['secret', 'standard', 'telegram', 'slack', 'meta', 'discord'] as const;
export const ChannelScheme = z.enum(CHANNEL_SCHEMES);
export type ChannelScheme = z.infer<typeof ChannelScheme>;

const FieldPath = z
  .string()
  .max(100)
  .regex(/^[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*$/);

/** How the answer of a platform to a request is read. Paths are keys and indexes, with dots. */
export const AnswerRules = z.object({
  /** Field that is true for a success; without it, the status tells. */
  ok: FieldPath.optional(),
  error: FieldPath.optional(),
  /** Seconds until another try. */
  retry_after: FieldPath.optional(),
  id: FieldPath.optional(),
});
export type AnswerRules = z.infer<typeof AnswerRules>;

/** Facts that a channel plug-in declares by `describe()`. */
export const ChannelDescription = z.object({
  description: z.string().min(1).max(4_000),
  /** Schemes that it can be used with, the usual one first. */
  schemes: z.array(ChannelScheme).min(1).max(CHANNEL_SCHEMES.length),
  /** Address of the platform that paths of requests begin at. */
  base_url: z
    .url({ protocol: /^https$/ })
    .max(500)
    .optional(),
  /** True if the platform shows two requests with one key once. */
  idempotent: z.boolean().default(false),
  /** Maximum length of one message on the platform, UTF-16 units. */
  max_text: z.int().min(100).max(65_536).default(4_000),
  /** Milliseconds within which the reply may be the response to the delivery; 0 for never. */
  reply_within_ms: z.int().min(0).max(5_000).default(0),
  /** True if it writes buttons of `format_outgoing`, and reads presses of them. */
  buttons: z.boolean().default(false),
  answer: AnswerRules.default({}),
  /** Request that waits for deliveries, for a platform that is asked. */
  poll: z
    .object({
      url: z.string().min(1).max(500),
      /** Path of the list of deliveries. */
      items: FieldPath,
      /** Path of the number of a delivery. The next request has the largest plus 1 as `{offset}`. */
      id: FieldPath,
    })
    .optional(),
  /** Connection that the host holds, for a platform with one. */
  socket: z
    .object({
      protocol: z.enum(['slack', 'discord']),
      /** Request for the address of the socket. */
      open: z.object({
        method: z.enum(['GET', 'POST']),
        url: z.string().min(1).max(500),
        headers: z.record(z.string().max(60), z.string().max(1_000)).default({}),
      }),
      /** Field of its answer with the address. */
      url: FieldPath,
      /** Domains that the address may be of. */
      hosts: z.array(z.string().regex(/^[a-z0-9.-]{1,253}$/)).max(10),
      /** Secret of the channel for the request. */
      secret: z.enum(['token', 'secret']),
    })
    .optional(),
});
export type ChannelDescription = z.infer<typeof ChannelDescription>;

const Plugin = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

export const ChannelPluginView = z.object({
  name: Plugin,
  moduleDigest: z.string(),
  description: ChannelDescription,
});
export type ChannelPluginView = z.infer<typeof ChannelPluginView>;

/** Finds a loaded plug-in of the kind channel. */
export const describeChannel = defineRequest({
  subject: 'cmd.sandbox.channel.describe',
  request: z.strictObject({ plugin: Plugin }),
  reply: z.discriminatedUnion('found', [
    z.object({ found: z.literal(true), plugin: ChannelPluginView }),
    z.object({ found: z.literal(false), reason: z.string() }),
  ]),
  timeoutMs: 5_000,
});

/** Runs `parse_incoming` or `format_outgoing` on bytes. A failure of the plug-in is a reply. */
export const runChannel = defineRequest({
  subject: 'cmd.sandbox.channel.run',
  request: z.strictObject({
    plugin: Plugin,
    entry: z.enum(['parse_incoming', 'format_outgoing']),
    /** Base64. */
    input: z.base64(),
    settings: z.record(z.string().max(40), z.string().max(4_096)),
  }),
  reply: z.discriminatedUnion('outcome', [
    z.object({ outcome: z.literal('completed'), output: z.string(), moduleDigest: z.string() }),
    z.object({ outcome: z.literal('failed'), code: z.string(), message: z.string() }),
  ]),
  timeoutMs: 10_000,
});

/** A request that a plug-in wrote. `{token}` in its URL and headers takes the stored token. */
export const ChannelHttpRequest = z.object({
  method: z.enum(['GET', 'POST', 'PATCH', 'PUT']).default('POST'),
  /** A path below the address of the channel, or a URL of a granted host. */
  url: z.string().min(1).max(2_000),
  headers: z.record(z.string().max(60), z.string().max(1_000)).default({}),
  body: z
    .string()
    .max(256 * 1024)
    .default(''),
});
export type ChannelHttpRequest = z.infer<typeof ChannelHttpRequest>;

/** Key of one attempt to send a part. */
const SendKey = z.string().regex(/^[\x21-\x7e]{1,190}$/);

const SendOutcome = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('answered'),
    status: z.int(),
    /** Value of `Retry-After`. */
    retryAfter: z.string().max(100).nullable(),
    body: z.string(),
  }),
  /** The request is not allowed. It did not leave. */
  z.object({ outcome: z.literal('refused'), reason: z.string() }),
  /** The platform was not reached. The request did not leave. */
  z.object({ outcome: z.literal('unreached'), reason: z.string() }),
  /** The request may have arrived, and its answer did not. */
  z.object({ outcome: z.literal('unknown'), reason: z.string() }),
]);

/** Sends a request of a plug-in to its platform, through the vetted client. Never retries. */
export const sendChannel = defineRequest({
  subject: 'cmd.sandbox.channel.send',
  request: z.strictObject({
    plugin: Plugin,
    request: ChannelHttpRequest,
    /** Address of the configuration, in place of the one that the plug-in declares. */
    baseUrl: z.string().max(2_048).nullable(),
    /** Inserted by the host. It is in no event, log line, span, or memory of the plug-in. */
    token: z.string().max(4_096).nullable(),
    /** Inserted for `{reply_secret}`: a credential of the platform for one reply. */
    replySecret: z.string().max(4_096).nullable().default(null),
    idempotencyKey: SendKey,
    /** Attempt that may be settled later; null for a request whose loss does not matter. */
    attempt: z.strictObject({ workspace: WorkspaceId, key: SendKey }).nullable().default(null),
  }),
  reply: SendOutcome,
  timeoutMs: 25_000,
});

/**
 * Tells how an attempt ended whose answer is lost. An attempt that has not begun counts as not
 * reached, and never leaves after that.
 */
export const settleSend = defineRequest({
  subject: 'cmd.sandbox.channel.settle',
  request: z.strictObject({ workspace: WorkspaceId, key: SendKey }),
  reply: SendOutcome,
  timeoutMs: 5_000,
});
