import {
  Controller,
  Header,
  Headers,
  Inject,
  Res,
  StreamableFile,
  type OnModuleDestroy,
} from '@nestjs/common';
import {
  answerApproval,
  attachChatFile,
  cancelTurn,
  changeMessage,
  createChat,
  deleteChat,
  detachChatFile,
  listChats,
  parseMessageId,
  renameChat,
  toMarkdown,
  type ChatView,
  type DeletedChat,
  type MessageBody,
} from '@antiphon/contracts/agent';
import type { ChatReply } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import { CHAT_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import type { EventStore } from '@antiphon/event-store';
import { DATABASE_POOL, EVENT_STORE, REQUESTS } from '@antiphon/service-host';
import type { FastifyReply } from 'fastify';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { AgentAccess } from '../access/agent-access.js';
import {
  authorize,
  CurrentPrincipal,
  requireFileAccess,
  requireFilesOf,
  requireWorkspace,
} from '../access/access-guard.js';
import { CHAT_STREAMS, type GatewayRequests } from '../gateway.ports.js';
import { approverOf } from '../agents/approvals.controller.js';
import { HandleRoute } from '../route/handle-route.js';
import { toTextQuery, wordsOf } from '../search/search-words.js';
import { commonOf } from '../sessions/session-methods.js';
import { SubmitTurns } from '../sessions/submit-turns.js';
import { toEventId } from './chat-cursor.js';
import { ChatReader, type ChatPlace } from './chat-reader.js';
import type { ChatStreams } from './chat-streams.js';

type Routes = typeof CHAT_ROUTES;
type Changed = z.output<typeof changeMessage.reply>;
type Reply = z.output<typeof ChatReply>;

const MEDIA = { md: 'text/markdown; charset=utf-8', json: 'application/json; charset=utf-8' } as const;

const formOf = (format: 'md' | 'json' | undefined, accept = ''): 'md' | 'json' =>
  format ?? (accept.includes('application/json') && !accept.includes('text/markdown') ? 'json' : 'md');

/** Serves chats: sessions that the files list as `<name>.chat`. */
@Controller()
export class ChatsController implements OnModuleDestroy {
  private readonly chats: ChatReader;
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(EVENT_STORE) store: EventStore,
    @Inject(CHAT_STREAMS) private readonly streams: ChatStreams,
    @Inject(AgentAccess) private readonly access: AgentAccess,
    @Inject(SubmitTurns) private readonly turns: SubmitTurns,
    @Inject(DATABASE_POOL) pool: Pool,
  ) {
    this.chats = new ChatReader(requests, store, pool);
  }

  onModuleDestroy(): void {
    this.streams.close();
  }

  @HandleRoute(CHAT_ROUTES.createChat)
  create(
    { params, body: spec, idempotencyKey }: RouteInput<Routes['createChat']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<ChatView> {
    requireWorkspace(principal, params.id);
    if (spec.attach !== undefined) {
      requireFileAccess(principal, params.id);
      authorize(principal, 'files:read');
    }
    return this.requests.request(createChat, { ...commonOf(principal), spec, idempotencyKey });
  }

  @HandleRoute(CHAT_ROUTES.listChats)
  async list(
    { params, query }: RouteInput<Routes['listChats']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listChats.reply>> {
    requireWorkspace(principal, params.id);
    const { agent: agentId, q, order, limit, cursor, at, ...filter } = query;
    const isFiltered = [agentId, q, ...Object.values(filter)].some((value) => value !== undefined);
    const page = await this.requests.request(listChats, {
      ...{ workspace: principal.workspace, limit, cursor, at, agentId, ...filter },
      ...(q === undefined ? {} : { titles: toTextQuery(wordsOf(q)) ?? '' }),
      order: order ?? (isFiltered ? 'recent' : 'created'),
    });
    return { ...page, chats: await this.access.filter(principal, page.chats, ({ agentId }) => [agentId]) };
  }

  @HandleRoute(CHAT_ROUTES.readChat)
  async read(
    { params, query: { at, format } }: RouteInput<Routes['readChat']>,
    @CurrentPrincipal() principal: Principal,
    @Headers('accept') accept: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<StreamableFile> {
    const chat = await this.find(principal, params, at);
    const document = await this.chats.read(principal.workspace, chat, at);
    const form = formOf(format, accept);
    const text = form === 'md' ? toMarkdown(document) : `${JSON.stringify(document)}\n`;
    const renamed = chat.revision === 1 ? '' : `.${chat.revision}`;
    void reply.header('etag', `"${document.version}${renamed}"`).header('vary', 'accept');
    return new StreamableFile(Buffer.from(text), { type: MEDIA[form] });
  }

  @HandleRoute(CHAT_ROUTES.sendChatCommand)
  async send(
    { params, body, idempotencyKey }: RouteInput<Routes['sendChatCommand']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Reply> {
    const isMessage = 'content' in body;
    const chat = await (isMessage ? this.findPlace(principal, params) : this.find(principal, params));
    const reply: Reply = {
      ...{ chatId: chat.id, sessionId: chat.sessionId, version: null },
      ...{ turnId: null, cursor: null, joined: false },
    };
    if ('content' in body) return this.append(chat, principal, body, idempotencyKey, reply);
    if (body.command === 'cancel') {
      const { turnId } = body;
      const cancel = { ...commonOf(principal), sessionId: chat.sessionId, turnId };
      await this.requests.request(cancelTurn, cancel);
      return { ...reply, turnId: turnId ?? null };
    }
    if (body.command === 'attach') {
      requireFileAccess(principal, params.id);
      // The agent reads the file to the chat: as a read of it.
      authorize(principal, 'files:read');
      const { id: chatId, sessionId } = chat;
      const wanted = { ...commonOf(principal), chatId, sessionId, path: body.path, idempotencyKey };
      const { version } = await this.requests.request(attachChatFile, wanted);
      return { ...reply, version };
    }
    if (body.command === 'detach') {
      const { id: chatId, sessionId } = chat;
      const wanted = { ...commonOf(principal), chatId, sessionId, path: body.path, idempotencyKey };
      const { version } = await this.requests.request(detachChatFile, wanted);
      return { ...reply, version };
    }
    authorize(principal, 'approvals:answer');
    const { command: decision, ...answer } = body;
    const approver = approverOf(principal);
    await this.requests.request(answerApproval, {
      workspace: principal.workspace,
      decision,
      ...answer,
      approver,
    });
    return reply;
  }

  @HandleRoute(CHAT_ROUTES.renameChat)
  rename(
    { params, body: { name } }: RouteInput<Routes['renameChat']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<ChatView> {
    requireWorkspace(principal, params.id);
    return this.requests.request(renameChat, { ...commonOf(principal), chat: params.chat, name });
  }

  @HandleRoute(CHAT_ROUTES.deleteChat)
  delete(
    { params }: RouteInput<Routes['deleteChat']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<DeletedChat> {
    requireWorkspace(principal, params.id);
    return this.requests.request(deleteChat, { ...commonOf(principal), chat: params.chat });
  }

  @HandleRoute(CHAT_ROUTES.editMessage)
  edit(
    { params, body: { content } }: RouteInput<Routes['editMessage']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Changed> {
    return this.change(principal, params, content);
  }

  @HandleRoute(CHAT_ROUTES.deleteMessage)
  remove(
    { params }: RouteInput<Routes['deleteMessage']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Changed> {
    return this.change(principal, params, null);
  }

  @HandleRoute(CHAT_ROUTES.streamChat)
  @Header('cache-control', 'no-store')
  @Header('x-accel-buffering', 'no')
  async stream(
    { params, query }: RouteInput<Routes['streamChat']>,
    @CurrentPrincipal() principal: Principal,
    @Headers('last-event-id') header: string | undefined,
  ): Promise<StreamableFile> {
    const chat = await this.find(principal, params);
    const lastEventId = header ?? query.last_event_id;
    const pipe = await this.streams.open({ principal, chat, lastEventId, from: query.from });
    return new StreamableFile(pipe, { type: 'text/event-stream; charset=utf-8' });
  }

  private async find(
    principal: Principal,
    params: { readonly id: string; readonly chat: string },
    at?: number,
  ): Promise<ChatView> {
    requireWorkspace(principal, params.id);
    const chat = await this.chats.require(principal.workspace, params.chat, at);
    await this.access.requireAny(principal, [chat.agentId]);
    return chat;
  }

  /** As `find`, for a message: the append refuses one to a deleted chat. */
  private async findPlace(
    principal: Principal,
    params: { readonly id: string; readonly chat: string },
  ): Promise<ChatPlace> {
    requireWorkspace(principal, params.id);
    const chat = await this.chats.requirePlace(principal.workspace, params.chat);
    await this.access.requireAny(principal, [chat.agentId]);
    return chat;
  }

  private async append(
    { sessionId }: ChatPlace,
    principal: Principal,
    { content }: { readonly content: MessageBody },
    idempotencyKey: string | undefined,
    reply: Reply,
  ): Promise<Reply> {
    requireFilesOf(principal, content);
    const message = { ...commonOf(principal), target: { sessionId }, content, idempotencyKey };
    const [turn, epoch] = await Promise.all([this.turns.submit(message), this.streams.readEpoch()]);
    const { turnId, version, acceptedOffset, joined } = turn;
    const cursor =
      acceptedOffset === null
        ? null
        : toEventId({ epoch, sessionId, offset: Math.max(0, acceptedOffset - 1) });
    return { ...reply, version, turnId, cursor, joined };
  }

  private async change(
    principal: Principal,
    params: RouteInput<Routes['editMessage']>['params'],
    content: string | null,
  ): Promise<Changed> {
    const chat = await this.find(principal, params);
    const { id: chatId, sessionId } = chat;
    const message = parseMessageId(params.message);
    const wanted = { ...commonOf(principal), chatId, sessionId, ...message, content };
    return this.requests.request(changeMessage, wanted);
  }
}
