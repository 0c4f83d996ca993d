import { Readable } from 'node:stream';
import { Controller, Inject, Res, StreamableFile } from '@nestjs/common';
import {
  forkSession,
  getSession,
  listSessions,
  readTurnContext,
  rewindFiles,
  sessionStream,
  type SessionHistory,
  type SessionSummary,
} from '@antiphon/contracts/agent';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { readSessionCosts } from '@antiphon/contracts/metering';
import {
  CONTEXT_ROUTES,
  SESSION_ROUTES,
  type RouteInput,
  type SessionView,
} from '@antiphon/contracts/reference';
import { inWorkspace } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import { DATABASE_POOL, EVENT_STORE, REQUESTS } from '@antiphon/service-host';
import type { FastifyReply } from 'fastify';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { HeavyRequests } from '../admission/heavy-requests.js';
import { AgentAccess } from '../access/agent-access.js';
import { authorize, CurrentPrincipal } from '../access/access-guard.js';
import { readDeletedParts, type DeletedPart } from '../frames/deleted-parts.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { toTextQuery, wordsOf } from '../search/search-words.js';
import { commonOf, mayUseAnyModel } from './session-methods.js';
import { findTexts, type FoundTexts } from './find-texts.js';
import { findTurn, placesAt, type FoundTurn } from './find-turn.js';
import { readHistory } from './read-history.js';
import { readTurns, type TurnsPage } from './read-turns.js';
import { exportText, verifySession } from './export-session.js';

type Routes = typeof SESSION_ROUTES & typeof CONTEXT_ROUTES;
type SessionPage = z.output<Routes['listSessions']['reply']['schema']>;

const MEDIA = { jsonl: 'application/jsonl', json: 'application/json' } as const;

