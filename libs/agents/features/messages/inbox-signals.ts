import { agentInboxStream } from '@antiphon/contracts/agent';
import type { AppendRequest, AppendResult, EventStore, LogMarks } from '@antiphon/event-store';
import { createBoundedMap, repeatEvery } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { agentUuidOf } from '@antiphon/agent-log';
import type { InboxStore } from './inbox-store.js';

/** Subject that tells agent processes of new messages. */
const INBOX_SUBJECT = 'hint.agent.inbox';
/** Interval of polls for messages whose notification was lost, ms. */
const POLL_MS = 500;
const POLL_PAGE = 1_000;
/** Maximum age of what a poll learns about the log, ms. */
const MARK_AGE_MS = 250;
/** Maximum number of agents whose inbox is known to have nothing new. */
const MAX_AGENTS = 10_000;

interface Check {
  readonly workspace: string;
  readonly streamId: string;
  isStale: boolean;
}

interface NewMessage {
  readonly workspace: string;
  readonly streamId: string;
}

export interface InboxSignalsDeps {
  readonly nats: NatsLink;
  readonly logger: Logger;
  readonly inboxes: Pick<InboxStore, 'readAfter' | 'headPosition'>;
  /** Marks of the category of messages. Absent: each poll reads the messages. */
  readonly marks?: LogMarks;
}

const isInbox = (streamId: string): boolean => streamId.startsWith('agent-inbox-');
const isTopic = (streamId: string): boolean => streamId.startsWith('agent-topic-');

/**
 * Knows in this process which inboxes have nothing new, so that a plain turn costs no statement.
 * Fed by the appends of this process, by notifications of other processes, and by a poll.
 */
export class InboxSignals {
  /** Version of a workspace's topics, by the stream of an inbox that was read up to it. */
  private readonly empty = createBoundedMap<number>(MAX_AGENTS);
  private readonly topicMessages = new Map<string, number>();
  private readonly checks = new Set<Check>();
  private position: number | null = null;
  /** Mark of the log at the last poll that read the messages. */
  private lastMark: number | null = null;
  private readonly polled = Promise.withResolvers<void>();

  constructor(private readonly deps: InboxSignalsDeps) {}

  /** Resolves after the first poll, which makes all earlier checks void, also if it failed. */
  get firstPoll(): Promise<void> {
    return this.polled.promise;
  }

  /** Returns false if the agent certainly has no message that it has not read. */
  mayHaveMessages(workspace: string, agentId: string): boolean {
    const streamId = agentInboxStream(agentUuidOf(workspace, agentId));
    return this.empty.get(keyOf({ workspace, streamId })) !== this.topicsOf(workspace);
  }

  /**
   * Begins to read an inbox. The returned function records that all of it was read; it has no
   * effect if a message came in between.
   */
  beginCheck(workspace: string, agentId: string): (isEmpty: boolean) => void {
    const check = { workspace, streamId: agentInboxStream(agentUuidOf(workspace, agentId)), isStale: false };
    this.checks.add(check);
    return (isEmpty) => {
      this.checks.delete(check);
      if (isEmpty && !check.isStale) this.empty.put(keyOf(check), this.topicsOf(workspace));
    };
  }

  /** Notifies this process and the others of a message. */
  announce(message: NewMessage): void {
    this.mark(message);
    const { nats } = this.deps;
    if (nats.isConnected()) nats.connection.publish(INBOX_SUBJECT, JSON.stringify(message));
  }

  /** Follows the messages that other processes store, until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const subscription = this.deps.nats.connection.subscribe(INBOX_SUBJECT, {
      callback: (error, message) => {
        if (!error) this.mark(message.json());
      },
    });
    let isFailing = false;
    const poll = async (): Promise<void> => {
      try {
        await this.poll();
        isFailing = false;
      } catch (error) {
        // Once an outage, not twice a second.
        if (!isFailing) this.deps.logger.warn({ err: error }, 'inbox poll failed');
        isFailing = true;
      }
      this.polled.resolve();
    };
    await repeatEvery(poll, POLL_MS, signal);
    this.polled.resolve();
    subscription.unsubscribe();
    await this.deps.marks?.close();
  }

  private mark({ workspace, streamId }: NewMessage): void {
    const isForAll = isTopic(streamId);
    if (isForAll) this.topicMessages.set(workspace, this.topicsOf(workspace) + 1);
    else this.empty.delete(keyOf({ workspace, streamId }));
    for (const check of this.checks)
      if (check.workspace === workspace && (isForAll || check.streamId === streamId)) check.isStale = true;
  }

  private topicsOf(workspace: string): number {
    return this.topicMessages.get(workspace) ?? 0;
  }

  private async poll(): Promise<void> {
    const { inboxes, marks } = this.deps;
    const mark = (await marks?.readMark(MARK_AGE_MS)) ?? null;
    if (mark !== null && mark === this.lastMark) return;
    if (this.position === null) {
      this.position = await inboxes.headPosition();
      // Messages of the time before the first poll may have had no notification.
      this.empty.clear();
      for (const check of this.checks) check.isStale = true;
    }
    for (let isFull = true; isFull;) {
      const messages = await inboxes.readAfter(this.position, POLL_PAGE);
      for (const message of messages) this.mark(message);
      this.position = messages.at(-1)?.position ?? this.position;
      isFull = messages.length === POLL_PAGE;
    }
    this.lastMark = mark;
  }
}

const keyOf = ({ workspace, streamId }: NewMessage): string => `${workspace} ${streamId}`;

/** Returns the store with one addition: it announces each message that it appends. */
export const announceMessages = (store: EventStore, signals: InboxSignals): EventStore => {
  const append = async (request: AppendRequest): Promise<AppendResult> => {
    const result = await store.append(request);
    for (const { streamId, events } of request.streams)
      if ((isInbox(streamId) || isTopic(streamId)) && events.some(({ type }) => type === 'AgentMessageSent'))
        signals.announce({ workspace: request.workspace, streamId });
    return result;
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'append') return append;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
};
