import { v5 } from 'uuid';
import type pg from 'pg';
import { WORKSPACE_SCOPES, budgetLimitStream } from '@antiphon/contracts/metering';
import type { BudgetScope, SetBudgetLimitRequest, WorkspaceScope } from '@antiphon/contracts/metering';
import { acrossWorkspaces, inTransaction, inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { WorkspaceQueries } from '@antiphon/database';
import type { EventStorePg } from '@antiphon/event-store';
import { bug, createBoundedMap, isoTime, repeatEvery } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { agentScope, agentScopeKey, limitsInForce } from '@antiphon/metering-domain';
import type { BudgetLimits, ScopeLimits, SetLimits } from '@antiphon/metering-domain';
import type { Logger } from '@antiphon/observability';
import { metadataNow } from '../ledger/ledger.js';
import type { LimitsOf } from '../ledger/ledger-batch.js';

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
  /** False for a workspace scope whose limits were removed: those of the configuration apply. */
  readonly is_set: boolean;
}

const COLUMNS = 'workspace, scope_key, limit_tokens, limit_micro_usd, position, is_set';
const OF_SCOPES_SQL = `select ${COLUMNS} from budget_limits where workspace = $1 and scope_key = any ($2)`;
const CHANGED_SQL = `select ${COLUMNS} from budget_limits where position > $1`;
const HEAD_SQL = 'select coalesce(max(position), 0) as position from budget_limits';
const CREATE_SQL = `insert into budget_limits (workspace, scope_key, position, is_set) values ($1, $2, 0, false)
  on conflict do nothing`;
const LOCK_SQL = `select ${COLUMNS} from budget_limits where workspace = $1 and scope_key = $2 for update`;

/** Stores the limits of a fact at its position, unless a later one is stored. `$6`: set or removed. */
export const WRITE_LIMIT_SQL = `insert into budget_limits as l (${COLUMNS}) values ($1, $2, $3, $4, $5, $6)
  on conflict (workspace, scope_key) do update set limit_tokens = excluded.limit_tokens,
    limit_micro_usd = excluded.limit_micro_usd, position = excluded.position, is_set = excluded.is_set
  where l.position < excluded.position`;

const isoAt = (time: number): string => isoTime({ now: () => time });
const numberOf = (text: string | null): number | null => (text === null ? null : Number(text));
const toLimits = (row: LimitRow): ScopeLimits => ({
  limitTokens: numberOf(row.limit_tokens),
  limitMicroUsd: numberOf(row.limit_micro_usd),
});
const NO_LIMITS: ScopeLimits = { limitTokens: null, limitMicroUsd: null };
const nameOf = (workspace: string, scopeKey: string): string => `${workspace} ${scopeKey}`;
const hasLimit = ({ limitTokens, limitMicroUsd }: ScopeLimits): boolean =>
  limitTokens !== null || limitMicroUsd !== null;
const isWorkspaceScope = (key: string): key is WorkspaceScope =>
  (WORKSPACE_SCOPES as readonly string[]).includes(key);

const readRows = async (
  queries: WorkspaceQueries,
  workspace: string,
  keys: readonly string[],
): Promise<readonly LimitRow[]> => {
  const statement = { name: 'budget_limits_of', text: OF_SCOPES_SQL, values: [workspace, keys] };
  return (await queries.query<LimitRow>(statement)).rows;
};

/** Change of the limits of one scope. */
interface LimitChange extends ScopeLimits {
  readonly workspace: string;
  readonly scopeKey: string;
  /** False: the limits set at run time are removed. */
  readonly isSet: boolean;
  readonly actor: string;
}

interface CommittedLimits {
  readonly isChanged: boolean;
  /** Position of the fact in force. */
  readonly position: number;
}

/** Reads the scopes of the agents that have a limit, in the order of `agentIds`. */
export const readAgentScopes = async (
  queries: WorkspaceQueries,
  workspace: string,
  agentIds: readonly string[],
): Promise<readonly BudgetScope[]> => {
  const rows = await readRows(queries, workspace, agentIds.map(agentScopeKey));
  const found = new Map(rows.map((row) => [row.scope_key, toLimits(row)]));
  return agentIds.flatMap((id) => {
    const limits = found.get(agentScopeKey(id));
    return limits && hasLimit(limits) ? [agentScope(id, limits)] : [];
  });
};