/** Serves sessions: lists, turns, export, fork and the rewind of files. */
@Controller()
export class SessionsController {
  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(DATABASE_POOL) private readonly pool: Pool,
    @Inject(AgentAccess) private readonly access: AgentAccess,
    @Inject(HeavyRequests) private readonly heavy: Pick<HeavyRequests, 'yieldToSmall'>,
  ) {}

  @HandleRoute(SESSION_ROUTES.listSessions)
  async list(
    { query: { agent: agentId, q, ...query } }: RouteInput<Routes['listSessions']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<SessionPage> {
    const { workspace } = principal;
    await this.access.require(principal, agentId);
    const page = await this.requests.request(listSessions, {
      ...{ workspace, agentId, ...query },
      ...(q === undefined ? {} : { titles: toTextQuery(wordsOf(q)) ?? '' }),
    });
    return { ...page, sessions: await this.withCosts(workspace, page.sessions, query.at) };
  }

  @HandleRoute(SESSION_ROUTES.getSession)
  async get(
    { params: { id: sessionId }, query: { at } }: RouteInput<Routes['getSession']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<(typeof SESSION_ROUTES.getSession)['reply']['schema']>> {
    const { workspace } = principal;
    await this.access.requireSession(principal, this.store, sessionId);
    const session = await this.requests.request(getSession, { workspace, sessionId, at });
    const [withCost] = await this.withCosts(workspace, [session], at);
    return { ...session, cost: withCost?.cost ?? null };
  }

  @HandleRoute(SESSION_ROUTES.readTurns)
  async turns(
    { params: { id: sessionId }, query }: RouteInput<Routes['readTurns']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<TurnsPage> {
    await this.access.requireSession(principal, this.store, sessionId);
    return readTurns(this.pool, { workspace: principal.workspace, sessionId, ...query });
  }

  @HandleRoute(CONTEXT_ROUTES.readTurnContext)
  async context(
    { params: { id: sessionId, turn: turnId }, query }: RouteInput<Routes['readTurnContext']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof readTurnContext.reply>> {
    const { workspace, agentId } = principal;
    await this.access.requireSession(principal, this.store, sessionId);
    return this.requests.request(readTurnContext, {
      ...{ workspace, sessionId, turnId, ...query, includesMemory: isPermitted(principal, 'memory:read') },
      ...(agentId === null ? {} : { callerAgent: agentId }),
    });
  }

  @HandleRoute(SESSION_ROUTES.readSessionHistory)
  async history(
    { params: { id: sessionId }, query }: RouteInput<Routes['readSessionHistory']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<SessionHistory> {
    await this.access.requireSession(principal, this.store, sessionId);
    return readHistory(this.pool, { workspace: principal.workspace, sessionId, ...query });
  }

  @HandleRoute(CONTEXT_ROUTES.findTexts)
  async findTexts(
    { params: { id: sessionId }, query }: RouteInput<Routes['findTexts']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<FoundTexts> {
    await this.access.requireSession(principal, this.store, sessionId);
    return findTexts(this.pool, { workspace: principal.workspace, sessionId, ...query });
  }

  @HandleRoute(SESSION_ROUTES.findTurn)
  async findTurn(
    { params: { id: turnId }, query: { at } }: RouteInput<Routes['findTurn']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<FoundTurn> {
    const found = await findTurn(this.pool, principal.workspace, turnId, at);
    await this.access.requireSession(principal, this.store, found.sessionId);
    return found;
  }

  @HandleRoute(SESSION_ROUTES.exportSession)
  async export(
    { params: { id }, query: { format, at, deleted } }: RouteInput<Routes['exportSession']>,
    @CurrentPrincipal() principal: Principal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<StreamableFile> {
    const { workspace } = principal;
    await this.access.requireSession(principal, this.store, id);
    if (deleted === 'include') authorize(principal, 'operations:write');
    // Read twice: the chain is verified before the first byte, and the session is never held in
    // memory.
    const places = at === undefined ? null : await placesAt(this.pool, at);
    const pause = (): Promise<void> => this.heavy.yieldToSmall();
    const header = await verifySession(this.store, workspace, id, places?.position, pause);
    if (places) void reply.header('antiphon-position', places.position).header('antiphon-head', places.head);
    const hidden = deleted === 'include' ? [] : await this.deletedParts(workspace, id);
    // One event at a time: the client's reading sets the pace of the reads.
    const text = Readable.from(exportText(this.store, header, format, hidden, pause), { highWaterMark: 1 });
    const disposition = `attachment; filename="session-${id}.${format}"`;
    return new StreamableFile(text, { type: MEDIA[format], disposition });
  }

  @HandleRoute(SESSION_ROUTES.forkSession)
  fork(
    { params, body, idempotencyKey }: RouteInput<Routes['forkSession']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof forkSession.reply>> {
    return this.requests.request(forkSession, {
      ...body,
      sessionId: params.id,
      ...commonOf(principal),
      anyModel: mayUseAnyModel(principal),
      idempotencyKey,
    });
  }

  @HandleRoute(SESSION_ROUTES.rewindFiles)
  async rewind(
    { params, body, idempotencyKey }: RouteInput<Routes['rewindFiles']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof rewindFiles.reply>> {
    const { workspace, caller: actor } = principal;
    await this.access.requireSession(principal, this.store, params.id);
    return this.requests.request(rewindFiles, {
      ...body,
      ...{ sessionId: params.id, workspace, actor, idempotencyKey },
    });
  }

  private async deletedParts(workspace: string, sessionId: string): Promise<readonly DeletedPart[]> {
    const stream = sessionStream(sessionId);
    const parts = await readDeletedParts(inWorkspace(this.pool, workspace), workspace, [stream]);
    return parts.get(stream) ?? [];
  }

  /** Adds the costs of sessions. Without metering they are unknown, and the sessions still listed. */
  private async withCosts(
    workspace: string,
    sessions: readonly SessionSummary[],
    at: number | undefined,
  ): Promise<SessionView[]> {
    const sessionIds = sessions.map(({ id }) => id);
    const found = await this.requests
      .request(readSessionCosts, { workspace, sessionIds, at })
      .catch((error: unknown) => {
        if (isAppError(error) && error.kind === 'transient' && at === undefined) return null;
        throw error;
      });
    const costs = new Map(
      found?.sessions.map(({ sessionId, tokens, microUsd }) => [sessionId, { tokens, microUsd }]),
    );
    const none = found === null ? null : { tokens: 0, microUsd: 0 };
    return sessions.map((session) => ({ ...session, cost: costs.get(session.id) ?? none }));
  }
}
