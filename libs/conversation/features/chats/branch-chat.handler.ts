import { Controller, Inject } from '@nestjs/common';
import { CLOCK, IDS } from '@antiphon/service-host';
import { AGENT_STORE, AgentDirectory, requireOwnSession } from '@antiphon/agents-features';
import { branchChat, CHAT_SUFFIX } from '@antiphon/contracts/agent';
import type { ChatBranchPoint, ChatView, MessageFile } from '@antiphon/contracts/agent';
import { toRecalled } from '@antiphon/conversation-domain';
import type { SessionCommand } from '@antiphon/conversation-domain';
import { claimOf } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { isoTime, notFound, toStorable } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { chatIdOf } from '@antiphon/agent-log';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { foldsOf } from '../sessions/fork-origin.js';
import type { CutAt } from '../sessions/fork-origin.js';
import { ForkSession } from '../sessions/fork-session.handler.js';
import { toChatView } from '../sessions/session-chat.js';
import { SESSION_LOG } from '../sessions/session-log.js';
import type { SessionLog } from '../sessions/session-log.js';
import { ChatStarter } from './chat-starter.js';
import { ChatStore } from './chat-store.js';
import type { NameBinding } from './chat-store.js';

type Request = z.output<typeof branchChat.request>;

const MAX_NAME = 90;
const MAX_NAMES = 200;

/** Events of a turn that has not begun. */
const BEFORE_BEGIN: ReadonlySet<string> = new Set(['TurnRequested', 'TurnCancelRequested', 'TurnBlocked']);

/** Text and files of a message. */
interface Message {
  readonly content: string;
  readonly files?: readonly MessageFile[] | undefined;
}

/** State before a message, and the message. */
interface Cut {
  readonly cut: CutAt;
  readonly message: Message;
}

/** Returns a new text with the files of the message that it replaces. */
const withFiles = (content: string, { files }: Message): Message =>
  files
    ? { content, files: files.map((file) => ({ ...file, at: Math.min(file.at, content.length) })) }
    : { content };

/** A message that a branch replaces: the chat that has it, and its turn. */
interface Replaced {
  readonly chat: ChatView;
  readonly turnId: string;
}

/**
 * Handles branches of chats. A branch is a chat whose session is a fork: it continues before a
 * message of its origin, which stays unchanged.
 */
