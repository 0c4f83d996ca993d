import { Inject, Injectable } from '@nestjs/common';
import { IDS } from '@antiphon/service-host';
import { sessionKeyOf, sessionStream } from '@antiphon/contracts/agent';
import type { ChatCreated, ChatView, MessageFile } from '@antiphon/contracts/agent';
import { AGENT_STORE } from '@antiphon/agents-features';
import { eventMetadata, toNewEvent } from '@antiphon/agent-log';
import type { SessionCommand } from '@antiphon/conversation-domain';
import { isVersionConflict } from '@antiphon/event-store';
import type { EventStore, IdempotencyClaim, StreamAppend } from '@antiphon/event-store';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { bindKey, readBinding } from '../sessions/session-keys.js';
import { SESSION_LOG } from '../sessions/session-log.js';
import type { SessionLog } from '../sessions/session-log.js';
import { SessionRegistry } from '../sessions/session-registry.js';
import { RoleFiles } from '../turns/role-files.js';
import { ChatStore } from './chat-store.js';
import type { NameBinding } from './chat-store.js';
import { nameTaken } from './rename-chat.handler.js';

/** A chat that begins, and the commands of its session after the first. */
export interface NewChat {
  readonly workspace: string;
  readonly data: ChatCreated['data'];
  /** Binding of its name, as it was read. */
  readonly binding: NameBinding;
  readonly commands: readonly SessionCommand[];
  /** First message; null for none. */
  readonly message: {
    readonly content: string;
    readonly files?: readonly MessageFile[] | undefined;
    readonly caller: string;
  } | null;
  readonly idempotency: (view: ChatView) => IdempotencyClaim | undefined;
  readonly view: ChatView;
}

/** Begins chats: one append with the chat, its name and its session, with all that it starts with. */
@Injectable()
export class ChatStarter {
  constructor(
    @Inject(ChatStore) private readonly chats: ChatStore,
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(RoleFiles) private readonly roles: RoleFiles,
    @Inject(SESSION_LOG) private readonly log: SessionLog,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  /** Appends a chat. Returns its view, or the one that an earlier request with the key has got. */
  async start(chat: NewChat): Promise<JsonObject | ChatView> {
    const { workspace, data, message } = chat;
    const turnId = message === null ? null : this.ids.next();
    const view = turnId === null ? chat.view : { ...chat.view, turnId };
    try {
      const { joined } = await this.chats.create(workspace, data, {
        also: await this.streamsOf(chat, turnId),
        idempotency: chat.idempotency(view),
      });
      if (joined) return joined as JsonObject;
    } catch (error) {
      if (!isVersionConflict(error)) throw error;
      throw nameTaken(data.name, (await this.chats.readName(workspace, data.name)).chatId ?? data.chatId);
    }
    // If this process fails here, the sweep of abandoned sessions drives the turn.
    if (turnId !== null) await this.registry.claimAndWake(workspace, data.sessionId);
    return view;
  }

  private async streamsOf(chat: NewChat, turnId: string | null): Promise<StreamAppend[]> {
    const { ids, store } = this;
    const { workspace, data, binding } = chat;
    const { chatId, name, sessionId, agentId, createdAt: now } = data;
    const sessionKey = sessionKeyOf({ agentId, channel: 'chat', account: 'files', peer: chatId });
    const commands: SessionCommand[] = [
      { type: 'StartSession', data: { sessionId, sessionKey, agentId }, now },
      ...chat.commands,
    ];
    if (chat.message !== null && turnId !== null) {
      const role = await this.roles.find(workspace, agentId);
      commands.push({ type: 'RequestTurn', data: { ...chat.message, turnId, role, chain: [] }, now });
    }
    const taken = { type: 'ChatNameTaken', schemaVersion: 1, data: { name, chatId, at: now } } as const;
    return [
      this.chats.nameAppend(workspace, binding, taken),
      {
        streamId: sessionStream(sessionId),
        expectedVersion: 0,
        events: this.decide(commands).map((event) => toNewEvent(event, ids)),
      },
      bindKey(await readBinding(store, workspace, sessionKey), sessionKey, sessionId, ids, eventMetadata()),
    ];
  }

  private decide(commands: readonly SessionCommand[]) {
    const { decider } = this.log;
    let state = decider.initialState();
    return commands.flatMap((command) => {
      const events = decider.decide(command, state);
      state = events.reduce(decider.evolve, state);
      return events;
    });
  }
}
