import { Controller, Inject } from '@nestjs/common';
import { listAgents, listFiles } from '@antiphon/contracts/agent';
import { SEARCH_KINDS } from '@antiphon/contracts/gateway';
import { isPermitted, type Permission, type Principal } from '@antiphon/contracts/identity';
import { encodeCursor } from '@antiphon/contracts/log';
import {
  SEARCH_ROUTES,
  type RouteInput,
  type SearchPage,
  type SearchResult,
} from '@antiphon/contracts/reference';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { positionOfCursor, requirePosition } from '@antiphon/event-store';
import type { Clock } from '@antiphon/kernel';
import { CLOCK, DATABASE_POOL, REQUESTS } from '@antiphon/service-host';
import type { Pool } from 'pg';
import { AgentAccess } from '../access/agent-access.js';
import { CurrentPrincipal } from '../access/access-guard.js';
import { checkEpoch } from '../events/event-view.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { searchLog, type LogKind } from './search-log.js';
import { toTextQuery, wordsOf } from './search-words.js';

type Kind = SearchResult['kind'];
type Query = RouteInput<(typeof SEARCH_ROUTES)['search']>['query'];

const RIGHTS: Readonly<Record<Kind, Permission>> = {
  chat: 'sessions:read',
  message: 'sessions:read',
  answer: 'sessions:read',
  task: 'runs:read',
  file: 'files:read',
  agent: 'agents:read',
};
const LOG_KINDS: ReadonlySet<Kind> = new Set<LogKind>(['chat', 'message', 'answer', 'task']);
const isLogKind = (kind: Kind): kind is LogKind => LOG_KINDS.has(kind);

/** Maximum number of agents, and of files, of a search. */
const MAX_NAMES = 8;
const HEAD_SQL = 'select epoch, antiphon_head_position() as head from log_head where id = 1';

const NAMED = { text: '', sessionId: null, chatId: null, position: null, turnPosition: null, at: null };

/** Serves the search over messages, chats, tasks, files and agents of a workspace. */
@Controller()
export class SearchController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(DATABASE_POOL) private readonly pool: Pool,
    @Inject(AgentAccess) private readonly access: AgentAccess,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRoute(SEARCH_ROUTES.search)
  async search(
    { query }: RouteInput<(typeof SEARCH_ROUTES)['search']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<SearchPage> {
    const places = await this.readPlaces(query);
    const kinds = (query.kinds ?? SEARCH_KINDS).filter((kind) => isPermitted(principal, RIGHTS[kind]));
    const names = query.cursor === undefined ? await this.findNames(query, kinds, principal, places) : [];
    const { results, searchedTo } = await this.searchEvents(query, kinds, principal, places);
    return {
      results: [...names, ...results],
      nextCursor: searchedTo > 0 ? encodeCursor(searchedTo, places.epoch) : null,
      searchedTo,
      ...(query.at === undefined ? {} : { position: places.upTo, head: places.head }),
    };
  }

  private async readPlaces({ at, cursor }: Query) {
    const { rows } = await this.pool
      .query<{ epoch: string; head: string }>(HEAD_SQL)
      .catch((error: unknown) => Promise.reject(translateDatabaseError(error)));
    const head = Number(rows[0]?.head ?? 0);
    const epoch = Number(rows[0]?.epoch ?? 1);
    checkEpoch(cursor, epoch);
    const upTo = requirePosition(at, head);
    return { head, epoch, upTo, from: positionOfCursor(cursor) ?? upTo };
  }

  private async searchEvents(
    { q, limit }: Query,
    kinds: readonly Kind[],
    principal: Principal,
    { upTo, from }: { readonly upTo: number; readonly from: number },
  ) {
    const words = wordsOf(q);
    const text = toTextQuery(words);
    const own = kinds.filter(isLogKind);
    if (text === null || own.length === 0) return { results: [], searchedTo: 0 };
    const { workspace } = principal;
    const search = { workspace, query: text, words, kinds: own, limit, upTo, from };
    const found = await searchLog(inWorkspace(this.pool, workspace), search, () => this.clock.now()).catch(
      (error: unknown) => Promise.reject(translateDatabaseError(error)),
    );
    const results = await this.access.filter(principal, found.results, ({ agentId }) => [agentId]);
    return { results, searchedTo: found.searchedTo };
  }

  /** Returns agents and files whose name or path has the text of the search. */
  private async findNames(
    { q, at }: Query,
    kinds: readonly Kind[],
    principal: Principal,
    { upTo }: { readonly upTo: number },
  ): Promise<SearchResult[]> {
    const { workspace, agentId: own } = principal;
    const agents = kinds.includes('agent') ? await this.findAgents(q, at, principal) : [];
    // The key of an agent reads no files: the agent has its file tools.
    if (!kinds.includes('file') || own !== null) return agents;
    const past = at === undefined ? {} : { position: upTo };
    const request = { workspace, q, recursive: true, limit: MAX_NAMES, chats: false, ...past };
    const { entries } = await this.requests.request(listFiles, request);
    const files = entries
      .filter(({ kind }) => kind === 'file')
      .map(({ path }) => ({ ...NAMED, kind: 'file' as const, id: path, title: path, agentId: null }));
    return [...agents, ...files];
  }

  private async findAgents(q: string, at: number | undefined, principal: Principal): Promise<SearchResult[]> {
    const { agents } = await this.requests.request(listAgents, { workspace: principal.workspace, at });
    const sought = q.toLowerCase();
    const found = agents.filter(({ id, name }) => `${id}\n${name}`.toLowerCase().includes(sought));
    const readable = await this.access.filter(principal, found, ({ id }) => [id]);
    return readable
      .slice(0, MAX_NAMES)
      .map(({ id, name }) => ({ ...NAMED, kind: 'agent', id, title: name, agentId: id }));
  }
}
