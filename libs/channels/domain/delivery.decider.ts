import type { ChannelMessageEvent, Refusal, REPLY_KINDS } from '@antiphon/contracts/agent';
import type { ChannelMessage } from '@antiphon/contracts/agent';
import { assertNever, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';
import { evolveDelivery, initialDelivery } from './delivery-fold.js';
import type { Delivery } from './delivery-fold.js';

const schemaVersion = 1;

export type ReplyKind = (typeof REPLY_KINDS)[number];

interface Place {
  readonly messageId: string;
  readonly channel: string;
  readonly account: string;
}
interface Part {
  readonly messageId: string;
  readonly part: number;
  readonly attempt: number;
}
/** `now`: ISO 8601, UTC. */
interface Command<T extends string, Data> {
  readonly type: T;
  readonly data: Data;
  readonly now: string;
}

export type DeliveryCommand =
  | Command<'Receive', Place & { readonly message: ChannelMessage; readonly moduleDigest: string }>
  | Command<
      'Refuse',
      Place & {
        readonly peer: string;
        readonly sender: string;
        readonly deliveryId: string;
        readonly reason: Refusal;
      }
    >
  | Command<
      'FailToRead',
      Place & {
        readonly digest: string;
        readonly bytes: number;
        readonly code: string;
        readonly tries: number;
      }
    >
  | Command<
      'AskApproval',
      Place & {
        readonly message: ChannelMessage;
        readonly approvalId: string;
        readonly digest: string;
        readonly text: string;
      }
    >
  | Command<
      'StartTurn',
      {
        readonly messageId: string;
        readonly agentId: string;
        readonly sessionId: string;
        readonly turnId: string;
      }
    >
  | Command<
      'QueueReply',
      { readonly messageId: string; readonly kind: ReplyKind; readonly parts: readonly string[] }
    >
  | Command<'Attempt', { readonly messageId: string; readonly by: string }>
  | Command<
      'Delay',
      Part & { readonly code: string; readonly status: number | null; readonly retryAt: string }
    >
  | Command<'Succeed', Part & { readonly via: 'request' | 'response'; readonly platformId: string | null }>
  | Command<'Lose', Part & { readonly code: string }>
  | Command<
      'Fail',
      Part & { readonly code: string; readonly status: number | null; readonly detail: string | null }
    >
  | Command<'Replay', { readonly messageId: string; readonly by: string }>;

type CommandOf<T extends DeliveryCommand['type']> = Extract<DeliveryCommand, { readonly type: T }>;

/** The first fact of a delivery is its only one of this kind: a repeat adds nothing. */
const first = (delivery: Delivery, event: ChannelMessageEvent): ChannelMessageEvent[] =>
  delivery.state === 'new' ? [event] : [];

/** Returns true if the outcome is that of the attempt that is open. */
const isOpen = (delivery: Delivery, { part, attempt }: Part): boolean =>
  delivery.state === 'sending' && delivery.part === part && delivery.attempts === attempt;

/** Returns true for the outcome of the attempt whose loss is recorded already. */
const isLate = (delivery: Delivery, { part, attempt }: Part): boolean =>
  delivery.state === 'unknown' && delivery.part === part && delivery.attempts === attempt;

const attempt = ({ data, now: at }: CommandOf<'Attempt'>, delivery: Delivery): ChannelMessageEvent[] => {
  if (delivery.state !== 'queued')
    throw rejected('CHANNEL.NOT_QUEUED', 'no part of the reply waits to be sent');
  if (delivery.retryAt !== null && delivery.retryAt > at)
    throw rejected('CHANNEL.NOT_DUE', `the next attempt is due at ${delivery.retryAt}`);
  const { part, attempts } = delivery;
  return [
    { type: 'ChannelReplyAttempted', schemaVersion, data: { ...data, part, attempt: attempts + 1, at } },
  ];
};

const replay = ({ data, now: at }: CommandOf<'Replay'>, delivery: Delivery): ChannelMessageEvent[] => {
  if (delivery.state !== 'failed' && delivery.state !== 'unknown')
    throw rejected(
      'CHANNEL.NOT_DEAD',
      'only a reply that failed or whose outcome is unknown is sent again. What to do: see its state',
    );
  return [{ type: 'ChannelReplyReplayed', schemaVersion, data: { ...data, at } }];
};

/** Returns the fact that ends the open attempt; none for an attempt that is not open. */
const outcome = (
  command: CommandOf<'Delay' | 'Succeed' | 'Lose' | 'Fail'>,
  delivery: Delivery,
): ChannelMessageEvent[] => {
  const { now: at } = command;
  // The process that was taken for lost may have seen the answer after all.
  const fits =
    isOpen(delivery, command.data) || (command.type === 'Succeed' && isLate(delivery, command.data));
  if (!fits) return [];
  switch (command.type) {
    case 'Delay':
      return [{ type: 'ChannelReplyDelayed', schemaVersion, data: { ...command.data, at } }];
    case 'Succeed':
      return [{ type: 'ChannelReplySent', schemaVersion, data: { ...command.data, at } }];
    case 'Lose':
      return [{ type: 'ChannelReplyUnknown', schemaVersion, data: { ...command.data, at } }];
    case 'Fail':
      return [{ type: 'ChannelReplyFailed', schemaVersion, data: { ...command.data, at } }];
    default:
      return assertNever(command);
  }
};

const decide = (command: DeliveryCommand, delivery: Delivery): ChannelMessageEvent[] => {
  const { now: at } = command;
  switch (command.type) {
    case 'Receive':
      return first(delivery, {
        type: 'ChannelMessageReceived',
        schemaVersion,
        data: { ...command.data, at },
      });
    case 'Refuse':
      return first(delivery, { type: 'ChannelMessageRefused', schemaVersion, data: { ...command.data, at } });
    case 'FailToRead':
      return first(delivery, { type: 'ChannelDeliveryFailed', schemaVersion, data: { ...command.data, at } });
    case 'AskApproval':
      return first(delivery, { type: 'ChannelApprovalQueued', schemaVersion, data: { ...command.data, at } });
    case 'StartTurn':
      if (delivery.state !== 'received') return [];
      return [{ type: 'ChannelTurnStarted', schemaVersion, data: { ...command.data, at } }];
    case 'QueueReply': {
      if (delivery.state !== 'received' && delivery.state !== 'answering') return [];
      const parts = [...command.data.parts];
      return [{ type: 'ChannelReplyQueued', schemaVersion, data: { ...command.data, parts, at } }];
    }
    case 'Attempt':
      return attempt(command, delivery);
    case 'Replay':
      return replay(command, delivery);
    default:
      return outcome(command, delivery);
  }
};

/**
 * Decides the facts of a delivery. One attempt is open at a time, and its outcome is recorded once.
 * Throws `CHANNEL.NOT_QUEUED`, `CHANNEL.NOT_DUE` and `CHANNEL.NOT_DEAD`.
 */
export const deliveryDecider: Decider<Delivery, DeliveryCommand, ChannelMessageEvent> = {
  initialState: initialDelivery,
  decide,
  evolve: evolveDelivery,
};