@Controller()
export class BranchChat {
  constructor(
    @Inject(ChatStore) private readonly chats: ChatStore,
    @Inject(ChatStarter) private readonly starter: ChatStarter,
    @Inject(ForkSession) private readonly forks: ForkSession,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(SESSION_LOG) private readonly log: SessionLog,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  /** Begins a branch before a message. Throws `CHAT.NOT_FOUND` and `CHAT.MESSAGE_NOT_FOUND`. */
  @HandleRequest(branchChat)
  async branch(request: Request): Promise<ChatView> {
    const { workspace, caller, idempotencyKey: key, content } = request;
    const asked = await this.chats.require(workspace, request.chat);
    const replaced = await this.resolve(workspace, { chat: asked, turnId: request.turnId });
    const { cut, message } = await this.cutBefore(workspace, replaced);
    const agentId = (await this.agents.require(workspace, request.agent ?? asked.agentId)).id;
    for (const id of new Set([asked.agentId, agentId])) await requireOwnSession(this.agents, request, id);
    const point = this.pointOf(request, replaced, cut);
    const { name, binding } = await this.freeName(workspace, asked.name);
    const data = {
      chatId: binding.version === 0 ? chatIdOf(workspace, name) : this.ids.next(),
      ...{ name, path: `${name}${CHAT_SUFFIX}`, agentId, role: null, sessionId: this.ids.next() },
      ...{ createdBy: caller, createdAt: isoTime(this.clock), branchOf: point },
    };
    const { chat, turnId, agent, files } = request;
    const started = await this.starter.start({
      ...{ workspace, data, binding, view: toChatView(data) },
      commands: await this.toCommands(request, cut, data.sessionId, point),
      message: content === undefined ? null : { ...withFiles(toStorable(content), message), caller },
      idempotency: (view) =>
        claimOf(`${caller}/chat.branch`, key, { chat, turnId, content, agent, files }, view),
    });
    return branchChat.reply.parse(started);
  }

  /** The first message of a branch replaces the one that the branch replaced. */
  private async resolve(workspace: string, { chat, turnId }: Replaced): Promise<Replaced> {
    const point = chat.branchOf;
    if (!point || (await this.firstTurn(workspace, chat.sessionId)) !== turnId) return { chat, turnId };
    const origin = await this.chats.read(workspace, point.chatId);
    return origin ? this.resolve(workspace, { chat: origin.chat, turnId: point.turnId }) : { chat, turnId };
  }

  private async firstTurn(workspace: string, sessionId: string): Promise<string | null> {
    for await (const { event } of foldsOf(this.store, this.log, workspace, sessionId))
      if (event.type === 'TurnRequested') return String(event.data['turnId']);
    return null;
  }

  /**
   * Returns the state before a turn: the last one in which all earlier turns have ended. A turn
   * that waited was requested earlier than that.
   */
  private async cutBefore(workspace: string, { chat, turnId }: Replaced): Promise<Cut> {
    let message: Message | null = null;
    let last: CutAt | null = null;
    for await (const cut of foldsOf(this.store, this.log, workspace, chat.sessionId)) {
      const { open, recent } = cut.fold.state;
      const { type, data } = cut.event;
      const isTurn = data['turnId'] === turnId;
      const isRequest = isTurn && type === 'TurnRequested';
      if (isRequest) message = data as unknown as Message;
      const hasBegun = isTurn && !BEFORE_BEGIN.has(type);
      if (message && last && (hasBegun || recent.some((turn) => turn.turnId === turnId)))
        return { cut: last, message };
      if (!isRequest && (open === null || open.turnId === turnId)) last = cut;
    }
    if (message && last) return { cut: last, message };
    throw notFound('CHAT.MESSAGE_NOT_FOUND', `this chat has no message of the turn ${turnId}`);
  }

  private pointOf({ files }: Request, { chat, turnId }: Replaced, { fold, event }: CutAt): ChatBranchPoint {
    return {
      ...{ chatId: chat.id, sessionId: chat.sessionId, version: fold.version, turnId, files },
      position: event.position,
      rootChatId: chat.branchOf?.rootChatId ?? chat.id,
    };
  }

  private async toCommands(
    { files, caller: actor }: Request,
    cut: CutAt,
    sessionId: string,
    { sessionId: originId, version }: ChatBranchPoint,
  ): Promise<SessionCommand[]> {
    const now = isoTime(this.clock);
    const { recent, attached } = cut.fold.state;
    const origin = { sessionId: originId, version, hash: cut.event.hash };
    const forked = {
      ...{ sessionId, origin, purpose: 'fork' as const, recent: recent.map(toRecalled) },
      ...{ facts: await this.forks.readFacts(cut), ...(files === 'shared' ? { files } : {}) },
    };
    return [
      { type: 'ForkSession', data: forked, now },
      ...attached.map((file) => ({ type: 'AttachFile' as const, data: { ...file, actor }, now })),
    ];
  }

  /** Returns the first free name of `name (2)`, `name (3)` and so on. */
  private async freeName(
    workspace: string,
    name: string,
  ): Promise<{ readonly name: string; readonly binding: NameBinding }> {
    const base = name
      .replace(/ \(\d+\)$/, '')
      .slice(0, MAX_NAME)
      .trim();
    for (let number = 2; number <= MAX_NAMES; number++) {
      const next = toStorable(`${base} (${number})`);
      const binding = await this.chats.readName(workspace, next);
      if (binding.chatId === null) return { name: next, binding };
    }
    const last = `${base.slice(0, MAX_NAME - 10)} ${this.ids.next().slice(-6)}`;
    return { name: last, binding: await this.chats.readName(workspace, last) };
  }
}
