import { upcast } from '@antiphon/contracts/events';
import { BudgetEvent } from '@antiphon/contracts/metering';
import { translateDatabaseError } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';
import { reservationDecider, type Reservation } from '@antiphon/metering-domain';
import type { TokenUsage } from '@antiphon/kernel';
import type pg from 'pg';

/** Columns of the sums of the reservations of one agent, model, key and day. */
const SUMS = [
  ...['calls', 'charged_tokens', 'charged_micro_usd', 'reserved_tokens', 'reserved_micro_usd'],
  ...['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens'],
  ...['estimated_tokens', 'estimated_micro_usd'],
] as const;
type Usage = Readonly<Record<(typeof SUMS)[number], number>>;

interface Group {
  readonly workspace: string;
  readonly agentId: string;
  readonly rootId: string;
  /** Provider and model. */
  readonly model: string;
  readonly caller: string;
  readonly day: string;
}

/** Tokens of a reservation's last charge. */
interface Charge {
  readonly usage: TokenUsage;
  readonly isEstimated: boolean;
}

/** Reservation with its last charge, if there is one. */
interface Account {
  readonly reservation: Reservation;
  readonly charge: Charge | null;
}

const NO_ACCOUNT: Account = { reservation: reservationDecider.initialState(), charge: null };

const chargeAfter = (before: Account, event: BudgetEvent): Charge | null => {
  const { reservation } = before;
  if (event.type === 'BudgetSettled') return { usage: event.data, isEstimated: event.data.estimated };
  if (event.type === 'BudgetCorrected') return { usage: event.data, isEstimated: false };
  if (event.type !== 'BudgetExpired' || reservation.status === 'none') return before.charge;
  const { inputBound, outputBound } = reservation.reserved;
  return { usage: { inputTokens: inputBound, outputTokens: outputBound }, isEstimated: true };
};

const applyEvent = (account: Account, event: BudgetEvent): Account => ({
  reservation: reservationDecider.evolve(account.reservation, event),
  charge: chargeAfter(account, event),
});

/** Reservation with its events of a batch. */
interface Touched {
  readonly workspace: string;
  readonly streamId: string;
  readonly firstPosition: number;
  readonly events: BudgetEvent[];
}

const TYPES: ReadonlySet<string> = new Set([
  ...['BudgetReserved', 'BudgetSettled', 'BudgetReleased', 'BudgetExpired', 'BudgetCorrected'],
]);

const NOTHING = Object.fromEntries(SUMS.map((name) => [name, 0])) as Usage;

