import type { ChannelMessage, Refusal, receiveDelivery } from '@antiphon/contracts/agent';
import { readPress } from '@antiphon/channels-domain';
import type { Delivery, DeliveryCommand } from '@antiphon/channels-domain';
import { channelMessageIdOf } from '@antiphon/agent-log';
import type { Logger } from '@antiphon/observability';
import type { z } from 'zod';
import { contentOf, queueReply } from '../delivery/begin-turn.js';
import type { BeginTurn } from '../delivery/begin-turn.js';
import type { ChannelPlugin } from '../delivery/channel-plugin.js';
import { textOfOutcome } from '../delivery/channel-work.js';
import type { ChannelWork } from '../delivery/channel-work.js';
import type { DeliveryRef, DeliveryStreams } from '../delivery/delivery-streams.js';
import type { DeliveryTimers } from '../delivery/delivery-timers.js';
import type { PeerDirectory } from '../peers/peer-directory.js';
import type { Channel, ChannelDirectory } from '../settings/channel-directory.js';
import type { IncomingMessage } from './parse-incoming.js';
import type { PeerRates } from './peer-rates.js';

type Reply = z.output<typeof receiveDelivery.reply>;

/** Text that a pairing code is replaced with in the log. */
const CODE_TEXT = '(pairing code)';

export interface TakeMessageDeps {
  readonly streams: DeliveryStreams;
  readonly peers: PeerDirectory;
  readonly directory: ChannelDirectory;
  readonly rates: PeerRates;
  readonly beginTurn: BeginTurn;
  readonly work: ChannelWork;
  readonly plugin: ChannelPlugin;
  readonly timers: DeliveryTimers;
  readonly logger: Logger;
  /** Name of this process. */
  readonly owner: string;
}

type Admission = Refusal | 'paired' | null;

/** Takes one message of a delivery: once, however often it is delivered. */
export class TakeMessage {
  constructor(private readonly deps: TakeMessageDeps) {}

  /** Returns the reply if it is the response to the delivery; null for any other. */
  async take(
    channel: Channel,
    { message, replySecret }: IncomingMessage,
    moduleDigest: string,
  ): Promise<Reply | null> {
    const { workspace, name } = channel.config;
    const ref = { workspace, messageId: channelMessageIdOf(workspace, name, message.deliveryId) };
    const { state, version } = await this.deps.streams.read(ref);
    if (version > 0) return this.repeat(ref, channel, state);
    const admission = await this.admit(channel, message);
    const isTaken = admission === null || admission === 'paired';
    if (isTaken && replySecret !== null)
      await this.deps.directory.keepReplySecret(channel.config, ref.messageId, replySecret);
    const committed = await this.deps.streams.commit(ref, (_, now) =>
      this.first(ref, channel, message, { moduleDigest, admission, now }),
    );
    if (!committed.isAppended || committed.state.state === 'refused') return null;
    return this.answer(ref, channel, committed.state);
  }

  /** Returns why a message is refused, or that it has paired its sender; null if it is taken. */
  private async admit({ config }: Channel, message: ChannelMessage): Promise<Admission> {
    const { peer, sender, text } = message;
    const key = `${config.workspace}\n${config.name}\n${sender.id}`;
    if (sender.isBot) return 'bot';
    if (!this.deps.rates.count(key, config.messagesPerMinute)) return 'rate_limited';
    const access = await this.deps.peers.accessOf(config, peer, sender.id);
    if (access === 'blocked') return 'blocked';
    if (access === 'unpaired') {
      const isPaired = await this.deps.peers.useCode(config, sender.id, text);
      return isPaired ? 'paired' : 'unpaired';
    }
    if (readPress(message.button) !== null) return null;
    return contentOf(message).trim() === '' ? 'empty' : null;
  }

