import { v5 } from 'uuid';
import type pg from 'pg';
import { budgetLimitStream } from '@antiphon/contracts/metering';
import type { BudgetScope, SetBudgetLimitRequest } from '@antiphon/contracts/metering';
import { acrossWorkspaces, inTransaction, inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { WorkspaceQueries } from '@antiphon/database';
import type { EventStorePg } from '@antiphon/event-store';
import { bug, createBoundedMap, isoTime, repeatEvery } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { agentScope, agentScopeKey } from '@antiphon/metering-domain';
import type { AgentLimits } from '@antiphon/metering-domain';
import { currentContext } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';

/** Namespace of the ids of event streams of limits. */
const NAMESPACE = '5b0e0a0e-7a53-5f7e-9d0f-4f1a7c1f2b60';
/** Time after which a process has read the changes of the others, ms. */
const REFRESH_MS = 500;
/** Time after which the audit finds a call that was admitted by the former limits, ms. */
const APPLIES_MS = 5_000;
/** Maximum agents in the cache, with and without a limit. */
const MAX_AGENTS = 50_000;

interface LimitRow {
  readonly workspace: string;
  readonly scope_key: string;
  readonly limit_tokens: string | null;
  readonly limit_micro_usd: string | null;
  readonly position: string;
}

const COLUMNS = 'workspace, scope_key, limit_tokens, limit_micro_usd, position';
const OF_AGENTS_SQL = `select ${COLUMNS} from budget_limits where workspace = $1 and scope_key = any ($2)`;
const CHANGED_SQL = `select ${COLUMNS} from budget_limits where position > $1`;
const HEAD_SQL = 'select coalesce(max(position), 0) as position from budget_limits';
const CREATE_SQL = `insert into budget_limits (workspace, scope_key, position) values ($1, $2, 0) on conflict do nothing`;
const LOCK_SQL = `select ${COLUMNS} from budget_limits where workspace = $1 and scope_key = $2 for update`;

/** Stores the limits of a `BudgetLimitSet` at its position, unless a later one is stored. */
export const WRITE_LIMIT_SQL = `insert into budget_limits as l (${COLUMNS}) values ($1, $2, $3, $4, $5)
  on conflict (workspace, scope_key) do update set limit_tokens = excluded.limit_tokens,
    limit_micro_usd = excluded.limit_micro_usd, position = excluded.position
  where l.position < excluded.position`;

const isoAt = (time: number): string => isoTime({ now: () => time });
const numberOf = (text: string | null): number | null => (text === null ? null : Number(text));
const limitsOf = (row: LimitRow): AgentLimits => ({
  limitTokens: numberOf(row.limit_tokens),
  limitMicroUsd: numberOf(row.limit_micro_usd),
});
const NO_LIMITS: AgentLimits = { limitTokens: null, limitMicroUsd: null };
const nameOf = (workspace: string, scopeKey: string): string => `${workspace} ${scopeKey}`;
const hasLimit = ({ limitTokens, limitMicroUsd }: AgentLimits): boolean =>
  limitTokens !== null || limitMicroUsd !== null;

/** Reads the scopes of the agents that have a limit, in the order of `agentIds`. */
export const readAgentScopes = async (
  queries: WorkspaceQueries,
  workspace: string,
  agentIds: readonly string[],
): Promise<readonly BudgetScope[]> => {
  const values = [workspace, agentIds.map(agentScopeKey)];
  const { rows } = await queries.query<LimitRow>({ name: 'budget_limits_of', text: OF_AGENTS_SQL, values });
  const found = new Map(rows.map((row) => [row.scope_key, limitsOf(row)]));
  return agentIds.flatMap((id) => {
    const limits = found.get(agentScopeKey(id));
    return limits && hasLimit(limits) ? [agentScope(id, limits)] : [];
  });
};

export interface AgentLimitsDeps {
  readonly pool: pg.Pool;
  readonly store: EventStorePg;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
}

/**
 * Limits of agents. The limit of a root is the budget of a tree. The rows are read once for an
 * agent that this process has not seen. So an agent whose limit is set before its spawn never calls
 * without it. Later changes by other processes are read every 500 ms (`follow`).
 */
export class AgentLimitBook {
  /** Null for an agent without limits. */
  readonly #known = createBoundedMap<AgentLimits | null>(MAX_AGENTS);
  /** Position up to which the changes of all processes are in the cache; set by `#start`. */
  #position = 0;
  #started: Promise<void> | undefined;

  constructor(private readonly deps: AgentLimitsDeps) {}

  /** Returns the scopes of the agents that have a limit, in the order of `agentIds`. */
  async scopesOf(workspace: string, agentIds: readonly string[]): Promise<readonly BudgetScope[]> {
    if (agentIds.some((id) => this.#limits(workspace, id) === undefined))
      await this.#load(workspace, agentIds);
    return agentIds.flatMap((id) => {
      const limits = this.#limits(workspace, id);
      return limits ? [agentScope(id, limits)] : [];
    });
  }

  /** Commits the limits of an agent as a fact. Returns false if they were in force already. */
  async set(request: SetBudgetLimitRequest): Promise<boolean> {
    const { workspace, agentId } = request;
    const scopeKey = agentScopeKey(agentId);
    const limits = { limitTokens: request.limitTokens, limitMicroUsd: request.limitMicroUsd };
    const isChanged = await inTransaction(
      this.deps.pool,
      (client) => this.#commit(client, request, scopeKey),
      workspace,
    );
    if (isChanged) this.deps.store.notifyAppended();
    this.#cache(workspace, scopeKey, limits);
    return isChanged;
  }

  /** Reads the changes of other processes until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    let isFailing = false;
    const refresh = async (): Promise<void> => {
      try {
        await this.#refresh();
        isFailing = false;
      } catch (error) {
        // Once an outage, not twice a second.
        if (!isFailing) this.deps.logger.warn({ err: error }, 'budget limits refresh failed');
        isFailing = true;
      }
    };
    await repeatEvery(refresh, REFRESH_MS, signal);
  }

  #limits(workspace: string, agentId: string): AgentLimits | null | undefined {
    return this.#known.get(nameOf(workspace, agentScopeKey(agentId)));
  }

  async #load(workspace: string, agentIds: readonly string[]): Promise<void> {
    // First the position, so that no change after it is missed.
    await this.#start();
    const keys = agentIds.map(agentScopeKey);
    const { rows } = await inWorkspace(this.deps.pool, workspace)
      .query<LimitRow>({ name: 'budget_limits_of', text: OF_AGENTS_SQL, values: [workspace, keys] })
      .catch((error: unknown) => {
        throw translateDatabaseError(error);
      });
    const found = new Map(rows.map((row) => [row.scope_key, limitsOf(row)]));
    for (const key of keys) {
      // A change that came during the query is newer.
      if (this.#known.get(nameOf(workspace, key)) === undefined)
        this.#cache(workspace, key, found.get(key) ?? NO_LIMITS);
    }
  }

  #cache(workspace: string, scopeKey: string, limits: AgentLimits): void {
    this.#known.put(nameOf(workspace, scopeKey), hasLimit(limits) ? limits : null);
  }

  #start(): Promise<void> {
    this.#started ??= this.#read(HEAD_SQL).then(
      ([row]) => void (this.#position = Number(row?.position ?? 0)),
      (error: unknown) => {
        this.#started = undefined;
        throw error;
      },
    );
    return this.#started;
  }

  async #refresh(): Promise<void> {
    await this.#start();
    const rows = await this.#read(CHANGED_SQL, [this.#position]);
    for (const row of rows) this.#cache(row.workspace, row.scope_key, limitsOf(row));
    this.#position = Math.max(this.#position, ...rows.map(({ position }) => Number(position)));
  }

  async #read(text: string, values: unknown[] = []): Promise<LimitRow[]> {
    try {
      return (await acrossWorkspaces(this.deps.pool).query<LimitRow>(text, values)).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  async #commit(client: pg.ClientBase, request: SetBudgetLimitRequest, scopeKey: string): Promise<boolean> {
    const { workspace, limitTokens, limitMicroUsd, actor } = request;
    await client.query(CREATE_SQL, [workspace, scopeKey]);
    const { rows } = await client.query<LimitRow>(LOCK_SQL, [workspace, scopeKey]);
    const before = rows[0] ? limitsOf(rows[0]) : NO_LIMITS;
    if (before.limitTokens === limitTokens && before.limitMicroUsd === limitMicroUsd) return false;
    const { clock, ids, store } = this.deps;
    const now = clock.now();
    const times = { at: isoAt(now), appliesBy: isoAt(now + APPLIES_MS) };
    const data = { scopeKey, limitTokens, limitMicroUsd, actor, ...times };
    const context = currentContext();
    const metadata = {
      correlationId: context?.correlationId ?? ids.next(),
      ...(context?.causationId === undefined ? {} : { causationId: context.causationId }),
      ...(context === undefined ? {} : { traceparent: context.traceparent }),
      service: 'metering',
    };
    const fact = { eventId: ids.next(), type: 'BudgetLimitSet', schemaVersion: 1, data, metadata };
    const streamId = budgetLimitStream(v5(nameOf(workspace, scopeKey), NAMESPACE));
    const [outcome] = await store.appendWithin(client, [
      { workspace, streams: [{ streamId, expectedVersion: 'any', events: [fact] }] },
    ]);
    if (!outcome?.ok) throw outcome?.error ?? bug('METERING.NO_OUTCOME', 'an append has no outcome');
    const { lastPosition } = outcome.result;
    await client.query(WRITE_LIMIT_SQL, [workspace, scopeKey, limitTokens, limitMicroUsd, lastPosition]);
    return true;
  }
}
