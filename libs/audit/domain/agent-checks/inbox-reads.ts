import type { AgentMessageEvent, SessionEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, type Parsed, violation } from '../audit-check.js';
import type { InboxCheck, SessionCheck } from '../audit-check.js';

class InboxRun implements CheckRun<Parsed<AgentMessageEvent>> {
  private agentId: string | null = null;
  private upTo = 0;
  private readonly messages = new Set<string>();
  private sent = 0;

  see({ place: at, content }: Parsed<AgentMessageEvent>): Finding[] {
    if (content.type === 'InboxRead')
      return [...this.checkOwner(content.data.agentId, at), ...this.read(content.data.upTo, at)];
    if (content.type === 'AgentMessageSent') return this.send(content.data, at);
    return this.checkOwner(content.data.agentId, at);
  }

  end(): Finding[] {
    return [];
  }

  count(): number {
    return this.sent;
  }

  private send(
    { messageId, to }: Extract<AgentMessageEvent, { type: 'AgentMessageSent' }>['data'],
    at: EventPlace,
  ): Finding[] {
    this.sent++;
    const isInbox = at.streamId.startsWith('agent-inbox-');
    if (isInbox !== (to.kind === 'agent'))
      return [violation(at, `message ${messageId} to ${to.kind} is in the wrong stream`)];
    const findings = to.kind === 'agent' ? this.checkOwner(to.agentId, at) : [];
    if (this.messages.has(messageId)) findings.push(violation(at, `message ${messageId} was sent twice`));
    this.messages.add(messageId);
    return findings;
  }

  private read(upTo: number, at: EventPlace): Finding[] {
    const before = this.upTo;
    this.upTo = Math.max(before, upTo);
    if (upTo >= at.position) return [violation(at, `the inbox was read up to ${upTo}, which is later`)];
    return upTo > before ? [] : [violation(at, `the inbox was read up to ${upTo} after ${before}`)];
  }

  private checkOwner(agentId: string, at: EventPlace): Finding[] {
    this.agentId ??= agentId;
    return this.agentId === agentId
      ? []
      : [violation(at, `the inbox of agent ${this.agentId} names agent ${agentId}`)];
  }
}

/** Checks each `agent-inbox-` and `agent-topic-` stream. */
export const inboxesAreReadForward: InboxCheck = {
  name: 'inboxes-are-read-forward',
  about:
    'every message is in the inbox of its recipient or in the stream of its topic, once, and cursors only grow',
  counts: 'messages',
  start: () => new InboxRun(),
};

/** Checks that no message is in a session's context twice. */
export const messagesAreReceivedOnce: SessionCheck = {
  name: 'messages-are-received-once',
  about: 'no message between agents is in the context of a session twice',
  counts: 'received messages',
  start: () => {
    const seen = new Set<string>();
    return {
      see: ({ place, content }: Parsed<SessionEvent>): Finding[] => {
        if (content.type !== 'MessagesReceived') return [];
        return content.data.messages.flatMap(({ messageId }) => {
          const isAgain = seen.has(messageId);
          seen.add(messageId);
          return isAgain ? [violation(place, `message ${messageId} is in the context twice`)] : [];
        });
      },
      end: () => [],
      count: () => seen.size,
    };
  },
};
