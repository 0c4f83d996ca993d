import { createHash } from 'node:crypto';
import type { ChannelMessage } from '@antiphon/contracts/agent';
import { MAX_REPLY_PARTS } from '@antiphon/contracts/agent';
import { readPress, splitText } from '@antiphon/channels-domain';
import type { Delivery, DeliveryCommand, ReplyKind } from '@antiphon/channels-domain';
import type { StartSession, TurnCommands } from '@antiphon/conversation-features';
import { isAppError } from '@antiphon/kernel';
import type { ApprovalButtons } from './approval-buttons.js';
import type { Channel, ChannelDirectory } from '../settings/channel-directory.js';
import type { DeliveryRef, DeliveryStreams } from './delivery-streams.js';

/** Text that starts a new session instead of a turn. */
const NEW_SESSION = '/new';
const PERMANENT: ReadonlySet<string> = new Set(['invalid', 'forbidden', 'not_found', 'rejected']);
const MAX_PEER = 200;

/** Returns a text in place of a file, for the model. */
const describeFile = ({ kind, name, mediaType }: ChannelMessage['attachments'][number]): string =>
  `[attachment: ${[kind, name, mediaType].filter((one) => one !== undefined).join(', ')}]`;

/** Returns the content of the turn of a message. */
export const contentOf = ({ text, attachments }: ChannelMessage): string =>
  [text, ...attachments.map(describeFile)].filter((line) => line !== '').join('\n');

/** A thread is a conversation of its own. */
const peerOf = ({ peer, thread }: ChannelMessage): string => {
  const whole = thread === undefined ? peer : `${peer}/${thread}`;
  if (whole.length <= MAX_PEER) return whole;
  return createHash('sha256').update(whole).digest('hex');
};

/** Returns the command that queues a text in parts that the platform takes. */
export const queueReply = (
  messageId: string,
  { plugin, isSynchronous }: Channel,
  kind: ReplyKind,
  text: string,
): Extract<DeliveryCommand, { type: 'QueueReply' }>['data'] => {
  // A response is one message.
  const parts = splitText(text, plugin.description.max_text, isSynchronous ? 1 : MAX_REPLY_PARTS);
  return { messageId, kind, parts };
};

export interface BeginTurnDeps {
  readonly streams: DeliveryStreams;
  readonly directory: ChannelDirectory;
  readonly turns: TurnCommands;
  readonly sessions: Pick<StartSession, 'handle'>;
  readonly approvals: Pick<ApprovalButtons, 'decide'>;
}

/** Leads a received message to its turn. Safe to repeat: the message is the idempotency key. */
export class BeginTurn {
  constructor(private readonly deps: BeginTurnDeps) {}

  /** Begins the turn of a received message, and returns the delivery after it. */
  async begin(ref: DeliveryRef, channel: Channel, delivery: Delivery): Promise<Delivery> {
    const { message } = delivery;
    if (delivery.state !== 'received' || message === null) return delivery;
    try {
      return await this.submit(ref, channel, message);
    } catch (error) {
      if (!isAppError(error) || !PERMANENT.has(error.kind)) throw error;
      return this.queue(ref, channel, 'refused', `The message was not accepted (${error.code}).`);
    }
  }

  /** Queues a text as the reply, unless there is one. */
  async queue(ref: DeliveryRef, channel: Channel, kind: ReplyKind, text: string): Promise<Delivery> {
    const data = queueReply(ref.messageId, channel, kind, text);
    const { state } = await this.deps.streams.commit(ref, (_, now) => ({ type: 'QueueReply', data, now }));
    return state;
  }

  private async submit(ref: DeliveryRef, channel: Channel, message: ChannelMessage): Promise<Delivery> {
    const press = readPress(message.button);
    if (press !== null)
      return this.queue(ref, channel, 'decision', await this.deps.approvals.decide(channel, press, message));
    const { workspace, messageId } = ref;
    const { name, account } = channel.config;
    const { peer, guild, team } = message;
    const agentId = this.deps.directory.route(workspace, { channel: name, account, peer, guild, team });
    const target = { address: { agentId, channel: name, account, peer: peerOf(message) } };
    const common = { workspace, target, caller: `channel/${name}`, idempotencyKey: messageId };
    if (message.text.trim() === NEW_SESSION) {
      await this.deps.sessions.handle(common);
      return this.queue(ref, channel, 'new_session', 'A new session has begun.');
    }
    const turn = await this.deps.turns.submitTurn({ ...common, content: contentOf(message) });
    const data = { messageId, agentId: turn.agentId, sessionId: turn.sessionId, turnId: turn.turnId };
    const { state } = await this.deps.streams.commit(ref, (_, now) => ({ type: 'StartTurn', data, now }));
    return state;
  }
}