  private first(
    { messageId }: DeliveryRef,
    channel: Channel,
    message: ChannelMessage,
    { moduleDigest, admission, now }: { moduleDigest: string; admission: Admission; now: string },
  ): DeliveryCommand[] {
    const { name, account } = channel.config;
    const place = { messageId, channel: name, account };
    if (admission !== null && admission !== 'paired') {
      const { peer, sender, deliveryId } = message;
      return [
        { type: 'Refuse', data: { ...place, peer, sender: sender.id, deliveryId, reason: admission }, now },
      ];
    }
    if (admission === null) return [{ type: 'Receive', data: { ...place, message, moduleDigest }, now }];
    const withoutCode = { ...message, text: CODE_TEXT };
    const reply = queueReply(messageId, channel, 'paired', 'You are paired. Send a message to begin.');
    return [
      { type: 'Receive', data: { ...place, message: withoutCode, moduleDigest }, now },
      { type: 'QueueReply', data: reply, now },
    ];
  }

  /** A repeated delivery adds no fact. Work that an ended process left behind is started again. */
  private async repeat(ref: DeliveryRef, channel: Channel, state: Delivery): Promise<Reply | null> {
    if (channel.isSynchronous && state.state === 'sent') return this.respond(ref, channel, state);
    if (!['received', 'answering', 'queued', 'sending'].includes(state.state)) return null;
    // A synchronous reply is the response of the first delivery, which waits for it.
    if (!channel.isSynchronous) this.deps.timers.start(ref);
    return null;
  }

  private async answer(ref: DeliveryRef, channel: Channel, delivery: Delivery): Promise<Reply | null> {
    const { beginTurn, timers, logger } = this.deps;
    let begun = delivery;
    try {
      begun = await beginTurn.begin(ref, channel, delivery);
      if (channel.isSynchronous) return await this.answerNow(ref, channel, begun);
    } catch (error) {
      // The message is in the log: its workflow does the rest.
      logger.warn({ err: error, messageId: ref.messageId }, 'channel message waits');
    }
    timers.start(ref);
    return null;
  }

  /** Waits for the answer within the time of the platform, and records it as sent. */
  private async answerNow(ref: DeliveryRef, channel: Channel, begun: Delivery): Promise<Reply | null> {
    const { work, streams, owner, timers } = this.deps;
    const { messageId } = ref;
    const signal = AbortSignal.timeout(channel.plugin.description.reply_within_ms);
    const outcome = await work.waitForOutcome(ref, begun, signal).catch((error: unknown) => {
      if (signal.aborted) return 'late' as const;
      throw error;
    });
    if (outcome === 'late') {
      timers.start(ref);
      return null;
    }
    const queue = outcome === null ? null : queueReply(messageId, channel, 'answer', textOfOutcome(outcome));
    const { state, isAppended } = await streams.commit(ref, (now, at) => {
      const queued: DeliveryCommand[] = queue === null ? [] : [{ type: 'QueueReply', data: queue, now: at }];
      const isWaiting = now.state === 'answering' || now.state === 'queued';
      if (!isWaiting) return null;
      if (queue?.parts.length === 0) return queued;
      return [
        ...queued,
        { type: 'Attempt', data: { messageId, by: owner }, now: at },
        {
          type: 'Succeed',
          data: { messageId, part: 0, attempt: 1, via: 'response', platformId: null },
          now: at,
        },
      ];
    });
    return isAppended ? this.respond(ref, channel, state) : null;
  }

  private async respond(
    { messageId }: DeliveryRef,
    channel: Channel,
    state: Delivery,
  ): Promise<Reply | null> {
    const { message, account, parts } = state;
    const [text] = parts;
    if (message === null || text === undefined) return null;
    const outgoing = { messageId, message, account, text, approvalId: null, part: 0, parts: 1 };
    const formatted = await this.deps.plugin.formatResponse(channel, outgoing);
    if (!formatted.ok) return null;
    const { content_type: contentType, body } = formatted.value;
    return { status: 200, contentType, body };
  }
}
