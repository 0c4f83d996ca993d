import { z } from 'zod';
import type { ChannelMessage } from '@antiphon/contracts/agent';
import { ChannelHttpRequest, runChannel, sendChannel, settleSend } from '@antiphon/contracts/sandbox';
import { approvalButtons } from '@antiphon/channels-domain';
import { findJsonExcess, isAppError } from '@antiphon/kernel';
import type { RequestClient } from '@antiphon/messaging';
import type { Channel, ChannelDirectory } from '../settings/channel-directory.js';

/** Texts that a plug-in wrote, or why it did not. */
export type Formatted<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly code: string };

const Response = z.object({
  content_type: z.string().max(100).default('application/json'),
  body: z.string().max(512 * 1024),
});

/** A part of a reply, as the plug-in gets it. */
export interface OutgoingPart {
  readonly messageId: string;
  readonly message: ChannelMessage;
  readonly account: string;
  readonly text: string;
  /** Approval that the text asks about; null for a reply. */
  readonly approvalId: string | null;
  readonly part: number;
  readonly parts: number;
}

export type SendOutcome =
  | Exclude<z.output<typeof sendChannel.reply>, { outcome: 'unreached' }>
  | { readonly outcome: 'unreached'; readonly code: string }
  /** No reply of the sandbox: the request may be waiting, or may be gone. */
  | { readonly outcome: 'open'; readonly reason: string };

interface RequestExtras {
  readonly replySecret?: string | null;
  /** Secret for `{token}`, if it is another one. */
  readonly secret?: 'token' | 'secret';
  /** Attempt that may be settled later. */
  readonly attempt?: { readonly workspace: string; readonly key: string } | null;
}

/** Codes of requests that no process of the sandbox has. */
const NOT_SENT: ReadonlySet<string> = new Set(['MESSAGING.NO_RESPONDERS', 'MESSAGING.FORBIDDEN']);

/** The same for each attempt, so that a platform with idempotency shows the part once. */
const keyOf = ({ messageId, part }: Pick<OutgoingPart, 'messageId' | 'part'>): string =>
  `${messageId}.${part}`;

/** Runs the plug-in of a channel in the sandbox, and sends what it wrote. */
export class ChannelPlugin {
  constructor(
    private readonly requests: RequestClient,
    private readonly directory: Pick<ChannelDirectory, 'readSecret' | 'readReplySecret'>,
  ) {}

  /** Runs `parse_incoming` on the bytes of a delivery. */
  parse({ config, plugin }: Channel, body: Uint8Array, settings: Readonly<Record<string, string>>) {
    return this.requests.request(runChannel, {
      ...{ plugin: plugin.name, entry: 'parse_incoming', input: Buffer.from(body).toString('base64') },
      settings: { ...settings, channel: config.name, account: config.account },
    });
  }

  /** Writes the request that shows a part on the platform. */
  formatRequest(channel: Channel, part: OutgoingPart): Promise<Formatted<ChannelHttpRequest>> {
    return this.format(channel, part, 'request', ChannelHttpRequest);
  }

  /** Writes a reply as the response to its delivery. */
  formatResponse(channel: Channel, part: OutgoingPart): Promise<Formatted<z.output<typeof Response>>> {
    return this.format(channel, part, 'response', Response);
  }

  /** Sends the request of a part once. Only an outcome that is certain is called one. */
  async send(
    channel: Channel,
    request: ChannelHttpRequest,
    part: Pick<OutgoingPart, 'messageId' | 'part'>,
    key: string,
  ): Promise<SendOutcome> {
    const { workspace } = channel.config;
    const replySecret = await this.directory.readReplySecret(channel.config, part.messageId);
    const attempt = { workspace, key };
    return this.request(channel, request, keyOf(part), { replySecret, attempt });
  }

  /**
   * Returns how an attempt ended whose answer is lost. One that has not begun never leaves after
   * that. Throws transient errors without a sandbox.
   */
  async settle(workspace: string, key: string): Promise<Exclude<SendOutcome, { readonly outcome: 'open' }>> {
    const end = await this.requests.request(settleSend, { workspace, key });
    return end.outcome === 'unreached' ? { outcome: 'unreached', code: 'CHANNEL.UNREACHED' } : end;
  }

  /** Sends a request to the platform of a channel, once. */
  async request(
    { config, plugin }: Channel,
    request: ChannelHttpRequest,
    idempotencyKey: string,
    { replySecret = null, attempt = null, secret = 'token' }: RequestExtras = {},
  ): Promise<SendOutcome> {
    const token = await this.directory.readSecret(config, secret);
    try {
      const end = await this.requests.request(sendChannel, {
        ...{ plugin: plugin.name, request, baseUrl: config.baseUrl, token, replySecret, idempotencyKey },
        attempt,
      });
      return end.outcome === 'unreached' ? { outcome: 'unreached', code: 'CHANNEL.UNREACHED' } : end;
    } catch (error) {
      const code = isAppError(error) ? error.code : 'INTERNAL.UNEXPECTED';
      if (NOT_SENT.has(code)) return { outcome: 'unreached', code };
      return { outcome: 'open', reason: code };
    }
  }

  private async format<T>(
    { config, plugin }: Channel,
    { message, text, approvalId, account, part, parts, messageId }: OutgoingPart,
    mode: 'request' | 'response',
    schema: z.ZodType<T>,
  ): Promise<Formatted<T>> {
    const hasSecret = (await this.directory.readReplySecret(config, messageId)) !== null;
    const { replyTo, peer, thread = null, guild = null, team = null, deliveryId } = message;
    const input = {
      ...{ mode, text, part, parts, account, message_id: messageId },
      ...{ peer, thread, guild, team, delivery_id: deliveryId, reply_to: replyTo },
      ...{ has_reply_secret: hasSecret, kind: message.kind, sender: message.sender.id },
      buttons: approvalId === null ? [] : approvalButtons(approvalId),
    };
    const run = await this.requests.request(runChannel, {
      ...{ plugin: plugin.name, entry: 'format_outgoing', settings: { channel: config.name, mode } },
      input: Buffer.from(JSON.stringify(input)).toString('base64'),
    });
    if (run.outcome === 'failed') return { ok: false, code: run.code };
    try {
      if (findJsonExcess(run.output) !== null) return { ok: false, code: 'CHANNEL.BAD_OUTPUT' };
      const { data } = schema.safeParse(JSON.parse(run.output));
      return data === undefined ? { ok: false, code: 'CHANNEL.BAD_OUTPUT' } : { ok: true, value: data };
    } catch {
      return { ok: false, code: 'CHANNEL.BAD_OUTPUT' };
    }
  }
}
