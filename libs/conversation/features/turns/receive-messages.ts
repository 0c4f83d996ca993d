import type { SessionState } from '@antiphon/conversation-domain';
import { isVersionConflict } from '@antiphon/event-store';
import type { StreamAppend } from '@antiphon/event-store';
import { failpoint, isoTime } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { eventMetadata } from '@antiphon/agent-log';
import { retryTransient } from '../sessions/retry-transient.js';
import type { InboxSignals, InboxState, InboxStore, StoredMessage } from '@antiphon/agents-features';
import type { StepContext } from './step-context.js';

/** Maximum number of messages that one step puts into a context. */
const MAX_MESSAGES = 100;
/** Maximum size of them, bytes of JSON. One message is taken in any case. */
const MAX_BYTES = 32 * 1024;
/** Maximum number of attempts: a new message or another session of the agent may come in between. */
const MAX_ROUNDS = 5;

export interface ReceiveMessagesDeps {
  readonly inboxes: InboxStore;
  readonly inboxSignals: InboxSignals;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
}

type Reader = Pick<SessionState, 'started' | 'fork'>;

/** Returns true if the next step of a session has to read its agent's inbox first. */
export const mustReadInbox = (
  { inboxSignals }: Pick<ReceiveMessagesDeps, 'inboxSignals'>,
  workspace: string,
  { started, fork }: Reader,
): boolean =>
  // A what-if repeats turns, and takes no message from the agent.
  started !== null && fork?.purpose !== 'whatif' && inboxSignals.mayHaveMessages(workspace, started.agentId);

const takeFitting = (messages: readonly StoredMessage[]): StoredMessage[] => {
  let bytes = 0;
  const taken: StoredMessage[] = [];
  for (const stored of messages.slice(0, MAX_MESSAGES)) {
    bytes += Buffer.byteLength(JSON.stringify(stored.message));
    if (taken.length > 0 && bytes > MAX_BYTES) break;
    taken.push(stored);
  }
  return taken;
};

const isInTurn = ({ actor }: StepContext, [first]: readonly StoredMessage[]): boolean =>
  actor
    .fold()
    .state.open?.received.some(({ messages }) =>
      messages.some(({ messageId }) => messageId === first?.message.messageId),
    ) ?? false;

/** Reads inboxes between the steps of turns. */
export class MessageReceiver {
  constructor(private readonly deps: ReceiveMessagesDeps) {}

  /**
   * Puts new messages of the agent into the open turn: `MessagesReceived` and `InboxRead` in one
   * append, so that each message is in one context, once. Returns true if there were any.
   */
  async receive(context: StepContext, turnId: string): Promise<boolean> {
    const { actor } = context;
    for (let round = 1; round <= MAX_ROUNDS; round++) {
      const { state } = actor.fold();
      const { started, open } = state;
      if (!started || !mustReadInbox(this.deps, actor.workspace, state)) return false;
      // One batch a step: the rest is for the next one.
      if (open?.received.some(({ afterSteps }) => afterSteps === open.steps.length)) return false;
      const received = await this.attempt(context, turnId, started.agentId);
      if (received !== 'conflict') return received === 'received';
    }
    return false;
  }

  /** Reads an inbox whose state this process does not know, before a turn begins. */
  async check(workspace: string, agentId: string): Promise<void> {
    const { inboxes, inboxSignals } = this.deps;
    if (!inboxSignals.mayHaveMessages(workspace, agentId)) return;
    const endCheck = inboxSignals.beginCheck(workspace, agentId);
    let isEmpty = false;
    try {
      const state = await inboxes.readState(workspace, agentId);
      isEmpty = (await inboxes.readUnread(workspace, agentId, state, 1)).length === 0;
    } finally {
      endCheck(isEmpty);
    }
  }

  private async attempt(
    context: StepContext,
    turnId: string,
    agentId: string,
  ): Promise<'received' | 'nothing' | 'conflict'> {
    const { inboxes, inboxSignals, logger } = this.deps;
    const { workspace, sessionId } = context.actor;
    const endCheck = inboxSignals.beginCheck(workspace, agentId);
    let isEmpty = false;
    try {
      const read = async () => {
        const state = await inboxes.readState(workspace, agentId);
        return { state, unread: await inboxes.readUnread(workspace, agentId, state, MAX_MESSAGES + 1) };
      };
      const { state, unread } = await retryTransient(read, context.signal, logger);
      const messages = takeFitting(unread);
      if (messages.length > 0) await failpoint('agent.inbox.read');
      if (messages.length > 0) await this.record(context, turnId, { agentId, sessionId, state, messages });
      // A cancel of the turn may have come first.
      const isReceived = messages.length === 0 || isInTurn(context, messages);
      isEmpty = isReceived && messages.length === unread.length;
      return messages.length > 0 && isReceived ? 'received' : 'nothing';
    } catch (error) {
      if (isVersionConflict(error)) return 'conflict';
      throw error;
    } finally {
      endCheck(isEmpty);
    }
  }

  private record(
    context: StepContext,
    turnId: string,
    { agentId, sessionId, state, messages }: ReadMessages,
  ): Promise<void> {
    const upTo = messages.at(-1)?.position ?? state.upTo;
    const data: JsonObject = { agentId, sessionId, turnId, upTo, count: messages.length };
    const metadata = eventMetadata();
    const read = { eventId: this.deps.ids.next(), type: 'InboxRead', schemaVersion: 1, data, metadata };
    const also: StreamAppend[] = [
      { streamId: state.streamId, expectedVersion: state.version, events: [read] },
    ];
    const received = { turnId, upTo, messages: messages.map(({ message }) => message) };
    const now = isoTime(this.deps.clock);
    return context.record({ type: 'ReceiveMessages', data: received, now }, { also, ignoresInbox: true });
  }
}

interface ReadMessages {
  readonly agentId: string;
  readonly sessionId: string;
  readonly state: InboxState;
  readonly messages: readonly StoredMessage[];
}
