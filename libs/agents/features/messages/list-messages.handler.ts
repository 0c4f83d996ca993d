import { Controller, Inject } from '@nestjs/common';
import { listTopics, listWorkspaceMessages } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import { positionOfCursor, type PastReads } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { PAST_READS } from '../agents.tokens.js';
import { AgentDirectory } from '../lifecycle/agent-directory.js';
import { InboxStore } from './inbox-store.js';

type ListRequest = z.output<typeof listWorkspaceMessages.request>;
type TopicsRequest = z.output<typeof listTopics.request>;

/** Handles lists of the messages of a workspace, and of the topics of an agent. */
@Controller()
export class ListMessages {
  constructor(
    @Inject(InboxStore) private readonly inboxes: InboxStore,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(PAST_READS) private readonly past: PastReads,
  ) {}

  @HandleRequest(listWorkspaceMessages)
  async list(request: ListRequest): Promise<z.input<typeof listWorkspaceMessages.reply>> {
    const { workspace, limit, cursor, at, agent = null, topic = null, type = null, cause = null } = request;
    return this.past.readAt(at, async (upTo) => {
      const bounds = { limit, before: positionOfCursor(cursor), upTo };
      const { shown, hasMore } = await this.inboxes.readAll(workspace, {
        ...bounds,
        ...{ agent, topic, type, cause },
      });
      const last = shown.at(-1);
      return {
        messages: shown.map(({ position, message, isRead }) => ({
          ...message,
          ...{ logPosition: position, isRead },
        })),
        nextCursor: hasMore && last ? encodeCursor(last.position) : null,
      };
    });
  }

  @HandleRequest(listTopics)
  async topics(request: TopicsRequest): Promise<z.input<typeof listTopics.reply>> {
    const { workspace, agentId, at } = request;
    if (!(await this.agents.load(workspace, agentId))) await this.agents.require(workspace, agentId);
    return this.past.readAt(at, async (upTo) => {
      const { topics, since } = await this.inboxes.readState(workspace, agentId, upTo);
      if (at !== undefined && since === 0)
        throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
      return { topics: [...topics.keys()].sort() };
    });
  }
}
