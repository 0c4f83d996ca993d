import { upcast } from '@antiphon/contracts/events';
import { BudgetEvent } from '@antiphon/contracts/metering';
import { translateDatabaseError } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';
import { reservationDecider, type Reservation } from '@antiphon/metering-domain';
import type pg from 'pg';

/** Sums of the reservations of one agent, model, key and day. */
interface Usage {
  readonly calls: number;
  readonly chargedTokens: number;
  readonly chargedMicroUsd: number;
  readonly reservedTokens: number;
  readonly reservedMicroUsd: number;
}

interface Group {
  readonly workspace: string;
  readonly agentId: string;
  readonly rootId: string;
  /** Provider and model. */
  readonly model: string;
  readonly caller: string;
  readonly day: string;
}

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

const NOTHING: Usage = {
  ...{ calls: 0, chargedTokens: 0, chargedMicroUsd: 0, reservedTokens: 0, reservedMicroUsd: 0 },
};

const usageOf = (state: Reservation): Usage => {
  switch (state.status) {
    case 'none':
      return NOTHING;
    case 'reserved': {
      const { tokens, microUsd } = state.reserved;
      return { ...NOTHING, calls: 1, reservedTokens: tokens, reservedMicroUsd: microUsd };
    }
    default: {
      const { tokens, microUsd } = state.charged;
      return { ...NOTHING, calls: 1, chargedTokens: tokens, chargedMicroUsd: microUsd };
    }
  }
};

const combine = (a: Usage, b: Usage, sign: 1 | -1): Usage => ({
  calls: a.calls + sign * b.calls,
  chargedTokens: a.chargedTokens + sign * b.chargedTokens,
  chargedMicroUsd: a.chargedMicroUsd + sign * b.chargedMicroUsd,
  reservedTokens: a.reservedTokens + sign * b.reservedTokens,
  reservedMicroUsd: a.reservedMicroUsd + sign * b.reservedMicroUsd,
});

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

/** Returns the states of reservations before a batch, from their events in the log. */
const statesBefore = async (
  client: pg.ClientBase,
  touched: readonly Touched[],
): Promise<ReadonlyMap<string, Reservation>> => {
  const states = new Map<string, Reservation>();
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
    states.set(key, reservationDecider.evolve(states.get(key) ?? reservationDecider.initialState(), event));
  }
  return states;
};

// A digest as the key: the names may be longer than an index takes.
const ADD_SQL = `insert into budget_usage as u (workspace, key, agent_id, root_id, model, caller, day, calls,
    charged_tokens, charged_micro_usd, reserved_tokens, reserved_micro_usd)
  select workspace, sha256(convert_to(jsonb_build_array(workspace, agent_id, root_id, model, caller, day)::text, 'UTF8')),
    agent_id, root_id, model, caller, day, calls, charged_tokens, charged_micro_usd, reserved_tokens, reserved_micro_usd
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::bigint[], $11::bigint[])
    as n (workspace, agent_id, root_id, model, caller, day, calls, charged_tokens, charged_micro_usd, reserved_tokens,
      reserved_micro_usd)
  on conflict (workspace, key) do update set calls = u.calls + excluded.calls,
    charged_tokens = u.charged_tokens + excluded.charged_tokens,
    charged_micro_usd = u.charged_micro_usd + excluded.charged_micro_usd,
    reserved_tokens = u.reserved_tokens + excluded.reserved_tokens,
    reserved_micro_usd = u.reserved_micro_usd + excluded.reserved_micro_usd`;

type Change = readonly [group: Group, usage: Usage];

const addUsage = async (client: pg.ClientBase, changes: ReadonlyMap<string, Change>): Promise<void> => {
  // In the order of their keys, so that two transactions never wait for each other.
  const rows = [...changes].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const groups = (read: (group: Group) => string): string[] => rows.map(([, [group]]) => read(group));
  const sums = (read: (usage: Usage) => number): number[] => rows.map(([, [, usage]]) => read(usage));
  await client.query({
    ...{ name: 'budget_usage_add', text: ADD_SQL },
    values: [
      groups(({ workspace }) => workspace),
      groups(({ agentId }) => agentId),
      groups(({ rootId }) => rootId),
      groups(({ model }) => model),
      groups(({ caller }) => caller),
      groups(({ day }) => day),
      sums(({ calls }) => calls),
      sums(({ chargedTokens }) => chargedTokens),
      sums(({ chargedMicroUsd }) => chargedMicroUsd),
      sums(({ reservedTokens }) => reservedTokens),
      sums(({ reservedMicroUsd }) => reservedMicroUsd),
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
      const from = before.get(`${workspace}\n${streamId}`) ?? reservationDecider.initialState();
      const to = own.reduce(reservationDecider.evolve, from);
      if (to.status === 'none') continue;
      const group = groupOf(workspace, to.reserved);
      const change = combine(usageOf(to), usageOf(from), -1);
      const key = keyOf(group);
      changes.set(key, [group, combine(changes.get(key)?.[1] ?? NOTHING, change, 1)]);
    }
    if (changes.size > 0) await addUsage(client, changes);
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