const usageOf = ({ reservation, charge }: Account): Usage => {
  if (reservation.status === 'none') return NOTHING;
  if (reservation.status === 'reserved') {
    const { tokens, microUsd } = reservation.reserved;
    return { ...NOTHING, calls: 1, reserved_tokens: tokens, reserved_micro_usd: microUsd };
  }
  const { tokens, microUsd } = reservation.charged;
  const charged = { ...NOTHING, calls: 1, charged_tokens: tokens, charged_micro_usd: microUsd };
  if (charge === null) return charged;
  const { usage, isEstimated } = charge;
  return {
    ...charged,
    ...{ input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
    ...{ cache_read_tokens: usage.cacheReadTokens ?? 0, cache_write_tokens: usage.cacheWriteTokens ?? 0 },
    ...(isEstimated ? { estimated_tokens: tokens, estimated_micro_usd: microUsd } : {}),
  };
};

const combine = (a: Usage, b: Usage, sign: 1 | -1): Usage =>
  Object.fromEntries(SUMS.map((name) => [name, a[name] + sign * b[name]])) as Usage;

type Reserved = Exclude<Reservation, { status: 'none' }>['reserved'];

const groupOf = (workspace: string, reserved: Reserved): Group => ({
  workspace,
  agentId: reserved.agentId,
  rootId: reserved.agents?.at(-1) ?? reserved.agentId,
  model: `${reserved.provider}/${reserved.model}`,
  caller: reserved.caller ?? 'unknown',
  day: reserved.reservedAt.slice(0, 10),
});

const keyOf = (group: Group): string => JSON.stringify(Object.values(group));

const touch = (events: readonly RecordedEvent[]): Touched[] => {
  const touched = new Map<string, Touched>();
  for (const event of events) {
    if (!TYPES.has(event.type)) continue;
    const { workspace, streamId, position } = event;
    const key = `${workspace}\n${streamId}`;
    const one = touched.get(key) ?? { workspace, streamId, firstPosition: position, events: [] };
    one.events.push(BudgetEvent.parse(upcast(event)));
    touched.set(key, one);
  }
  return [...touched.values()];
};

const EARLIER_SQL = `select e.workspace, e.stream_id, e.type, e.schema_version, e.data
  from unnest($1::text[], $2::text[], $3::bigint[]) as k (workspace, stream_id, first)
  cross join lateral (select * from events e where e.workspace = k.workspace and e.stream_id = k.stream_id
    and e.position < k.first order by e.stream_version) e`;

interface EarlierRow {
  readonly workspace: string;
  readonly stream_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: RecordedEvent['data'];
}

/** Returns reservations before a batch, from their events in the log. */
const statesBefore = async (
  client: pg.ClientBase,
  touched: readonly Touched[],
): Promise<ReadonlyMap<string, Account>> => {
  const states = new Map<string, Account>();
  const begun = touched.filter(({ events }) => events[0]?.type !== 'BudgetReserved');
  if (begun.length === 0) return states;
  const { rows } = await client.query<EarlierRow>({
    ...{ name: 'budget_usage_earlier', text: EARLIER_SQL },
    values: [
      begun.map(({ workspace }) => workspace),
      begun.map(({ streamId }) => streamId),
      begun.map(({ firstPosition }) => firstPosition),
    ],
  });
  for (const row of rows) {
    if (!TYPES.has(row.type)) continue;
    const { type, schema_version: schemaVersion, data } = row;
    const event = BudgetEvent.parse(upcast({ type, schemaVersion, data }));
    const key = `${row.workspace}\n${row.stream_id}`;
    states.set(key, applyEvent(states.get(key) ?? NO_ACCOUNT, event));
  }
  return states;
};

const NAMES = ['workspace', 'agent_id', 'root_id', 'model', 'caller', 'day'];
const GIVEN = [...NAMES, ...SUMS].join(', ');
const ARRAYS = [...NAMES.map(() => 'text[]'), ...SUMS.map(() => 'bigint[]')];
// A digest as the key: the names may be longer than an index takes.
const ADD_SQL = `insert into budget_usage as u (key, ${GIVEN})
  select sha256(convert_to(jsonb_build_array(${NAMES.join(', ')})::text, 'UTF8')), ${GIVEN}
  from unnest(${ARRAYS.map((type, at) => `$${at + 1}::${type}`).join(', ')}) as n (${GIVEN})
  on conflict (workspace, key) do update set ${SUMS.map((name) => `${name} = u.${name} + excluded.${name}`).join(', ')}`;

type Change = readonly [group: Group, usage: Usage];

const addUsage = async (client: pg.ClientBase, changes: ReadonlyMap<string, Change>): Promise<void> => {
  // In the order of their keys, so that two transactions never wait for each other.
  const rows = [...changes].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const groups = (read: (group: Group) => string): string[] => rows.map(([, [group]]) => read(group));
  await client.query({
    ...{ name: 'budget_usage_add', text: ADD_SQL },
    values: [
      groups(({ workspace }) => workspace),
      groups(({ agentId }) => agentId),
      groups(({ rootId }) => rootId),
      groups(({ model }) => model),
      groups(({ caller }) => caller),
      groups(({ day }) => day),
      ...SUMS.map((name) => rows.map(([, [, usage]]) => usage[name])),
    ],
  });
};

/** Projects reservations to `budget_usage`: one row for each agent, model, key and day. */
export const projectUsage = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const touched = touch(events);
  if (touched.length === 0) return;
  try {
    const before = await statesBefore(client, touched);
    const changes = new Map<string, Change>();
    for (const { workspace, streamId, events: own } of touched) {
      const from = before.get(`${workspace}\n${streamId}`) ?? NO_ACCOUNT;
      const to = own.reduce(applyEvent, from);
      if (to.reservation.status === 'none') continue;
      const group = groupOf(workspace, to.reservation.reserved);
      const change = combine(usageOf(to), usageOf(from), -1);
      const key = keyOf(group);
      changes.set(key, [group, combine(changes.get(key)?.[1] ?? NOTHING, change, 1)]);
    }
    if (changes.size > 0) await addUsage(client, changes);
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
