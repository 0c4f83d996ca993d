import { Controller, Inject } from '@nestjs/common';
import { CLOCK, IDS } from '@antiphon/service-host';
import { CHAT_SUFFIX, createChat, getChat } from '@antiphon/contracts/agent';
import type { ChatCreated, ChatView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import type { SessionCommand } from '@antiphon/conversation-domain';
import { claimOf } from '@antiphon/event-store';
import { isoTime, notFound, toStorable } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { requireOwnSession, AgentDirectory } from '@antiphon/agents-features';
import { chatIdOf } from '@antiphon/agent-log';
import { rolePath } from '../turns/role-text.js';
import { TurnFiles } from '../turns/turn-files.js';
import { toChatView } from '../sessions/session-chat.js';
import { ChatStore } from './chat-store.js';
import type { NameBinding } from './chat-store.js';
import { ChatStarter } from './chat-starter.js';
import { RoleAgents } from './role-agents.js';

type CreateRequest = z.output<typeof createChat.request>;

/** Handles chats: creates and returns them. */
@Controller()
export class Chats {
  constructor(
    @Inject(ChatStore) readonly chats: ChatStore,
    @Inject(RoleAgents) private readonly roles: RoleAgents,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(ChatStarter) private readonly starter: ChatStarter,
    @Inject(TurnFiles) private readonly files: TurnFiles,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  /**
   * Creates a chat with its session, its files and its first message: one append, so that none
   * exists without the others.
   */
  @HandleRequest(createChat)
  async create(request: CreateRequest): Promise<ChatView> {
    const { agents } = this;
    const { workspace, spec, caller, idempotencyKey: key } = request;
    const agentId = (await agents.require(workspace, await this.agentOf(request))).id;
    await requireOwnSession(agents, request, agentId);
    const name = this.nameOf(request);
    const binding = await this.chats.readName(workspace, name);
    const data = this.toCreated(request, agentId, name, binding);
    const started = await this.starter.start({
      ...{ workspace, data, binding, view: toChatView(data) },
      commands: await this.attachmentsOf(request, data.createdAt),
      message: spec.message === undefined ? null : { content: toStorable(spec.message), caller },
      idempotency: (view) => claimOf(`${caller}/chat.create`, key, { spec }, view),
    });
    return createChat.reply.parse(started);
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

  private async agentOf({ workspace, spec, caller, callerAgent }: CreateRequest): Promise<string> {
    const { agent, role } = spec;
    if (agent !== undefined) return agent;
    const configured = this.roles.findConfigured(workspace, role);
    if (role === undefined) return configured?.id ?? '';
    const id = configured?.id ?? (await this.roles.find({ workspace, role, caller, callerAgent }));
    if (id !== null) return id;
    const message = `no agent has the role "${role}", and there is no file ${rolePath(role)}`;
    throw notFound('CHAT.ROLE_UNKNOWN', message);
  }

  private nameOf({ spec }: CreateRequest): string {
    const { ids, clock } = this;
    const minute = isoTime(clock).slice(0, 16).replaceAll(/[:T]/g, '-');
    return toStorable(spec.name ?? `chat-${minute}-${ids.next().slice(-6)}`);
  }

  private toCreated(
    { workspace, spec, caller }: CreateRequest,
    agentId: string,
    name: string,
    { version, chatId }: NameBinding,
  ): ChatCreated['data'] {
    const { ids, clock } = this;
    return {
      // The append conflicts with the chat that has the name, unless it repeats its creation.
      chatId: chatId ?? (version === 0 ? chatIdOf(workspace, name) : ids.next()),
      ...{ name, path: `${name}${CHAT_SUFFIX}`, agentId, role: spec.role ?? null, sessionId: ids.next() },
      ...{ createdBy: caller, createdAt: isoTime(clock) },
    };
  }

  private async attachmentsOf(
    { workspace, spec: { attach = [] }, caller: actor }: CreateRequest,
    now: string,
  ): Promise<SessionCommand[]> {
    const commands: SessionCommand[] = [];
    for (const path of new Set(attach.map((given) => given.normalize('NFC'))))
      commands.push({
        type: 'AttachFile',
        data: { ...(await this.files.find(workspace, path)), actor },
        now,
      });
    return commands;
  }
}