/** Maximum number of agents whose budgets a list has. */
const MAX_LISTED = 500;
const AGENTS_SQL = `select scope_key from budget_limits where workspace = $1 and starts_with(scope_key, $2)
  and (limit_tokens is not null or limit_micro_usd is not null) order by scope_key limit ${MAX_LISTED}`;

/** Lists the agents that have a limit. */
export const listLimitedAgents = async (
  queries: WorkspaceQueries,
  workspace: string,
): Promise<readonly string[]> => {
  const prefix = agentScopeKey('');
  const { rows } = await queries.query<Pick<LimitRow, 'scope_key'>>(AGENTS_SQL, [workspace, prefix]);
  return rows.map(({ scope_key: key }) => key.slice(prefix.length));
};

/** Reads the limits of workspace scopes that were set at run time. */
export const readSetLimits = async (queries: WorkspaceQueries, workspace: string): Promise<SetLimits> =>
  new Map(
    (await readRows(queries, workspace, WORKSPACE_SCOPES))
      .filter((row) => row.is_set)
      .map((row) => [row.scope_key as WorkspaceScope, toLimits(row)]),
  );

/** Limits of a scope in the cache, as of the position of their fact. */
interface KnownLimits {
  /** Null for an agent without limits, or a workspace scope with those of the configuration. */
  readonly limits: ScopeLimits | null;
  readonly position: number;
}

const toKnown = (key: string, limits: ScopeLimits, isSet: boolean, position: number): KnownLimits => {
  const isLimited = isWorkspaceScope(key) ? isSet : hasLimit(limits);
  return { limits: isLimited ? limits : null, position };
};
const knownOf = (row: LimitRow): KnownLimits =>
  toKnown(row.scope_key, toLimits(row), row.is_set, Number(row.position));

export interface BudgetLimitStoreDeps {
  /** Limits of the configuration. */
  readonly configured: LimitsOf;
  readonly pool: pg.Pool;
  readonly store: EventStorePg;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
}

/**
 * Limits of agents and of workspaces. The limit of a root is the budget of a tree. The rows are
 * read once for an agent or a workspace that this process has not seen. So an agent whose limit is
 * set before its spawn never calls without it. Later changes by other processes are read every
 * 500 ms (`follow`).
 */
export class BudgetLimitStore {
  readonly #agents = createBoundedMap<KnownLimits>(MAX_AGENTS);
  /** One entry for each workspace and scope. */
  readonly #workspaces = new Map<string, KnownLimits>();
  /** Position up to which the changes of all processes are in the cache; set by `#start`. */
  #position = 0;
  #started: Promise<void> | undefined;

  constructor(private readonly deps: BudgetLimitStoreDeps) {}

