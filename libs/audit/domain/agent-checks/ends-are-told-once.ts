import type { AgentMessageEvent, SessionEvent } from '@antiphon/contracts/agent';
import {
  type CheckRun,
  type EventPlace,
  type Finding,
  open,
  type Parsed,
  violation,
} from '../audit-check.js';
import type { AgentFact, AgentsCheck } from '../audit-check.js';

type Sent = Extract<AgentMessageEvent, { type: 'AgentMessageSent' }>['data'];
type Read = Extract<AgentMessageEvent, { type: 'InboxRead' }>['data'];
type Received = Extract<SessionEvent, { type: 'MessagesReceived' }>['data'];

/** An end of a child or of a delegated task, which one agent has to get. */
interface End {
  readonly to: string;
  /** Place of the end; null until it happened. */
  at: EventPlace | null;
  isTold: boolean;
}

/** One half of a read: the cursor, or the messages. Both are in one append. */
interface HalfRead {
  readonly at: EventPlace;
  readonly read: Read | null;
  readonly received: Received | null;
}

interface SavedEnds {
  readonly ends: readonly (readonly [name: string, end: End])[];
  readonly terminated: readonly string[];
  readonly unread: readonly (readonly [name: string, position: number])[];
  readonly sessions: readonly (readonly [name: string, agentId: string])[];
  readonly halves: readonly (readonly [name: string, half: HalfRead])[];
}

/** Name of a message of a recipient. No part contains a blank. */
const messageName = (at: EventPlace, agentId: string, messageId: string): string =>
  `${at.workspace} ${agentId} ${messageId}`;

class EndsRun implements CheckRun<Parsed<AgentFact>> {
  private readonly ends: Map<string, End>;
  private readonly terminated: Set<string>;
  /** Direct messages that are in no context yet, with their positions. */
  private readonly unread: Map<string, number>;
  private readonly sessions: Map<string, string>;
  private readonly halves: Map<string, HalfRead>;
  private checked = 0;

  constructor(past: SavedEnds | undefined) {
    const saved = structuredClone(past);
    this.ends = new Map(saved?.ends);
    this.terminated = new Set(saved?.terminated);
    this.unread = new Map(saved?.unread);
    this.sessions = new Map(saved?.sessions);
    this.halves = new Map(saved?.halves);
  }

  see({ place: at, content }: Parsed<AgentFact>): Finding[] {
    switch (content.type) {
      case 'AgentSpawned':
        return this.expect(at, 'child', content.data.agentId, content.data.parentId);
      case 'TaskQueued':
        return this.expect(at, 'task', content.data.taskId, content.data.parentAgentId);
      case 'AgentTerminated':
        this.terminated.add(`${at.workspace} ${content.data.agentId}`);
        return this.finish(at, 'child', content.data.agentId);
      case 'TaskEnded':
        return this.finish(at, 'task', content.data.taskId);
      case 'AgentMessageSent':
        return this.send(content.data, at);
      case 'SessionStarted':
        this.sessions.set(`${at.workspace} ${at.streamId}`, content.data.agentId);
        return [];
      case 'InboxRead':
        return this.join(`${at.workspace} ${content.data.turnId} ${content.data.upTo}`, {
          ...{ at, read: content.data, received: null },
        });
      case 'MessagesReceived':
        return this.join(`${at.workspace} ${content.data.turnId} ${content.data.upTo}`, {
          ...{ at, read: null, received: content.data },
        });
      default:
        return [];
    }
  }

  end(): Finding[] {
    const halves = [...this.halves.values()].map(({ at, read }) =>
      violation(
        at,
        read
          ? 'an inbox was read, and no context has its messages'
          : 'messages in a context were not read from an inbox',
      ),
    );
    const untold = [...this.ends].flatMap(([name, { at, isTold, to }]) =>
      // A parent that has ended needs no message.
      at && !isTold && !this.terminated.has(`${at.workspace} ${to}`)
        ? [open(at, `agent ${to} did not get the end of ${name.split(' ').slice(1).join(' ')}`)]
        : [],
    );
    return [...halves, ...untold];
  }

  count(): number {
    return this.checked;
  }

  save(): SavedEnds {
    const { ends, terminated, unread, sessions, halves } = this;
    return {
      ends: [...ends],
      terminated: [...terminated],
      unread: [...unread],
      sessions: [...sessions],
      halves: [...halves],
    };
  }

