import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import {
  CHAT_SUFFIX,
  attachChatFile,
  changeMessage,
  createChat,
  getChat,
  listChats,
  sessionKeyOf,
  sessionStream,
} from '@antiphon/contracts/agent';
import type { ChatCreated, ChatView } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import type { z } from 'zod';
import type { SessionCommand } from '@antiphon/conversation-domain';
import { workspaceConfig, type AntiphonConfig } from '@antiphon/config';
import { claimOf, isVersionConflict, readBackwards, positionOfCursor } from '@antiphon/event-store';
import type { EventStore, IdempotencyClaim, PastReads, StreamAppend } from '@antiphon/event-store';
import { isAppError, isoTime, notFound, toStorable } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { AgentDirectory } from '@antiphon/agents-features';
import { requireOwnSession } from '@antiphon/agents-features';
import { CONVERSATION_SERVICES } from '../conversation.tokens.js';
import { chatIdOf, fileTreeIdOf, eventMetadata, toNewEvent } from '@antiphon/agent-log';
import { bindKey, readBinding } from '../sessions/session-keys.js';
import type { SessionLog } from '../sessions/session-log.js';
import type { SessionRegistry } from '../sessions/session-registry.js';
import { rolePath } from '../turns/role-text.js';
import { toChatView } from '../sessions/session-chat.js';
import { ChatStore } from './chat-store.js';
import type { NameBinding } from './chat-store.js';
import { nameTaken } from './rename-chat.handler.js';
import { RoleAgents } from './role-agents.js';
import type { RoleAgentsDeps } from './role-agents.js';

export interface ChatsDeps {
  readonly config: AntiphonConfig;
  readonly agents: Pick<AgentDirectory, 'require' | 'load'>;
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly log: SessionLog;
  readonly registry: SessionRegistry;
  readonly past: Pick<PastReads, 'readAt'>;
  /** Files of the workspace, as the newest version of their tree has them. */
  readonly files: {
    read(
      workspace: string,
      treeId: string,
    ): Promise<{
      readonly files: ReadonlyMap<string, { readonly digest: string; readonly size: number }>;
    }>;
  };
  readonly clock: Clock;
  readonly ids: Ids;
}

type CreateRequest = z.output<typeof createChat.request>;
type ChangeRequest = z.output<typeof changeMessage.request>;
type AttachRequest = z.output<typeof attachChatFile.request>;
type ListRequest = z.output<typeof listChats.request>;

/** Events of one page of the search for an old turn. */
const PAGE = 500;
/** Maximum number of attempts: another process may take the session over before the append. */
const MAX_ROUNDS = 5;

const isFenced = (error: unknown): boolean => isAppError(error) && error.code === 'LOG.FENCED';

/** Handles chats: creates and lists them, and changes their messages. */
@Controller()
export class Chats {
  readonly chats: ChatStore;
  private readonly roles: RoleAgents;

  constructor(@Inject(CONVERSATION_SERVICES) private readonly deps: ChatsDeps & RoleAgentsDeps) {
    this.roles = new RoleAgents(deps);
    this.chats = new ChatStore(deps.pool, deps.store, deps.ids);
  }

  /** Creates a chat with its session: one append, so that neither exists without the other. */
  @HandleRequest(createChat)
  async create(request: CreateRequest): Promise<ChatView> {
    const { agents } = this.deps;
    const { workspace, spec, caller, idempotencyKey: key } = request;
    const agentId = (await agents.require(workspace, await this.agentOf(request))).id;
    await requireOwnSession(agents, request, agentId);
    const name = this.nameOf(request);
    const binding = await this.chats.readName(workspace, name);
    const data = this.toCreated(request, agentId, name, binding);
    const view = toChatView(data);
    try {
      const { joined } = await this.chats.create(workspace, data, {
        also: await this.streamsOf(workspace, data, binding),
        idempotency: claimOf(`${caller}/chat.create`, key, { spec }, view),
      });
      return joined ? createChat.reply.parse(joined) : view;
    } catch (error) {
      if (!isVersionConflict(error)) throw error;
      throw nameTaken(name, (await this.chats.readName(workspace, name)).chatId ?? data.chatId);
    }
  }

  /**
   * Returns one chat, by its id or its name, with the name that it has or had. Throws
   * `CHAT.NOT_FOUND` and `CHAT.DELETED`.
   */
  @HandleRequest(getChat)
  async get({ workspace, chat, at }: z.output<typeof getChat.request>): Promise<ChatView> {
    const now = await this.chats.require(workspace, chat);
    return at === undefined ? now : this.chats.atVersion(workspace, now, at);
  }

  /** Lists the chats of a workspace, oldest first, now or as of a position of the log. */
  @HandleRequest(listChats)
  async list({ workspace, limit, cursor, at }: ListRequest): Promise<z.output<typeof listChats.reply>> {
    const after = positionOfCursor(cursor, 'CHAT.INVALID_CURSOR') ?? 0;
    return this.deps.past.readAt(at, async (upTo) => {
      const found = await this.chats.list(workspace, after, limit + 1, upTo);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      return {
        chats: page.map(({ chat }) => chat),
        nextCursor: found.length > limit && last ? encodeCursor(last.position) : null,
      };
    });
  }

  /** Edits or deletes a message. The first text stays in the log. */
  @HandleRequest(changeMessage)
  async change(request: ChangeRequest): Promise<z.output<typeof changeMessage.reply>> {
    const { turnId, part, caller: actor, content } = request;
    const changed = { turnId, part, actor };
    const command =
      content === null
        ? ({ type: 'DeleteMessage', data: changed } as const)
        : ({ type: 'EditMessage', data: { ...changed, content: toStorable(content) } } as const);
    return this.commit(request, { ...command, now: isoTime(this.deps.clock) }, (ended) =>
      ended.includes(turnId) ? Promise.resolve() : this.requireTurn(request),
    );
  }

