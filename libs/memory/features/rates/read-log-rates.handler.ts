import { Controller, Inject } from '@nestjs/common';
import { RATE_SPANS, readLogRates, type RateBucket } from '@antiphon/contracts/log';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { requirePosition } from '@antiphon/event-store';
import { HandleRequest } from '@antiphon/messaging';
import { DATABASE_POOL } from '@antiphon/service-host';
import type pg from 'pg';
import type { z } from 'zod';
import { FollowLogRates } from './follow-log-rates.js';
import { COUNTS, HOUR, MINUTE } from './log-rates.projection.js';

type Request = z.output<typeof readLogRates.request>;
type Reply = z.input<typeof readLogRates.reply>;

const HOUR_MS = HOUR * 1_000;
/** Age up to which minutes are read. They are kept for an hour more. */
const MINUTES_MS = 24 * HOUR_MS + 600_000;

/** The time of the read, and of the database. A position before the first event has none. */
const TIME_SQL = `select now() as now, case when $2::bigint is null then now() else (select recorded_at from events
    where workspace = $1 and position <= $2 order by position desc limit 1) end as until`;

const camel = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

/**
 * Adds up minutes or hours. As of a time, a row counts once it had ended. The hour of that time has
 * not, but its minutes have.
 */
const BUCKETS_SQL = `select to_timestamp(floor(extract(epoch from at) / $2) * $2) as started,
    ${COUNTS.map((name) => `sum(${name})::float8 as "${camel(name)}"`).join(', ')},
    ((array_agg(open_turns order by at desc))[1])::float8 as "openTurns",
    ((array_agg(open_tasks order by at desc))[1])::float8 as "openTasks"
  from log_rates where workspace = $1 and at >= $4
    and ((step = $3 and at + make_interval(secs => step) <= $5)
      or (step = ${MINUTE} and $3 = ${HOUR} and at >= date_trunc('hour', $5::timestamptz, 'UTC')
        and at + make_interval(secs => step) <= $5))
  group by 1 order by 1`;

/** Returns the levels before the first row from a time on; those of the whole log without one. */
const LEVELS_SQL = `select open_turns::float8 as turns, open_tasks::float8 as tasks from (
    (select 1 as nth, open_turns - turns + ended_turns as open_turns, open_tasks - tasks + ended_tasks as open_tasks
      from log_rates where workspace = $1 and step = $2 and at >= $3 order by at limit 1)
    union all select 2, open_turns, open_tasks from log_rates where workspace = $1 and step = 0) found
  order by nth limit 1`;

type Row = Omit<RateBucket, 'at'> & { readonly started: Date };
type Levels = Reply['openBefore'];

/** Steps of a read: those of its span, or hours where the minutes were deleted. */
interface Steps {
  readonly step: number;
  readonly since: Date;
  /** Step of the rows that are added up. */
  readonly rows: number;
}

const stepsOf = (span: Request['span'], now: Date, until: Date): Steps => {
  const { step, steps } = RATE_SPANS[span];
  const sinceOf = (stepMs: number, count: number): Date =>
    new Date((Math.floor(until.getTime() / stepMs) - count + 1) * stepMs);
  const since = sinceOf(step * 1_000, steps);
  if (step >= HOUR) return { step, since, rows: HOUR };
  if (now.getTime() - since.getTime() <= MINUTES_MS) return { step, since, rows: MINUTE };
  const hours = Math.ceil((step * steps) / HOUR) + 1;
  return { step: HOUR, since: sinceOf(HOUR_MS, hours), rows: HOUR };
};

/** Returns how many events, turns, tokens and failures a workspace had in each step of a time. */
@Controller()
export class ReadLogRates {
  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(FollowLogRates) private readonly projection: Pick<FollowLogRates, 'followHead'>,
  ) {}

  @HandleRequest(readLogRates)
  async handle({ workspace, span, at }: Request): Promise<Reply> {
    const head = await this.projection.followHead();
    const asOf = at === undefined ? {} : { position: requirePosition(at, head), head };
    const queries = inWorkspace(this.pool, workspace);
    try {
      const times = await queries.query<{ now: Date; until: Date | null }>(TIME_SQL, [workspace, at ?? null]);
      const { now = new Date(), until: known = null } = times.rows[0] ?? {};
      const until = known ?? new Date(0);
      const { step, since, rows } = stepsOf(span, now, until);
      // The current step is shown as far as it has come.
      const end = at === undefined ? 'infinity' : until;
      const [buckets, levels] = await Promise.all([
        queries.query<Row>(BUCKETS_SQL, [workspace, step, rows, since, end]),
        queries.query<Levels>(LEVELS_SQL, [workspace, rows, since]),
      ]);
      return {
        ...{ span, step, since: since.toISOString(), until: until.toISOString() },
        buckets: buckets.rows.map(({ started, ...counts }) => ({ at: started.toISOString(), ...counts })),
        openBefore: levels.rows[0] ?? { turns: 0, tasks: 0 },
        ...asOf,
      };
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