  private expect(at: EventPlace, kind: string, id: string, to: string | null): Finding[] {
    if (to !== null) this.ends.set(`${at.workspace} ${kind} ${id}`, { to, at: null, isTold: false });
    return [];
  }

  private finish(at: EventPlace, kind: string, id: string): Finding[] {
    const end = this.ends.get(`${at.workspace} ${kind} ${id}`);
    if (end) end.at = at;
    return [];
  }

  private send(message: Sent, at: EventPlace): Finding[] {
    this.checked++;
    const { messageId, from, to, type, content } = message;
    if (to.kind === 'agent' && from !== `agent/${to.agentId}`)
      this.unread.set(messageName(at, to.agentId, messageId), at.position);
    const recipient = to.kind === 'agent' ? to.agentId : null;
    // A person or an agent may send a message of these types too; ends come from the runtime.
    if (type === 'ChildEnded' && from === `agent/${String(content['agentId'])}`)
      return this.tell(at, 'child', String(content['agentId']), recipient);
    if (type === 'TaskEnded' && from === `task/${String(content['taskId'])}`)
      return this.tell(at, 'task', String(content['taskId']), recipient);
    return [];
  }

  private tell(at: EventPlace, kind: string, id: string, to: string | null): Finding[] {
    const end = this.ends.get(`${at.workspace} ${kind} ${id}`);
    if (!end) return [violation(at, `the end of ${kind} ${id} was sent, which has no parent`)];
    if (end.to !== to) return [violation(at, `the end of ${kind} ${id} was sent to ${to}, not to ${end.to}`)];
    if (end.isTold) return [violation(at, `the end of ${kind} ${id} was sent twice`)];
    end.isTold = true;
    return [];
  }

  private join(key: string, half: HalfRead): Finding[] {
    const other = this.halves.get(key);
    const read = half.read ?? other?.read ?? null;
    const received = half.received ?? other?.received ?? null;
    if (!read || !received) {
      this.halves.set(key, half);
      return [];
    }
    this.halves.delete(key);
    const at = half.received ? half.at : (other?.at ?? half.at);
    return this.checkRead(read, received, at);
  }

  private checkRead(read: Read, { messages }: Received, at: EventPlace): Finding[] {
    const findings: Finding[] = [];
    const { agentId, sessionId, count, upTo } = read;
    if (at.streamId !== `session-${sessionId}`)
      findings.push(violation(at, `the inbox of ${agentId} was read for session ${sessionId}`));
    const owner = this.sessions.get(`${at.workspace} ${at.streamId}`);
    if (owner !== undefined && owner !== agentId)
      findings.push(violation(at, `the session of ${owner} has messages of ${agentId}`));
    if (count !== messages.length)
      findings.push(violation(at, `${count} messages were read, ${messages.length} are in the context`));
    for (const { to, messageId, from } of messages) {
      if (to.kind !== 'agent') continue;
      const isUnread = this.unread.delete(messageName(at, agentId, messageId));
      if (to.agentId !== agentId)
        findings.push(violation(at, `message ${messageId} to ${to.agentId} is in a context of ${agentId}`));
      else if (!isUnread && from !== `agent/${agentId}`)
        findings.push(violation(at, `message ${messageId} was not sent, or is in a context already`));
    }
    return [...findings, ...this.findSkipped(agentId, upTo, at)];
  }

  /** Finds direct messages before the cursor that are in no context. */
  private findSkipped(agentId: string, upTo: number, at: EventPlace): Finding[] {
    const prefix = messageName(at, agentId, '');
    const skipped = [...this.unread].filter(
      ([name, position]) => name.startsWith(prefix) && position <= upTo,
    );
    for (const [name] of skipped) this.unread.delete(name);
    return skipped.map(([name]) => violation(at, `message ${name.slice(prefix.length)} was skipped`));
  }
}

/**
 * Checks across event streams that ends reach their parents once, and each direct message is in one
 * context. Keeps children, delegated tasks and unread messages.
 */
export const messagesArriveOnce: AgentsCheck = {
  name: 'messages-arrive-once',
  about:
    'the end of every child and of every delegated task is sent once, to its parent alone, and every read of an inbox puts its messages into one context',
  counts: 'sent messages',
  start: (past) => new EndsRun(past as SavedEnds | undefined),
};
