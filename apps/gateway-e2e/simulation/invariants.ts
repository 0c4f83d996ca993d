import type { SessionEvent } from '@antiphon/contracts/agent';
import type { BudgetEventOf } from '@antiphon/contracts/metering';
import { ledgerFrom } from '@antiphon/metering-domain';
import type { World } from './world.js';

const ENDS = /^Turn(Completed|Failed|Cancelled)$/;
const OUTCOMES = /^ToolCall(Completed|Failed|Unknown)$/;
const CHARGES = /^Budget(Settled|Expired)$/;

const eventsOf = ({ store }: World): SessionEvent[] =>
  [...store.sessions.values()].flatMap(({ events }) => events.map(({ event }) => event));

const field = ({ data }: SessionEvent, name: string): string =>
  String((data as Record<string, unknown>)[name]);

const countBy = (events: readonly SessionEvent[], type: RegExp, name: string): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const event of events)
    if (type.test(event.type)) counts.set(field(event, name), (counts.get(field(event, name)) ?? 0) + 1);
  return counts;
};

const once = (rule: string, of: ReadonlyMap<string, number>, in_: ReadonlyMap<string, number>): string[] => [
  ...[...of].filter(([id]) => in_.get(id) !== 1).map(([id]) => `${rule}: ${id} ${in_.get(id) ?? 0} times`),
  ...[...in_].filter(([id]) => !of.has(id)).map(([id]) => `${rule}: ${id} without a beginning`),
];

/** I3, I4: what a client was told is in the log once, under one name. */
const commands = (world: World, events: readonly SessionEvent[]): string[] => {
  const requested = countBy(events, /^TurnRequested$/, 'content');
  return [...world.answers].flatMap(([key, turns]) => [
    ...(turns.size === 1 ? [] : [`I4: ${key} was answered with ${turns.size} turns`]),
    ...(requested.get(key) === 1 ? [] : [`I3: ${key} is in the log ${requested.get(key) ?? 0} times`]),
  ]);
};

/** I6: what may not be done twice was not, whatever the log says of it. */
const effects = ({ outside }: World, events: readonly SessionEvent[]): string[] =>
  events.flatMap((event) => {
    if (event.type !== 'ToolCallRequested' || event.data.idempotent) return [];
    const times = outside.reached.get(event.data.callId) ?? 0;
    return times > 1 ? [`I6: call ${event.data.callId} reached its tool ${times} times`] : [];
  });

/** I8: balances are the fold of the ledger's events, and nothing stays reserved. */
const balances = ({ ledger, budget }: World): string[] => {
  const rebuilt = ledgerFrom();
  for (const event of budget) rebuilt.put(event);
  const [kept, folded] = [ledger.snapshot().balances, rebuilt.snapshot().balances];
  return [...kept].flatMap(([key, balance]) => [
    ...(JSON.stringify(balance) === JSON.stringify(folded.get(key)) ? [] : [`I8: ${key} is not its fold`]),
    ...(balance.reservedTokens === 0 ? [] : [`I8: ${key} still has ${balance.reservedTokens} reserved`]),
  ]);
};

/** I10: at every admission what is settled, reserved and asked for lies within the limit then in force. */
const admissions = ({ budget }: World): string[] => {
  const ledger = ledgerFrom();
  return budget.flatMap((event) => {
    const over = event.type === 'BudgetReserved' ? overLimit(event, ledger) : [];
    ledger.put(event);
    return over;
  });
};
const overLimit = (
  { data }: BudgetEventOf<'BudgetReserved'>,
  ledger: ReturnType<typeof ledgerFrom>,
): string[] =>
  data.scopes
    .filter(({ key, limitTokens }) => {
      const { reservedTokens, settledTokens } = ledger.balance(key);
      return limitTokens !== null && reservedTokens + settledTokens + data.tokens > limitTokens;
    })
    .map(({ key }) => `I10: reservation ${data.reservationId} passes the limit of ${key}`);

/** I11: no attempt is charged twice; and what the provider did is charged. */
const charges = ({ budget, outside, ledger }: World): string[] => {
  const charged = new Map<string, number>();
  for (const { type, data } of budget)
    if (CHARGES.test(type)) charged.set(data.reservationId, (charged.get(data.reservationId) ?? 0) + 1);
  const { reservations } = ledger.snapshot();
  return [
    ...[...charged].filter(([, times]) => times > 1).map(([id]) => `I11: ${id} was charged twice`),
    ...outside.billed
      .filter(({ reservationId }) => reservations.get(reservationId)?.status !== 'settled')
      .map(({ reservationId }) => `I9: the provider was used under ${reservationId}, which was not charged`),
  ];
};

/** I16: nothing is written by a driver that has been followed by another. */
const epochs = ({ store }: World): string[] =>
  [...store.sessions.values()].flatMap(({ id, events }) =>
    events
      .filter(({ epoch, current }) => epoch !== null && epoch < current)
      .map(({ event, epoch }) => `I16: ${event.type} of ${id} under epoch ${epoch}, which was over`),
  );

/** Everything that does not hold at the end of a simulation, in words; faults.md has the numbers. */
export const violationsOf = (world: World): string[] => {
  const events = eventsOf(world);
  return [
    ...world.violations,
    ...commands(world, events),
    ...once(
      'I5: the end of turn',
      countBy(events, /^TurnRequested$/, 'turnId'),
      countBy(events, ENDS, 'turnId'),
    ),
    ...once(
      'I6: the outcome of call',
      countBy(events, /^ToolCallRequested$/, 'callId'),
      countBy(events, OUTCOMES, 'callId'),
    ),
    ...effects(world, events),
    ...balances(world),
    ...admissions(world),
    ...charges(world),
    ...epochs(world),
  ];
};
