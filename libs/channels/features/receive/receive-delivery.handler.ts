import { createHash } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { receiveDelivery } from '@antiphon/contracts/agent';
import { channelMessageIdOf } from '@antiphon/agent-log';
import { CLOCK } from '@antiphon/service-host';
import type { Clock } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { DeliveryStreams } from '../delivery/delivery-streams.js';
import { ChannelPlugin } from '../delivery/channel-plugin.js';
import { ChannelDirectory } from '../settings/channel-directory.js';
import type { Channel } from '../settings/channel-directory.js';
import { parseIncoming } from './parse-incoming.js';
import type { ParsedDelivery, Respond } from './parse-incoming.js';
import { TakeMessage } from './take-message.js';
import { isGenuine, isSubscription } from './verify-delivery.js';

type Request = z.output<typeof receiveDelivery.request>;
type Reply = z.output<typeof receiveDelivery.reply>;

/** Tries of a plug-in that traps. */
const MAX_TRIES = 3;

/** The body of every refusal is the same, so that it tells nothing about channels. */
export const REFUSED_BODY = JSON.stringify({
  ...{ type: 'about:blank', title: 'delivery refused', code: 'CHANNEL.REFUSED' },
  detail: 'there is no such channel, or its signature, secret or time is not right',
});
const refused = (status: number): Reply => ({
  ...{ status, contentType: 'application/problem+json', body: REFUSED_BODY },
});
const textReply = (body: string): Reply => ({ status: 200, contentType: 'text/plain', body });
const toReply = ({ status, content_type: contentType, body }: Respond): Reply => ({
  ...{ status, contentType, body },
});

/** Handles `cmd.agent.channel.receive`: checks the origin, reads the messages and takes them. */
@Controller()
export class ReceiveDelivery {
  constructor(
    @Inject(ChannelDirectory) private readonly directory: ChannelDirectory,
    @Inject(ChannelPlugin) private readonly plugin: ChannelPlugin,
    @Inject(DeliveryStreams) private readonly streams: DeliveryStreams,
    @Inject(TakeMessage) private readonly messages: TakeMessage,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Throws `CHANNEL.UNAVAILABLE` and other transient errors: the platform sends again. */
  @HandleRequest(receiveDelivery)
  async handle(request: Request): Promise<Reply> {
    const config = this.directory.find(request.workspace, request.channel);
    if (config === null) return refused(404);
    const channel = await this.directory.open(config);
    if (request.method === 'GET') return this.subscribe(channel, request.query);
    const body = Buffer.from(request.body, 'base64');
    const secret = await this.directory.readSecret(config, 'secret');
    const keys = { secret, publicKey: config.publicKey ?? null };
    const isFromPlatform = isGenuine(
      channel.scheme,
      { headers: request.headers, body },
      keys,
      this.clock.now(),
    );
    if (!isFromPlatform || config.connection !== 'webhook') return refused(401);
    return this.take(channel, body, request);
  }

  /** Takes a delivery whose origin is known. */
  async take(
    channel: Channel,
    body: Uint8Array,
    { headers, query }: Pick<Request, 'headers' | 'query'>,
  ): Promise<Reply> {
    const settings = { content_type: headers['content-type'] ?? '', ...this.queryOf(query) };
    const parsed = await this.parse(channel, body, settings);
    if (!parsed.ok) return textReply('');
    const { messages, respond, moduleDigest } = parsed;
    let reply: Reply | null = null;
    for (const incoming of messages)
      reply = (await this.messages.take(channel, incoming, moduleDigest)) ?? reply;
    return reply ?? (respond === null ? textReply('') : toReply(respond));
  }

  private queryOf(query: Request['query']): Readonly<Record<string, string>> {
    return { query: new URLSearchParams(query).toString().slice(0, 4_000) };
  }

  private async subscribe(channel: Channel, query: Request['query']): Promise<Reply> {
    if (channel.scheme !== 'meta') return refused(404);
    const token = await this.directory.readSecret(channel.config, 'verify');
    if (!isSubscription(query, token)) return refused(401);
    return textReply((query['hub.challenge'] ?? '').slice(0, 200));
  }

  private async parse(
    channel: Channel,
    body: Uint8Array,
    settings: Readonly<Record<string, string>>,
  ): Promise<ParsedDelivery & { readonly moduleDigest: string }> {
    let code = 'CHANNEL.BAD_OUTPUT';
    let tries = 0;
    while (tries < MAX_TRIES) {
      tries++;
      // If the sandbox is not there or busy, this throws, and the platform sends again.
      const run = await this.plugin.parse(channel, body, settings);
      if (run.outcome === 'completed') {
        const parsed = parseIncoming(run.output);
        if (parsed.ok) return { ...parsed, moduleDigest: run.moduleDigest };
        break;
      }
      code = run.code;
    }
    await this.recordUnreadable(channel, body, code, tries);
    return { ok: false, moduleDigest: '' };
  }

  /** A delivery that no try could read is a dead letter. It must not block later ones. */
  private async recordUnreadable(
    { config: { workspace, name, account } }: Channel,
    body: Uint8Array,
    code: string,
    tries: number,
  ): Promise<void> {
    const digest = createHash('sha256').update(body).digest('hex');
    const messageId = channelMessageIdOf(workspace, name, `unreadable/${digest}`);
    const data = { messageId, channel: name, account, digest, bytes: body.length, code, tries };
    await this.streams.commit({ workspace, messageId }, (_, now) => ({ type: 'FailToRead', data, now }));
  }
}
