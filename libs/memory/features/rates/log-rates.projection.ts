import { isTurnEnd } from '@antiphon/contracts/agent';
import { CATEGORIES } from '@antiphon/contracts/log';
import { translateDatabaseError } from '@antiphon/database';
import type { ProjectionDefinition, RecordedEvent } from '@antiphon/event-store';
import type pg from 'pg';

export const LOG_RATES = 'memory-log-rates';

/** Steps of the rows, seconds. The row of step 0 has the whole log. */
export const MINUTE = 60;
export const HOUR = 3_600;
const STEPS = [0, MINUTE, HOUR] as const;

/** Time for which rows of minutes and of hours answer reads. They are kept somewhat longer. */
export const MINUTES_KEPT = '25 hours';
export const HOURS_KEPT = '31 days';

/** Columns that events add to. */
export const COUNTS = [
  ...['events', 'turns', 'ended_turns', 'tasks', 'ended_tasks', 'failures'],
  ...['model_calls', 'tool_calls', 'input_tokens', 'output_tokens', 'micro_usd'],
] as const;
type Counts = Record<(typeof COUNTS)[number], number>;

const NOTHING = Object.fromEntries(COUNTS.map((name) => [name, 0])) as Counts;

type Fields = Readonly<Record<string, unknown>>;
const numberOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;

/** Counts that one event of a type adds, apart from itself. */
const ADDED: ReadonlyMap<string, (data: Fields) => Partial<Counts>> = new Map(
  Object.entries<(data: Fields) => Partial<Counts>>({
    TurnRequested: () => ({ turns: 1 }),
    TurnFailed: () => ({ failures: 1 }),
    TaskQueued: () => ({ tasks: 1 }),
    TaskEnded: ({ status }) => ({ ended_tasks: 1, failures: status === 'failed' ? 1 : 0 }),
    TaskFailed: () => ({ failures: 1 }),
    RunFailed: () => ({ failures: 1 }),
    AgentFailed: () => ({ failures: 1 }),
    AgentUnresponsive: () => ({ failures: 1 }),
    ModelCallStarted: () => ({ model_calls: 1 }),
    ToolCallRequested: () => ({ tool_calls: 1 }),
    BudgetSettled: ({ inputTokens, outputTokens, microUsd }) => ({
      ...{ input_tokens: numberOf(inputTokens), output_tokens: numberOf(outputTokens) },
      micro_usd: numberOf(microUsd),
    }),
    BudgetExpired: ({ microUsd }) => ({ micro_usd: numberOf(microUsd) }),
  }),
);

/** Counts of a workspace in a step. Its levels are changes since the beginning of the batch. */
interface Row extends Counts {
  readonly workspace: string;
  readonly step: number;
  readonly at: string;
  open_turns: number;
  open_tasks: number;
}

/** Returns the beginning of the step that a time is in. */
const beginOf = (time: number, step: number): string =>
  new Date(step === 0 ? 0 : Math.floor(time / (step * 1_000)) * step * 1_000).toISOString();

const countRows = (events: readonly RecordedEvent[]): Row[] => {
  const rows = new Map<string, Row>();
  const open = new Map<string, { turns: number; tasks: number }>();
  for (const { workspace, type, data, recordedAt } of events) {
    const added = ADDED.get(type)?.(data) ?? {};
    const ends = isTurnEnd(type) ? 1 : 0;
    const level = open.get(workspace) ?? { turns: 0, tasks: 0 };
    open.set(workspace, level);
    level.turns += (added.turns ?? 0) - ends;
    level.tasks += (added.tasks ?? 0) - (added.ended_tasks ?? 0);
    const time = new Date(recordedAt).getTime();
    for (const step of STEPS) {
      const at = beginOf(time, step);
      const key = `${workspace}\n${step}\n${at}`;
      const row = rows.get(key) ?? { ...NOTHING, workspace, step, at, open_turns: 0, open_tasks: 0 };
      rows.set(key, row);
      for (const [name, count] of Object.entries(added)) row[name as keyof Counts] += count;
      row.events++;
      row.ended_turns += ends;
      row.open_turns = level.turns;
      row.open_tasks = level.tasks;
    }
  }
  // In the order of their keys, so that two transactions never wait for each other.
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
};

const LEVELS = ['open_turns', 'open_tasks'] as const;
const SUMS = [...COUNTS, ...LEVELS];
const GIVEN = ['workspace', 'step', 'at', ...SUMS];
const TYPES = ['text', 'integer', 'timestamptz', ...SUMS.map(() => 'bigint')];
// The statement sees the levels of the rows of step 0 as they were before it.
const ADD_SQL = `insert into log_rates as r (${GIVEN.join(', ')})
  select n.workspace, n.step, n.at, ${COUNTS.map((name) => `n.${name}`).join(', ')},
    ${LEVELS.map((name) => `n.${name} + coalesce(w.${name}, 0)`).join(', ')}
  from unnest(${TYPES.map((type, index) => `$${index + 1}::${type}[]`).join(', ')}) as n (${GIVEN.join(', ')})
  left join log_rates w on w.workspace = n.workspace and w.step = 0 and w.at = 'epoch'
  order by n.workspace, n.step, n.at
  on conflict (workspace, step, at) do update set ${[
    ...COUNTS.map((name) => `${name} = r.${name} + excluded.${name}`),
    ...LEVELS.map((name) => `${name} = excluded.${name}`),
  ].join(', ')}`;

/** Counts events in `log_rates`: one statement for a batch, for each workspace a row of each step. */
export const countEvents = async (client: pg.ClientBase, events: readonly RecordedEvent[]): Promise<void> => {
  const rows = countRows(events);
  if (rows.length === 0) return;
  const values = [
    ...[rows.map(({ workspace }) => workspace), rows.map(({ step }) => step), rows.map(({ at }) => at)],
    ...SUMS.map((name) => rows.map((row) => row[name as keyof Counts])),
  ];
  await client.query({ name: 'log_rates_add', text: ADD_SQL, values }).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
};

/** SQL condition: rows that may be deleted, or are. */
export const outOfTime = (minutes: string, hours: string): string =>
  `(step = ${MINUTE} and at < now() - interval '${minutes}') or (step = ${HOUR} and at < now() - interval '${hours}')`;

/** Counts of each workspace by minute and by hour, for charts of rates. */
export const logRates: ProjectionDefinition = {
  name: LOG_RATES,
  service: 'memory',
  categories: CATEGORIES,
  tables: [{ name: 'log_rates', ignoredRows: outOfTime('24 hours', '30 days') }],
  handle: countEvents,
};
