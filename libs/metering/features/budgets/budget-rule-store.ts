import type pg from 'pg';
import { acrossWorkspaces } from '@antiphon/database';
import { repeatEvery } from '@antiphon/kernel';
import type { PriceOf } from '@antiphon/metering-domain';
import type { Logger } from '@antiphon/observability';
import type { LimitsOf } from '../ledger/ledger-batch.js';

/** Time after which the rules of this process are written again, ms. */
const RENEW_MS = 20_000;
/** Time for which a row is used after it was written. */
const VALID = `interval '60 seconds'`;
/** Maximum rules that a process renews. */
const MAX_RULES = 10_000;

/** Name of a rule: a model that a workspace calls. */
interface RuleName {
  readonly workspace: string;
  readonly provider: string;
  readonly model: string;
  /** Kind of a provider that was connected at run time. */
  readonly providerKind?: string | undefined;
}

const AMOUNTS = [
  ...['input_price', 'output_price', 'cache_read_price', 'cache_write_price', 'cache_write_1h_price'],
  ...['session_tokens', 'session_micro_usd'],
  ...['day_tokens', 'day_micro_usd', 'month_tokens', 'month_micro_usd'],
];
const NAMES = ['workspace', 'provider', 'model'];
const COLUMNS = [...NAMES, ...AMOUNTS].join(', ');
const ARRAYS = [...NAMES.map(() => 'text[]'), ...AMOUNTS.map(() => 'bigint[]')];
const WRITE_SQL = `insert into budget_rules (${COLUMNS}, valid_until)
  select ${COLUMNS}, now() + ${VALID} from unnest(${ARRAYS.map((type, at) => `$${at + 1}::${type}`).join(', ')})
    as r (${COLUMNS}) order by ${NAMES.join(', ')}
  on conflict (${NAMES.join(', ')}) do update set valid_until = excluded.valid_until,
    ${AMOUNTS.map((name) => `${name} = excluded.${name}`).join(', ')}`;
/**
 * All rows, as some may be of an earlier configuration. Each process writes its own again: at once
 * for a call that metering admits, and otherwise at its next renewal.
 */
const CLEAR_SQL = 'delete from budget_rules';
const DELETE_OLD_SQL = `delete from budget_rules where valid_until < now() - interval '1 hour'`;

export interface BudgetRuleStoreDeps {
  readonly pool: pg.Pool;
  /** Limits of the configuration. */
  readonly configured: LimitsOf;
  readonly priceOf: PriceOf;
  readonly logger: Logger;
}

/**
 * Tells the database the limits and prices of the configuration, so that the commit of an agent can
 * admit a call (`antiphon_append_extended`). It writes a rule for each model that it admitted
 * itself, and renews it. Without a valid rule, agents send their requests to metering.
 */
export class BudgetRuleStore {
  /** The rules that this process renews, oldest first. */
  readonly #known = new Map<string, RuleName>();
  #isCleared = false;

  constructor(private readonly deps: BudgetRuleStoreDeps) {}

  /** Writes the rule of a model, once a process and kind. Resolves when it is written. */
  async remember({ workspace, provider, model, providerKind }: RuleName): Promise<void> {
    const name = { workspace, provider, model, providerKind };
    const key = `${workspace} ${provider} ${model}`;
    const known = this.#known.get(key);
    if (known !== undefined && known.providerKind === providerKind) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size >= MAX_RULES) this.#known.delete(oldest);
    this.#known.set(key, name);
    await this.#write([name]).catch((error: unknown) => {
      this.#known.delete(key);
      this.deps.logger.warn({ err: error }, 'budget rules not written');
    });
  }

  /** Removes the rules of earlier configurations, and renews its own until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    await repeatEvery(() => this.#renew(), RENEW_MS, signal);
  }

  async #renew(): Promise<void> {
    try {
      const queries = acrossWorkspaces(this.deps.pool);
      await queries.query(this.#isCleared ? DELETE_OLD_SQL : CLEAR_SQL);
      this.#isCleared = true;
      if (this.#known.size > 0) await this.#write([...this.#known.values()]);
    } catch (error) {
      this.deps.logger.warn({ err: error }, 'budget rules not written');
    }
  }

  async #write(rules: readonly RuleName[]): Promise<void> {
    const { configured, priceOf, pool } = this.deps;
    const rows = rules.map(({ workspace, provider, model, providerKind }) => {
      const price = priceOf(provider, model, providerKind);
      const limits = configured(workspace);
      return [
        ...[workspace, provider, model],
        ...[price?.inputMicroUsdPerMtok ?? null, price?.outputMicroUsdPerMtok ?? null],
        ...[price?.cacheReadMicroUsdPerMtok ?? null, price?.cacheWriteMicroUsdPerMtok ?? null],
        price?.cacheWrite1hMicroUsdPerMtok ?? null,
        ...[limits.session, limits.sessionMicroUsd, limits.daily, limits.dailyMicroUsd],
        ...[limits.monthly, limits.monthlyMicroUsd],
      ];
    });
    const values = ARRAYS.map((_, at) => rows.map((row) => row[at]));
    await acrossWorkspaces(pool).query({ name: 'budget_rules', text: WRITE_SQL, values });
  }
}
