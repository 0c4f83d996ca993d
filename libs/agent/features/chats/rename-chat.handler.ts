import { Controller, Inject } from '@nestjs/common';
import { CHAT_SUFFIX, cancelTurn, chatStream, deleteChat, renameChat } from '@antiphon/contracts/agent';
import type { ChatEvent, ChatView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import type { StreamAppend } from '@antiphon/event-store';
import { conflict, isAppError, isoTime, toStorable } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { requireOwnSession } from '../agents/agent-rights.js';
import { AGENT_SERVICES } from '../agent.tokens.js';
import { chatIdOf } from '../derived-ids.js';
import { toNewEvent } from '../event-envelope.js';
import { CancelTurn } from '../turns/cancel-turn.handler.js';
import type { CancelTurnDeps } from '../turns/cancel-turn.handler.js';
import { ChatStore } from './chat-store.js';
import type { NameBinding } from './chat-store.js';
import type { ChatsDeps } from './chats.handler.js';

type RenameRequest = z.output<typeof renameChat.request>;
type DeleteRequest = z.output<typeof deleteChat.request>;

/** Maximum number of attempts: another request may change the chat or the name first. */
const MAX_ROUNDS = 5;

const isConflict = (error: unknown): boolean => isAppError(error) && error.code === 'LOG.VERSION_CONFLICT';

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
  private readonly chats: ChatStore;
  private readonly turns: CancelTurn;

  constructor(@Inject(AGENT_SERVICES) private readonly deps: ChatsDeps & CancelTurnDeps) {
    this.chats = new ChatStore(deps.pool, deps.store);
    this.turns = new CancelTurn(deps);
  }

  /** Gives a chat another name: one append with both names. A repeat changes nothing. */
  @HandleRequest(renameChat)
  rename(request: RenameRequest): Promise<ChatView> {
    return this.repeat(() => this.tryRename(request));
  }

  /** Deletes a chat and cancels its turns. A repeat cancels turns that a crash left open. */
  @HandleRequest(deleteChat)
  async remove(request: DeleteRequest): Promise<z.output<typeof deleteChat.reply>> {
    const { workspace, caller, callerAgent } = request;
    const { sessionId, ...deleted } = await this.repeat(() => this.tryDelete(request));
    await this.turns.handle(cancelTurn.request.parse({ workspace, sessionId, caller, callerAgent }));
    return deleted;
  }

  private async tryRename(request: RenameRequest): Promise<ChatView> {
    const { workspace, caller: actor } = request;
    const chat = await this.chats.require(workspace, request.chat);
    await requireOwnSession(this.deps.agents, request, chat.agentId);
    const name = toStorable(request.name);
    if (name === chat.name) return chat;
    const at = isoTime(this.deps.clock);
    const { id: chatId, name: before, revision } = chat;
    const data = { chatId, name, path: `${name}${CHAT_SUFFIX}`, before, actor, at };
    const streams = [this.change(chat, { type: 'ChatRenamed', schemaVersion: 1, data })];
    // Another case of the same letters is the same name.
    if (chatIdOf(workspace, name) !== chatIdOf(workspace, before)) {
      const wanted = await this.chats.readName(workspace, name);
      if (wanted.chatId !== null) throw nameTaken(name, wanted.chatId);
      const taken = { name, chatId, at };
      streams.push(this.bind(wanted, { type: 'ChatNameTaken', schemaVersion: 1, data: taken }));
      streams.push(await this.free(workspace, chat, at));
    }
    await this.deps.store.append({ workspace, streams });
    return { ...chat, name, path: data.path, revision: revision + 1 };
  }

  private async tryDelete(request: DeleteRequest) {
    const { workspace, caller: actor } = request;
    const { chat, deletedAt } = await this.chats.requireRecord(workspace, request.chat);
    await requireOwnSession(this.deps.agents, request, chat.agentId);
    const { id, name, sessionId } = chat;
    if (deletedAt !== null) return { id, name, deletedAt, sessionId };
    const at = isoTime(this.deps.clock);
    const deleted = { type: 'ChatDeleted', schemaVersion: 1, data: { chatId: id, name, actor, at } } as const;
    const streams = [this.change(chat, deleted), await this.free(workspace, chat, at)];
    await this.deps.store.append({ workspace, streams });
    return { id, name, deletedAt: at, sessionId };
  }

  private change({ id, revision }: ChatView, event: ChatEvent): StreamAppend {
    const events = [toNewEvent(event, this.deps.ids)];
    return { streamId: chatStream(id), expectedVersion: revision, events };
  }

  private bind({ streamId, version }: NameBinding, event: ChatEvent): StreamAppend {
    return { streamId, expectedVersion: version, events: [toNewEvent(event, this.deps.ids)] };
  }

  private async free(workspace: string, { id: chatId, name }: ChatView, at: string): Promise<StreamAppend> {
    const binding = await this.chats.readName(workspace, name);
    return this.bind(binding, { type: 'ChatNameFreed', schemaVersion: 1, data: { name, chatId, at } });
  }

  private async repeat<T>(change: () => Promise<T>): Promise<T> {
    for (let round = 1; ; round++)
      try {
        return await change();
      } catch (error) {
        if (!isConflict(error) || round === MAX_ROUNDS) throw error;
      }
  }
}