  /**
   * Returns the scopes of the agents that have a limit, in the order of `agentIds`. `limitsOf` then
   * knows the limits of the workspace.
   */
  async scopesOf(workspace: string, agentIds: readonly string[]): Promise<readonly BudgetScope[]> {
    const keys = [...agentIds.map(agentScopeKey), ...WORKSPACE_SCOPES];
    if (keys.some((key) => this.#cached(workspace, key) === undefined)) await this.#load(workspace, keys);
    return agentIds.flatMap((id) => {
      const limits = this.#cached(workspace, agentScopeKey(id))?.limits;
      return limits ? [agentScope(id, limits)] : [];
    });
  }

  /** Returns the limits in force of a workspace: after `scopesOf` with those set at run time. */
  limitsOf(workspace: string): BudgetLimits {
    return this.merge(workspace, this.#setLimits(workspace));
  }

  /** Returns the limits of a workspace that were set at run time. */
  async readSetLimits(workspace: string): Promise<SetLimits> {
    await this.scopesOf(workspace, []);
    return this.#setLimits(workspace);
  }

  /** Returns the limits of the configuration with those set at run time in their place. */
  merge(workspace: string, set: SetLimits): BudgetLimits {
    return limitsInForce(this.deps.configured(workspace), set);
  }

  /** Commits limits as a fact. Returns false if they were in force already. */
  async set(request: SetBudgetLimitRequest): Promise<boolean> {
    const { workspace } = request;
    const scopeKey = 'agentId' in request ? agentScopeKey(request.agentId) : request.scope;
    const isSet = 'agentId' in request || request.isRemoved !== true;
    const limits = isSet
      ? { limitTokens: request.limitTokens, limitMicroUsd: request.limitMicroUsd }
      : NO_LIMITS;
    const change = { workspace, scopeKey, isSet, ...limits, actor: request.actor };
    const commit = (client: pg.ClientBase): Promise<CommittedLimits> => this.#commit(client, change);
    const { isChanged, position } = await inTransaction(this.deps.pool, commit, workspace);
    if (isChanged) this.deps.store.notifyAppended('budget');
    this.#cache(workspace, scopeKey, toKnown(scopeKey, limits, isSet, position));
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

  #setLimits(workspace: string): SetLimits {
    const set = WORKSPACE_SCOPES.flatMap((scope) => {
      const limits = this.#workspaces.get(nameOf(workspace, scope))?.limits;
      return limits ? [[scope, limits] as const] : [];
    });
    return new Map(set);
  }

  #cached(workspace: string, scopeKey: string): KnownLimits | undefined {
    const name = nameOf(workspace, scopeKey);
    return isWorkspaceScope(scopeKey) ? this.#workspaces.get(name) : this.#agents.get(name);
  }

  async #load(workspace: string, keys: readonly string[]): Promise<void> {
    // First the position, so that no change after it is missed.
    await this.#start();
    const queries = inWorkspace(this.deps.pool, workspace);
    const rows = await readRows(queries, workspace, keys).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    const found = new Map(rows.map((row) => [row.scope_key, row]));
    for (const key of keys) {
      const row = found.get(key);
      this.#cache(workspace, key, row ? knownOf(row) : { limits: null, position: 0 });
    }
  }

  /** Keeps what is in the cache already if that is of a later fact. */
  #cache(workspace: string, scopeKey: string, known: KnownLimits): void {
    const cached = this.#cached(workspace, scopeKey);
    if (cached && cached.position > known.position) return;
    const name = nameOf(workspace, scopeKey);
    if (isWorkspaceScope(scopeKey)) this.#workspaces.set(name, known);
    else this.#agents.put(name, known);
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
    for (const row of rows) this.#cache(row.workspace, row.scope_key, knownOf(row));
    this.#position = Math.max(this.#position, ...rows.map(({ position }) => Number(position)));
  }

  async #read(text: string, values: unknown[] = []): Promise<LimitRow[]> {
    try {
      return (await acrossWorkspaces(this.deps.pool).query<LimitRow>(text, values)).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  async #commit(client: pg.ClientBase, change: LimitChange): Promise<CommittedLimits> {
    const { workspace, scopeKey, isSet, limitTokens, limitMicroUsd } = change;
    await client.query(CREATE_SQL, [workspace, scopeKey]);
    const { rows } = await client.query<LimitRow>(LOCK_SQL, [workspace, scopeKey]);
    const before = rows[0] ? toLimits(rows[0]) : NO_LIMITS;
    const isSame = before.limitTokens === limitTokens && before.limitMicroUsd === limitMicroUsd;
    // An agent without a row has no limit. A workspace scope without one has its configured limit.
    if (isSame && (!isWorkspaceScope(scopeKey) || (rows[0]?.is_set ?? false) === isSet))
      return { isChanged: false, position: Number(rows[0]?.position ?? 0) };
    const { ids, store } = this.deps;
    const eventId = ids.next();
    const fact = { eventId, ...this.#factOf(change), schemaVersion: 1, metadata: metadataNow(ids) };
    const streamId = budgetLimitStream(v5(nameOf(workspace, scopeKey), NAMESPACE));
    const [outcome] = await store.appendWithin(client, [
      { workspace, streams: [{ streamId, expectedVersion: 'any', events: [fact] }] },
    ]);
    if (!outcome?.ok) throw outcome?.error ?? bug('METERING.NO_OUTCOME', 'an append has no outcome');
    const { lastPosition } = outcome.result;
    const row = [workspace, scopeKey, limitTokens, limitMicroUsd, lastPosition, isSet];
    await client.query(WRITE_LIMIT_SQL, row);
    return { isChanged: true, position: lastPosition };
  }

  #factOf({ scopeKey, isSet, limitTokens, limitMicroUsd, actor }: LimitChange) {
    const now = this.deps.clock.now();
    const times = { actor, at: isoAt(now), appliesBy: isoAt(now + APPLIES_MS) };
    if (!isSet) return { type: 'BudgetLimitRemoved', data: { scopeKey, ...times } };
    return { type: 'BudgetLimitSet', data: { scopeKey, limitTokens, limitMicroUsd, ...times } };
  }
}
