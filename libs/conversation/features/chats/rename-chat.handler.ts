import { Controller, Inject } from '@nestjs/common';
import type { Clock } from '@antiphon/kernel';
import { CLOCK } from '@antiphon/service-host';
import { CHAT_SUFFIX, cancelTurn, deleteChat, renameChat } from '@antiphon/contracts/agent';
import type { ChatView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { retryConflicts } from '@antiphon/event-store';
import type { StreamAppend } from '@antiphon/event-store';
import { conflict, isoTime, toStorable } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { requireOwnSession, AgentDirectory } from '@antiphon/agents-features';
import { chatIdOf } from '@antiphon/agent-log';
import { CancelTurn } from '../turns/cancel-turn.handler.js';
import { ChatStore } from './chat-store.js';

type RenameRequest = z.output<typeof renameChat.request>;
type DeleteRequest = z.output<typeof deleteChat.request>;

/** Maximum number of attempts: another request may change the chat or the name first. */
const RETRIES = { maxRounds: 5 };

/** Creates the error for a name that belongs to another chat. */
export const nameTaken = (name: string, chatId: string) =>
  conflict(
    'CHAT.NAME_TAKEN',
    `there is a chat "${name}". What to do: choose another name, or continue that chat`,
    { data: { chatId } },
  );

/** Handles new names and deletions of chats. */
@Controller()
export class RenameChat {
  constructor(
    @Inject(ChatStore) private readonly chats: ChatStore,
    @Inject(CancelTurn) private readonly turns: CancelTurn,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Gives a chat another name: one append with both names. A repeat changes nothing. */
  @HandleRequest(renameChat)
  rename(request: RenameRequest): Promise<ChatView> {
    return retryConflicts(() => this.tryRename(request), RETRIES);
  }

  /** Deletes a chat and cancels its turns. A repeat cancels turns that a crash left open. */
  @HandleRequest(deleteChat)
  async remove(request: DeleteRequest): Promise<z.output<typeof deleteChat.reply>> {
    const { workspace, caller, callerAgent } = request;
    const { sessionId, ...deleted } = await retryConflicts(() => this.tryDelete(request), RETRIES);
    await this.turns.handle(cancelTurn.request.parse({ workspace, sessionId, caller, callerAgent }));
    return deleted;
  }

  private async tryRename(request: RenameRequest): Promise<ChatView> {
    const { workspace, caller: actor } = request;
    const chat = await this.chats.require(workspace, request.chat);
    await requireOwnSession(this.agents, request, chat.agentId);
    const name = toStorable(request.name);
    if (name === chat.name) return chat;
    const at = isoTime(this.clock);
    const { id: chatId, name: before } = chat;
    const data = { chatId, name, path: `${name}${CHAT_SUFFIX}`, before, actor, at };
    const names: StreamAppend[] = [];
    // Another case of the same letters is the same name.
    if (chatIdOf(workspace, name) !== chatIdOf(workspace, before)) {
      const wanted = await this.chats.readName(workspace, name);
      if (wanted.chatId !== null) throw nameTaken(name, wanted.chatId);
      const taken = { name, chatId, at };
      const event = { type: 'ChatNameTaken', schemaVersion: 1, data: taken } as const;
      names.push(this.chats.nameAppend(workspace, wanted, event), await this.free(workspace, chat, at));
    }
    const renamed = { type: 'ChatRenamed', schemaVersion: 1, data } as const;
    const { state } = await this.chats.change(workspace, chat, renamed, names);
    return state?.chat ?? chat;
  }

  private async tryDelete(request: DeleteRequest) {
    const { workspace, caller: actor } = request;
    const { chat, deletedAt } = await this.chats.requireRecord(workspace, request.chat);
    await requireOwnSession(this.agents, request, chat.agentId);
    const { id, name, sessionId } = chat;
    if (deletedAt !== null) return { id, name, deletedAt, sessionId };
    const at = isoTime(this.clock);
    const deleted = { type: 'ChatDeleted', schemaVersion: 1, data: { chatId: id, name, actor, at } } as const;
    await this.chats.change(workspace, chat, deleted, [await this.free(workspace, chat, at)]);
    return { id, name, deletedAt: at, sessionId };
  }

  private async free(workspace: string, { id: chatId, name }: ChatView, at: string): Promise<StreamAppend> {
    const binding = await this.chats.readName(workspace, name);
    const freed = { type: 'ChatNameFreed', schemaVersion: 1, data: { name, chatId, at } } as const;
    return this.chats.nameAppend(workspace, binding, freed);
  }
}
