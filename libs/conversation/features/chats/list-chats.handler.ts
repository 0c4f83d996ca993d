import { Controller, Inject } from '@nestjs/common';
import { PAST_READS } from '@antiphon/agents-features';
import { listChatBranches, listChats } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import { positionOfCursor } from '@antiphon/event-store';
import type { PastReads } from '@antiphon/event-store';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { ReadSessions } from '../sessions/read-sessions.handler.js';
import { ChatStore } from './chat-store.js';

type ListRequest = z.output<typeof listChats.request>;
type ListReply = z.output<typeof listChats.reply>;
type BranchesRequest = z.output<typeof listChatBranches.request>;

/** Channel of the sessions of chats. */
const CHAT_CHANNEL = 'chat';

/** Lists chats, now or as of a position of the log. */
@Controller()
export class ListChats {
  constructor(
    @Inject(ChatStore) private readonly chats: ChatStore,
    @Inject(ReadSessions) private readonly sessions: ReadSessions,
    @Inject(PAST_READS) private readonly past: PastReads,
  ) {}

  /**
   * Lists the chats of a workspace, oldest first or the most recently active first, now or as of a
   * position of the log.
   */
  @HandleRequest(listChats)
  list(request: ListRequest): Promise<ListReply> {
    return request.order === 'recent' ? this.listRecent(request) : this.listCreated(request);
  }

  private async listRecent({ order: _, ...request }: ListRequest): Promise<ListReply> {
    const { sessions, ...page } = await this.sessions.list({ ...request, channel: CHAT_CHANNEL });
    const ids = sessions.flatMap(({ chat }) => chat?.id ?? []);
    const chats = await this.chats.listByIds(request.workspace, ids, page.position);
    return {
      ...page,
      chats: sessions.flatMap(({ chat, state, turns, lastAt, lastPosition }) => {
        const found = chat && chats.get(chat.id);
        return found ? [{ ...found, state, turns, lastAt, lastPosition }] : [];
      }),
    };
  }

  private async listCreated({ workspace, limit, cursor, at }: ListRequest): Promise<ListReply> {
    const after = positionOfCursor(cursor, 'CHAT.INVALID_CURSOR') ?? 0;
    return this.past.readAt(at, async (upTo) => {
      const found = await this.chats.list(workspace, after, limit + 1, upTo);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      return {
        chats: page.map(({ chat }) => chat),
        nextCursor: found.length > limit && last ? encodeCursor(last.position) : null,
      };
    });
  }

  /** Lists a chat with all branches that have a common origin, now or as of a position of the log. */
  @HandleRequest(listChatBranches)
  async listBranches({
    workspace,
    chat,
    at,
  }: BranchesRequest): Promise<z.output<typeof listChatBranches.reply>> {
    const found = await this.chats.require(workspace, chat);
    const root = found.branchOf?.rootChatId ?? found.id;
    return this.past.readAt(at, async (upTo) => ({
      chats: await this.chats.listFamily(workspace, root, upTo),
    }));
  }
}