  /** Attaches the bytes that a file has now. Later changes of the file do not change them. */
  @HandleRequest(attachChatFile)
  async attach(request: AttachRequest): Promise<z.output<typeof attachChatFile.reply>> {
    const { workspace, caller: actor } = request;
    const path = request.path.normalize('NFC');
    const { files } = await this.deps.files.read(workspace, fileTreeIdOf(workspace));
    const file = files.get(path);
    if (!file) throw notFound('CHAT.FILE_NOT_FOUND', `there is no file "${path}" in the workspace`);
    const data = { path, digest: file.digest, size: file.size, actor };
    const command = { type: 'AttachFile', data, now: isoTime(this.deps.clock) } as const;
    return this.commit(request, command, () => Promise.resolve());
  }

  private async agentOf({ workspace, spec, caller, callerAgent }: CreateRequest): Promise<string> {
    const { agents } = workspaceConfig(this.deps.config, workspace);
    const { agent, role } = spec;
    if (agent !== undefined) return agent;
    if (role === undefined) return agents[0]?.id ?? '';
    const configured = agents.find(({ id }) => id === role) ?? agents.find((known) => known.role === role);
    const id = configured?.id ?? (await this.roles.find({ workspace, role, caller, callerAgent }));
    if (id !== null) return id;
    const message = `no agent has the role "${role}", and there is no file ${rolePath(role)}`;
    throw notFound('CHAT.ROLE_UNKNOWN', message);
  }

  private nameOf({ spec }: CreateRequest): string {
    const { ids, clock } = this.deps;
    const minute = isoTime(clock).slice(0, 16).replaceAll(/[:T]/g, '-');
    return toStorable(spec.name ?? `chat-${minute}-${ids.next().slice(-6)}`);
  }

  private toCreated(
    { workspace, spec, caller }: CreateRequest,
    agentId: string,
    name: string,
    { version, chatId }: NameBinding,
  ): ChatCreated['data'] {
    const { ids, clock } = this.deps;
    return {
      // The append conflicts with the chat that has the name, unless it repeats its creation.
      chatId: chatId ?? (version === 0 ? chatIdOf(workspace, name) : ids.next()),
      ...{ name, path: `${name}${CHAT_SUFFIX}`, agentId, role: spec.role ?? null, sessionId: ids.next() },
      ...{ createdBy: caller, createdAt: isoTime(clock) },
    };
  }

  private async streamsOf(
    workspace: string,
    data: ChatCreated['data'],
    binding: NameBinding,
  ): Promise<StreamAppend[]> {
    const { ids, log, store } = this.deps;
    const { chatId, name, sessionId, agentId, createdAt: now } = data;
    const sessionKey = sessionKeyOf({ agentId, channel: 'chat', account: 'files', peer: chatId });
    const started = { sessionId, sessionKey, agentId };
    const command: SessionCommand = { type: 'StartSession', data: started, now };
    const events = log.decider.decide(command, log.decider.initialState());
    const taken = { type: 'ChatNameTaken', schemaVersion: 1, data: { name, chatId, at: now } } as const;
    return [
      this.chats.nameAppend(workspace, binding, taken),
      {
        streamId: sessionStream(sessionId),
        expectedVersion: 0,
        events: events.map((event) => toNewEvent(event, ids)),
      },
      bindKey(await readBinding(store, workspace, sessionKey), sessionKey, sessionId, ids, eventMetadata()),
    ];
  }

  private async commit(
    request: ChangeRequest | AttachRequest,
    command: SessionCommand,
    check: (ended: readonly string[]) => Promise<void>,
  ): Promise<z.output<typeof changeMessage.reply>> {
    const { registry, log } = this.deps;
    const { workspace, chatId, sessionId } = request;
    for (let round = 1; ; round++) {
      const session = await registry.requireSession(workspace, sessionId);
      const { actor } = session;
      await requireOwnSession(this.deps.agents, request, actor.fold().state.started?.agentId ?? '');
      await check(actor.fold().state.ended.map(({ turnId }) => turnId));
      try {
        const committed = await actor.commit((fold) => {
          const events = log.decider.decide(command, fold.state);
          const reply = { chatId, version: fold.version + events.length };
          return { events, reply, idempotency: this.claimOfChange(request, reply) };
        });
        registry.wakeDriver(session);
        if (committed.outcome === 'appended') return committed.decision.reply;
        if (committed.outcome === 'joined') return changeMessage.reply.parse(committed.answer);
        return { chatId, version: actor.fold().version };
      } catch (error) {
        if (!isFenced(error) || round === MAX_ROUNDS) throw error;
      }
    }
  }

  private claimOfChange(
    request: ChangeRequest | AttachRequest,
    reply: JsonObject,
  ): IdempotencyClaim | undefined {
    const { workspace: _workspace, caller, callerAgent: _agent, idempotencyKey: key, ...subject } = request;
    return claimOf(`${caller}/chat.change`, key, subject, reply);
  }

  /** Reads the log for a turn that is too old for the fold. Throws `CHAT.MESSAGE_NOT_FOUND`. */
  private async requireTurn({ workspace, sessionId, turnId }: ChangeRequest): Promise<void> {
    const stream = sessionStream(sessionId);
    for await (const { type, data } of readBackwards(this.deps.store, workspace, stream, PAGE))
      if (type === 'TurnRequested' && data['turnId'] === turnId) return;
    throw notFound('CHAT.MESSAGE_NOT_FOUND', `this chat has no message of the turn ${turnId}`);
  }
}
