import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import type { BreakerState } from '@antiphon/agent-domain';

export interface BreakerKey {
  readonly workspace: string;
  readonly provider: string;
}
export interface BreakerRow extends BreakerKey, BreakerState {
  /** Of the last failure that counted, ms since the epoch. */
  readonly failedAt: number;
}

/** Rows of providers in trouble, each change one statement. All times are the caller's, ms since the epoch. */
export interface BreakerStore {
  all(): Promise<readonly BreakerRow[]>;
  /** Counts a failure. Null when it does not count: the provider is paused, and the call was not its present trial. */
  fail(key: BreakerKey, failure: FailedCall): Promise<BreakerRow | null>;
  /** Takes the trial call of a provider whose pause is over; null when another has it, or the provider is closed or paused. */
  claimProbe(key: BreakerKey, probe: Probe): Promise<BreakerRow | null>;
  /** The trial call says nothing after all: another may be made at once. */
  giveUpProbe(key: BreakerKey, id: string): Promise<void>;
  /**
   * A call succeeded at `at`: forgets the failures before it, and, with the id of the present trial call, the pause.
   * Answers whether a pause ended.
   */
  succeed(key: BreakerKey, call: { at: number; probeId: string | null }): Promise<boolean>;
}

export interface Probe {
  readonly id: string;
  readonly now: number;
  readonly until: number;
  /** No pause ends later, unless another clock set it. */
  readonly pausedUntilAtMost: number;
}

export interface FailedCall {
  readonly now: number;
  readonly probeId: string | null;
  /** Failures after which the provider is paused, and until when. */
  readonly limit: number;
  readonly pauseUntil: number;
}

const MAX_ROWS = 1_000;
const ms = (column: string, name: string): string =>
  `round(extract(epoch from ${column}) * 1000)::float8 as "${name}"`;
const COLUMNS = `workspace, provider, failures, ${ms('failed_at', 'failedAt')}, ${ms('open_until', 'openUntil')}, ${ms('probe_until', 'probeUntil')}`;

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
const GIVE_UP_SQL = `update provider_breakers set probe_id = null, probe_until = null
  where workspace = $1 and provider = $2 and probe_id = $3`;
const SUCCEED_SQL = `delete from provider_breakers
  where workspace = $1 and provider = $2 and ((open_until is null and failed_at <= $3) or probe_id = $4::uuid)
  returning open_until is not null as paused`;

const at = (milliseconds: number): Date => new Date(milliseconds);

export const createBreakerStore = (pool: pg.Pool): BreakerStore => {
  const run = async <Row extends pg.QueryResultRow>(
    name: string,
    text: string,
    values: unknown[],
  ): Promise<Row[]> => {
    const query = pool.query<Row>({ name: `antiphon_breaker_${name}`, text, values });
    const { rows } = await query.catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    return rows;
  };
  return {
    all: () => run<BreakerRow>('all', ALL_SQL, []),
    fail: async ({ workspace, provider }, { now, probeId, limit, pauseUntil }) => {
      const values = [workspace, provider, at(now), probeId, limit, at(pauseUntil)];
      return (await run<BreakerRow>('fail', FAIL_SQL, values))[0] ?? null;
    },
    claimProbe: async ({ workspace, provider }, { id, now, until, pausedUntilAtMost }) => {
      const values = [workspace, provider, id, at(now), at(until), at(pausedUntilAtMost)];
      return (await run<BreakerRow>('claim', CLAIM_SQL, values))[0] ?? null;
    },
    giveUpProbe: async ({ workspace, provider }, id) => {
      await run('give_up', GIVE_UP_SQL, [workspace, provider, id]);
    },
    succeed: async ({ workspace, provider }, call) => {
      const values = [workspace, provider, at(call.at), call.probeId];
      return (await run<{ paused: boolean }>('succeed', SUCCEED_SQL, values))[0]?.paused ?? false;
    },
  };
};
