import type { ChannelMessage, ChannelMessageEvent, DeliveryState } from '@antiphon/contracts/agent';

/** An attempt to send a part whose outcome is not recorded yet. */
export interface OpenAttempt {
  readonly by: string;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** One delivery of a platform, and the reply to it. */
export interface Delivery {
  readonly state: DeliveryState | 'new';
  readonly channel: string;
  readonly account: string;
  /** Null for a refused or unreadable delivery. */
  readonly message: ChannelMessage | null;
  readonly peer: string | null;
  readonly turn: { readonly agentId: string; readonly sessionId: string; readonly turnId: string } | null;
  readonly parts: readonly string[];
  /** Part that is sent next. */
  readonly part: number;
  /** Attempts of the part. */
  readonly attempts: number;
  readonly open: OpenAttempt | null;
  /** Earliest time of the next attempt; null for now. */
  readonly retryAt: string | null;
  /** Approval that the message asks about; null for a reply. */
  readonly approval: { readonly approvalId: string; readonly digest: string } | null;
  /** Code of the last failure or refusal. */
  readonly code: string | null;
  readonly receivedAt: string;
  readonly changedAt: string;
}

export const initialDelivery = (): Delivery => ({
  ...{ state: 'new', channel: '', account: '', message: null, peer: null, turn: null },
  ...{ parts: [], part: 0, attempts: 0, open: null, retryAt: null, code: null },
  ...{ approval: null, receivedAt: '', changedAt: '' },
});

const FINAL: ReadonlySet<Delivery['state']> = new Set(['sent', 'unknown', 'failed', 'refused', 'unreadable']);

/** Returns true if nothing more happens by itself. */
export const isFinal = ({ state }: Delivery): boolean => FINAL.has(state);

const begin = (data: { channel: string; account: string; at: string }): Delivery => ({
  ...initialDelivery(),
  ...{ channel: data.channel, account: data.account, receivedAt: data.at },
});

const sent = (delivery: Delivery): Partial<Delivery> => {
  const part = delivery.part + 1;
  const state = part >= delivery.parts.length ? 'sent' : 'queued';
  return { state, part, attempts: 0, open: null, retryAt: null, code: null };
};

const apply = (delivery: Delivery, { type, data }: ChannelMessageEvent): Partial<Delivery> => {
  switch (type) {
    case 'ChannelMessageReceived':
      return { ...begin(data), state: 'received', message: data.message, peer: data.message.peer };
    case 'ChannelMessageRefused':
      return { ...begin(data), state: 'refused', peer: data.peer, code: data.reason };
    case 'ChannelDeliveryFailed':
      return { ...begin(data), state: 'unreadable', code: data.code };
    case 'ChannelApprovalQueued': {
      const { message, text, approvalId, digest } = data;
      const asked = { approval: { approvalId, digest }, parts: [text] };
      return { ...begin(data), ...asked, state: 'queued', message, peer: message.peer };
    }
    case 'ChannelTurnStarted': {
      const { agentId, sessionId, turnId } = data;
      return { state: 'answering', turn: { agentId, sessionId, turnId } };
    }
    case 'ChannelReplyQueued':
      return { state: data.parts.length === 0 ? 'sent' : 'queued', parts: data.parts };
    case 'ChannelReplyAttempted':
      return { state: 'sending', attempts: data.attempt, open: { by: data.by, at: data.at } };
    case 'ChannelReplyDelayed':
      return { state: 'queued', open: null, retryAt: data.retryAt, code: data.code };
    case 'ChannelReplySent':
      return sent(delivery);
    case 'ChannelReplyUnknown':
      return { state: 'unknown', open: null, code: data.code };
    case 'ChannelReplyFailed':
      return { state: 'failed', open: null, code: data.code };
    case 'ChannelReplyReplayed':
      return { state: 'queued', attempts: 0, open: null, retryAt: null };
    default:
      return {};
  }
};

/** Applies a fact of a delivery. */
export const evolveDelivery = (delivery: Delivery, event: ChannelMessageEvent): Delivery => ({
  ...delivery,
  ...apply(delivery, event),
  changedAt: event.data.at,
});
