import type pg from 'pg';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import type { CircuitState } from '@antiphon/providers-domain';

export interface CircuitKey {
  readonly workspace: string;
  readonly provider: string;
}
export interface CircuitRow extends CircuitKey, CircuitState {
  /** Time of the last counted failure, ms since the epoch. */
  readonly failedAt: number;
}

export interface FailedCall {
  readonly now: number;
  /** Set for the trial call of a half-open circuit. */
  readonly trialId: string | null;
  /** Number of failures that opens the circuit. */
  readonly threshold: number;
  readonly openUntil: number;
}

export interface TrialCall {
  readonly id: string;
  readonly now: number;
  readonly until: number;
  /**
   * Latest `openUntil` that this process's clock could have set; a later one was set by another
   * clock.
   */
  readonly latestOpenUntil: number;
}

/**
 * Rows of failing providers, shared between processes. Each change is one statement. Times are ms
 * since the epoch.
 */
export interface CircuitStore {
  all(): Promise<readonly CircuitRow[]>;
  /**
   * Counts a failure. Returns null when it does not count: the circuit is open, and the call was
   * not its trial call.
   */
  fail(key: CircuitKey, failure: FailedCall): Promise<CircuitRow | null>;
  /**
   * Claims the trial call of a half-open circuit. Returns null when another call has it, or the
   * circuit is not half-open.
   */
  claimTrial(key: CircuitKey, trial: TrialCall): Promise<CircuitRow | null>;
  /** Releases the trial call without an outcome, so that another call can claim it at once. */
  releaseTrial(key: CircuitKey, id: string): Promise<void>;
  /**
   * Records a success at `at`: deletes the failures before it, and closes the circuit after a trial
   * call. The trial call may have taken so long that another one has begun. Returns whether an open
   * circuit was closed.
   */
  succeed(key: CircuitKey, call: { at: number; trialId: string | null }): Promise<boolean>;
}

const MAX_ROWS = 1_000;
const ms = (column: string, name: string): string =>
  `round(extract(epoch from ${column}) * 1000)::float8 as "${name}"`;
const COLUMNS = `workspace, provider, failures, ${ms('failed_at', 'failedAt')}, ${ms('open_until', 'openUntil')}, ${ms('probe_until', 'trialUntil')}`;

const ALL_SQL = `select ${COLUMNS} from provider_breakers order by workspace, provider limit ${MAX_ROWS}`;
const FAIL_SQL = `insert into provider_breakers as b (workspace, provider, failures, failed_at, open_until)
  values ($1, $2, 1, $3, case when $5::int <= 1 then $6::timestamptz end)
  on conflict (workspace, provider) do update set
    failures = b.failures + 1, failed_at = greatest(b.failed_at, excluded.failed_at),
    open_until = case when b.open_until is not null or b.failures + 1 >= $5::int then $6::timestamptz end,
    probe_id = null, probe_until = null
  where b.open_until is null or b.probe_id = $4::uuid
  returning ${COLUMNS}`;
const CLAIM_SQL = `update provider_breakers set probe_id = $3, probe_until = $5
  where workspace = $1 and provider = $2 and (open_until <= $4 or open_until > $6)
    and (probe_until is null or probe_until <= $4 or probe_until > $5)
  returning ${COLUMNS}`;
const RELEASE_SQL = `update provider_breakers set probe_id = null, probe_until = null
  where workspace = $1 and provider = $2 and probe_id = $3`;
const SUCCEED_SQL = `delete from provider_breakers
  where workspace = $1 and provider = $2 and ((open_until is null and failed_at <= $3) or $4::uuid is not null)
  returning open_until is not null as "wasOpen"`;

const at = (milliseconds: number): Date => new Date(milliseconds);

export const createCircuitStore = (pool: pg.Pool): CircuitStore => {
  const run = async <Row extends pg.QueryResultRow>(
    name: string,
    text: string,
    values: unknown[],
  ): Promise<Row[]> => {
    const query = acrossWorkspaces(pool).query<Row>({ name: `antiphon_breaker_${name}`, text, values });
    const { rows } = await query.catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    return rows;
  };
  return {
    all: () => run<CircuitRow>('all', ALL_SQL, []),
    fail: async ({ workspace, provider }, { now, trialId, threshold, openUntil }) => {
      const values = [workspace, provider, at(now), trialId, threshold, at(openUntil)];
      return (await run<CircuitRow>('fail', FAIL_SQL, values))[0] ?? null;
    },
    claimTrial: async ({ workspace, provider }, { id, now, until, latestOpenUntil }) => {
      const values = [workspace, provider, id, at(now), at(until), at(latestOpenUntil)];
      return (await run<CircuitRow>('claim', CLAIM_SQL, values))[0] ?? null;
    },
    releaseTrial: async ({ workspace, provider }, id) => {
      await run('give_up', RELEASE_SQL, [workspace, provider, id]);
    },
    succeed: async ({ workspace, provider }, call) => {
      const values = [workspace, provider, at(call.at), call.trialId];
      return (await run<{ wasOpen: boolean }>('succeed', SUCCEED_SQL, values))[0]?.wasOpen ?? false;
    },
  };
};
