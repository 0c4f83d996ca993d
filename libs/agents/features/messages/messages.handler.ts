import { causedError } from '@antiphon/contracts/causes';
import { Controller, Inject } from '@nestjs/common';
import { CLOCK, IDS } from '@antiphon/service-host';
import { AGENT_STORE, PAST_READS } from '../agents.tokens.js';
import { AgentDirectory } from '../lifecycle/agent-directory.js';
import {
  MAX_MESSAGE_BYTES,
  MESSAGE_CONTENT,
  agentInboxStream,
  agentTopicStream,
  listAgentMessages,
  sendAgentMessage,
  subscribeAgent,
} from '@antiphon/contracts/agent';
import type { AgentMessage } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import type { z } from 'zod';
import { claimOf, createFactLog, positionOfCursor, retryConflicts } from '@antiphon/event-store';
import type { EventStore, FactLog, NewEvent, PastReads } from '@antiphon/event-store';
import { exhausted, failpoint, invalid, isoTime, notFound, toStorableJson } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { requireBroadcast, requireReach } from '../lifecycle/agent-reach.js';
import { requireRights } from '../lifecycle/agent-rights.js';
import { agentUuidOf, topicUuidOf, eventMetadata, toNewEvent } from '@antiphon/agent-log';
import { EVERYONE, InboxStore } from './inbox-store.js';
import type { InboxState } from './inbox-store.js';

export type SendRequest = z.output<typeof sendAgentMessage.request>;
type SendReply = z.output<typeof sendAgentMessage.reply>;
type ListQuery = z.output<typeof listAgentMessages.request>;
type ListReply = z.output<typeof listAgentMessages.reply>;
type SubscribeRequest = z.output<typeof subscribeAgent.request>;

/** Maximum number of topics that one agent follows. */
const MAX_TOPICS = 100;
/** Maximum number of attempts: another message may come before the append. */
const MAX_ROUNDS = 20;

/** Throws `MESSAGE.INVALID` unless the content matches its type and is small enough. */
const checkContent = ({ type, content }: SendRequest['message']): void => {
  const checked = MESSAGE_CONTENT[type].safeParse(content);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const problem = { problem: issue?.message ?? 'invalid', place: issue?.path.join('.') ?? '' };
    throw causedError(invalid, 'MESSAGE.INVALID', { kind: 'message_unlike_type', type, ...problem });
  }
  const bytes = Buffer.byteLength(JSON.stringify(content));
  if (bytes > MAX_MESSAGE_BYTES)
    throw causedError(invalid, 'MESSAGE.INVALID', {
      ...{ kind: 'message_too_large', bytes, max: MAX_MESSAGE_BYTES },
    });
};

const toRecipient = ({ to }: SendRequest['message']): AgentMessage['to'] => {
  if ('agent' in to) return { kind: 'agent', agentId: to.agent };
  // The topic `everyone` is the one of the messages to every agent.
  return 'topic' in to && to.topic !== EVERYONE ? { kind: 'topic', topic: to.topic } : { kind: 'everyone' };
};

const streamOf = (workspace: string, to: AgentMessage['to']): string => {
  if (to.kind === 'agent') return agentInboxStream(agentUuidOf(workspace, to.agentId));
  return agentTopicStream(topicUuidOf(workspace, to.kind === 'topic' ? to.topic : EVERYONE));
};

/** Handles messages between agents: sends, lists, and follows topics. */
@Controller()
export class Messages {
  /** Facts of inboxes and topics, by their event streams. */
  private readonly log: FactLog;

