import type { ModelMessage } from '@antiphon/providers-domain';
import { TURN_ENDS } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { BudgetEventOf } from '@antiphon/contracts/metering';
import { ledgerFrom } from '@antiphon/metering-domain';
import type { World } from './world.js';

const TURN_END = new RegExp(`^(${TURN_ENDS.join('|')})$`);
const TOOL_OUTCOME = /^ToolCall(Completed|Failed|Unknown)$/;
const CHARGE = /^Budget(Settled|Expired)$/;

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

const pairViolations = (
  rule: string,
  begins: ReadonlyMap<string, number>,
  ends: ReadonlyMap<string, number>,
): string[] => [
  ...[...begins]
    .filter(([id]) => ends.get(id) !== 1)
    .map(([id]) => `${rule}: ${id} ${ends.get(id) ?? 0} times`),
  ...[...ends].filter(([id]) => !begins.has(id)).map(([id]) => `${rule}: ${id} without a beginning`),
];

/** Checks I3 and I4: each answered command is in the log once, as one turn. */
const commandViolations = (world: World, events: readonly SessionEvent[]): string[] => {
  const requested = countBy(events, /^TurnRequested$/, 'content');
  return [...world.answers].flatMap(([key, turns]) => [
    ...(turns.size === 1 ? [] : [`I4: ${key} was answered with ${turns.size} turns`]),
    ...(requested.get(key) === 1 ? [] : [`I3: ${key} is in the log ${requested.get(key) ?? 0} times`]),
  ]);
};

/** Checks I6: a call that is not idempotent reached its tool at most once. */
const effectViolations = ({ outside }: World, events: readonly SessionEvent[]): string[] =>
  events.flatMap((event) => {
    if (event.type !== 'ToolCallRequested' || event.data.idempotent) return [];
    const times = outside.toolCalls.get(event.data.callId) ?? 0;
    return times > 1 ? [`I6: call ${event.data.callId} reached its tool ${times} times`] : [];
  });

/** I8: balances are the fold of the ledger's events, and nothing stays reserved. */
const balanceViolations = ({ ledger, budget }: World): string[] => {
  const rebuilt = ledgerFrom();
  for (const event of budget) rebuilt.put(event);
  const [kept, folded] = [ledger.snapshot().balances, rebuilt.snapshot().balances];
  return [...kept].flatMap(([key, balance]) => [
    ...(JSON.stringify(balance) === JSON.stringify(folded.get(key)) ? [] : [`I8: ${key} is not its fold`]),
    ...(balance.reservedTokens === 0 ? [] : [`I8: ${key} still has ${balance.reservedTokens} reserved`]),
  ]);
};

/** Checks I10: settled, reserved and requested tokens lie within the limit at every admission. */
const admissionViolations = ({ budget }: World): string[] => {
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

/** Checks I9 and I11: each attempt that the provider billed is charged, and charged once. */
const chargeViolations = ({ budget, outside, ledger }: World): string[] => {
  const charged = new Map<string, number>();
  for (const { type, data } of budget)
    if (CHARGE.test(type)) charged.set(data.reservationId, (charged.get(data.reservationId) ?? 0) + 1);
  const { reservations } = ledger.snapshot();
  return [
    ...[...charged].filter(([, times]) => times > 1).map(([id]) => `I11: ${id} was charged twice`),
    ...outside.billed
      .filter(({ reservationId }) => reservations.get(reservationId)?.status !== 'settled')
      .map(({ reservationId }) => `I9: the provider was used under ${reservationId}, which was not charged`),
  ];
};

/** Checks I16: a driver writes nothing after another one has taken over. */
const epochViolations = ({ store }: World): string[] =>
  [...store.sessions.values()].flatMap(({ id, events }) =>
    events
      .filter(({ epoch, current }) => epoch !== null && epoch < current)
      .map(({ event, epoch }) => `I16: ${event.type} of ${id} under epoch ${epoch}, which was over`),
  );

const MAY_FOLLOW: Record<ModelMessage['role'], readonly (ModelMessage['role'] | undefined)[]> = {
  user: [undefined, 'assistant'],
  assistant: ['user', 'tool'],
  tool: ['assistant'],
};

/** Checks I7: roles alternate, and each message with calls is followed by exactly their results. */
export const checkConversation = (world: World, messages: readonly ModelMessage[]): void => {
  messages.forEach((message, i) => {
    if (!MAY_FOLLOW[message.role].includes(messages[i - 1]?.role))
      world.violations.push(`I7: ${message.role} after ${messages[i - 1]?.role ?? 'the beginning'}`);
    const next = messages[i + 1];
    const calls = message.role === 'assistant' ? message.toolCalls.map(({ id }) => id) : [];
    const results = next?.role === 'tool' ? next.results.map(({ id }) => id) : [];
    if (calls.join() !== results.join())
      world.violations.push(`I7: calls ${calls.join()}, results ${results.join()}`);
  });
  if (messages.at(-1)?.role === 'assistant') world.violations.push('I7: the last message is the model’s');
};

/**
 * Returns the broken invariants of a finished simulation, by their numbers in docs/fault-tests.md.
 */
export const violationsOf = (world: World): string[] => {
  const events = eventsOf(world);
  return [
    ...world.violations,
    ...commandViolations(world, events),
    ...pairViolations(
      'I5: the end of turn',
      countBy(events, /^TurnRequested$/, 'turnId'),
      countBy(events, TURN_END, 'turnId'),
    ),
    ...pairViolations(
      'I6: the outcome of call',
      countBy(events, /^ToolCallRequested$/, 'callId'),
      countBy(events, TOOL_OUTCOME, 'callId'),
    ),
    ...effectViolations(world, events),
    ...balanceViolations(world),
    ...admissionViolations(world),
    ...chargeViolations(world),
    ...epochViolations(world),
  ];
};