  constructor(
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(InboxStore) private readonly inboxes: InboxStore,
    @Inject(AGENT_STORE) store: EventStore,
    @Inject(PAST_READS) private readonly past: PastReads,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {
    this.log = createFactLog(store, (_workspace, streamId) => streamId);
  }

  /** Stores a message: one event, for any number of recipients. */
  @HandleRequest(sendAgentMessage)
  async send(request: SendRequest): Promise<SendReply> {
    const { ids, clock, agents } = this;
    const { workspace, message, actor, idempotencyKey: key } = request;
    checkContent(message);
    const to = toRecipient(message);
    if (to.kind === 'agent') await agents.require(workspace, to.agentId);
    await this.requireReachOf(request, to);
    const messageId = ids.next();
    const sent: AgentMessage = {
      ...{ messageId, type: message.type, to },
      from: actor.agentId === null ? actor.caller : `agent/${actor.agentId}`,
      content: toStorableJson(message.content) as AgentMessage['content'],
      causeId: message.cause ?? null,
      sentAt: isoTime(clock),
    };
    const data = sent as unknown as JsonObject;
    const event: NewEvent = {
      ...{ eventId: messageId, type: 'AgentMessageSent', schemaVersion: 1, data },
      metadata: eventMetadata(),
    };
    const result = await this.log.appendAt(workspace, streamOf(workspace, to), 'any', [event], {
      idempotency: claimOf(`${actor.caller}/agent.message`, key, { message }, { messageId }),
    });
    await failpoint('agent.message.sent');
    return result.outcome === 'joined' ? sendAgentMessage.reply.parse(result.response) : { messageId };
  }

  /** An agent, by its tool or its key, sends messages only to agents that it may turn to. */
  private async requireReachOf({ workspace, actor }: SendRequest, to: AgentMessage['to']): Promise<void> {
    const { agents } = this;
    const { agentId: from } = actor;
    if (from === null) return;
    if (to.kind === 'agent') return requireReach(agents, workspace, from, to.agentId);
    return requireBroadcast(agents, workspace, from, to.kind === 'topic' ? to.topic : null);
  }

  /** Lists the messages of an agent, newest first. */
  @HandleRequest(listAgentMessages)
  async list(query: ListQuery): Promise<ListReply> {
    const { workspace, agentId, at } = query;
    const { agents, past } = this;
    // The messages of an agent that has ended stay readable.
    if (!(await agents.load(workspace, agentId))) await agents.require(workspace, agentId);
    return past.readAt(at, (upTo) => this.listUpTo(query, upTo));
  }

  private async listUpTo(
    { workspace, agentId, limit, cursor, offset = 0, at }: ListQuery,
    upTo: number,
  ): Promise<ListReply> {
    const { inboxes } = this;
    const state = await inboxes.readState(workspace, agentId, upTo);
    if (at !== undefined && state.since === 0)
      throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
    const before = Math.min(positionOfCursor(cursor) ?? Infinity, upTo + 1);
    const { shown, hasMore } = await inboxes.readNewest(workspace, state, { limit, before, offset });
    const last = shown.at(-1);
    return {
      messages: shown.map(({ position, message }) => {
        return { ...message, logPosition: position, isRead: position <= state.upTo };
      }),
      nextCursor: hasMore && last ? encodeCursor(last.position) : null,
    };
  }

  /** Subscribes an agent to a topic, or ends the subscription. */
  @HandleRequest(subscribeAgent)
  async subscribe(request: SubscribeRequest): Promise<{ topics: string[] }> {
    const { workspace, agentId, actor } = request;
    await this.agents.require(workspace, agentId);
    await requireRights(this.agents, workspace, actor, agentId);
    if (request.topic === EVERYONE)
      throw invalid('MESSAGE.INVALID', 'every agent gets the messages of the topic everyone');
    const change = async (): Promise<string[]> =>
      this.changeTopics(request, await this.inboxes.readState(workspace, agentId));
    return { topics: await retryConflicts(change, { maxRounds: MAX_ROUNDS }) };
  }

  private async changeTopics(
    { workspace, agentId, topic, subscribed, actor }: SubscribeRequest,
    { streamId, version, topics }: InboxState,
  ): Promise<string[]> {
    const followed = [...topics.keys()];
    if (topics.has(topic) === subscribed) return followed.sort();
    if (subscribed && followed.length >= MAX_TOPICS)
      throw exhausted('MESSAGE.TOO_MANY_TOPICS', `the agent follows ${MAX_TOPICS} topics already`);
    const type = subscribed ? 'TopicSubscribed' : 'TopicUnsubscribed';
    const data = { agentId, topic, actor: actor.caller, at: isoTime(this.clock) };
    const event = toNewEvent({ type, schemaVersion: 1, data }, this.ids);
    await this.log.appendAt(workspace, streamId, version, [event]);
    return (subscribed ? [...followed, topic] : followed.filter((other) => other !== topic)).sort();
  }
}
