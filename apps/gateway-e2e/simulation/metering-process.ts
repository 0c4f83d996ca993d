import type { SessionEvent } from '@antiphon/contracts/agent';
import type { ReserveBudgetRequest } from '@antiphon/contracts/metering';
import { decideBatch } from '@antiphon/metering-domain';
import type { LedgerAnswer, LedgerCommand } from '@antiphon/metering-domain';
import { sendRequest } from './world.js';
import type { World } from './world.js';
import type { Fiber, Process } from './scheduler.js';

/**
 * Settles the completed calls of a commit within it, as `antiphon_append_extended` does, or leaves
 * one out. Returns the settled reservations.
 */
export const settleInCommit = (world: World, events: readonly SessionEvent[]): ReadonlySet<string> => {
  const settled = new Set<string>();
  for (const event of events) {
    if (event.type !== 'ModelCallCompleted') continue;
    const { reservationId } = event.data;
    const { status } = world.ledger.reservation(reservationId);
    if (status !== 'reserved' || world.choose(4) === 0) continue;
    const rules = { limits: world.limits, priceOf: () => null, now: world.timeOfDay() };
    const command = { type: 'Settle', reservationId, outcome: outcomeOf(event) } as const;
    const [decision] = decideBatch(world.ledger.snapshot(), [command], rules);
    for (const fact of decision && 'events' in decision ? decision.events : []) {
      world.ledger.put(fact);
      world.budget.push(fact);
    }
    settled.add(reservationId);
  }
  return settled;
};

/**
 * Reserves the bound of a call in the commit that begins it, as `antiphon_append_extended` does, or
 * leaves it out. Returns true if it is reserved. No call is refused here, and no output capped.
 */
export const reserveInCommit = (world: World, request: ReserveBudgetRequest): boolean => {
  if (world.choose(3) === 0) return false;
  const rules = { limits: world.limits, priceOf: () => null, now: world.timeOfDay() };
  const [decision] = decideBatch(world.ledger.snapshot(), [{ type: 'Reserve', request }], rules);
  if (!decision || 'error' in decision || decision.reserved?.outputBound !== request.maxOutputTokens)
    return false;
  for (const fact of decision.events) {
    world.ledger.put(fact);
    world.budget.push(fact);
  }
  return decision.events.length > 0;
};

/**
 * Handles a command in one transaction. The process may die before or after it, and lose the
 * answer.
 */
function* serve(world: World, command: LedgerCommand, answer: (value: LedgerAnswer) => void): Fiber {
  yield;
  const rules = { limits: world.limits, priceOf: () => null, now: world.timeOfDay() };
  const [decision] = decideBatch(world.ledger.snapshot(), [command], rules);
  if (!decision || 'error' in decision) {
    if (decision && decision.error.kind !== 'conflict') world.violations.push(decision.error.message);
    return;
  }
  for (const event of decision.events) {
    world.ledger.put(event);
    world.budget.push(event);
  }
  yield;
  answer(decision.answer);
}

const meteringOf = ({ processes }: World): Process | undefined =>
  processes.find(({ name, alive }) => alive && name === 'metering');

export const callMetering = (world: World, command: LedgerCommand): Fiber<LedgerAnswer | null> =>
  sendRequest<LedgerAnswer>(
    world,
    () => meteringOf(world),
    (_process, answer) => serve(world, command, answer),
  );

/** Settles every open reservation by the log, as the sweep does. */
export function* sweepReservations(world: World): Fiber {
  for (const [reservationId, held] of world.ledger.snapshot().reservations) {
    if (held.status !== 'reserved') continue;
    const events = world.store.session(held.reserved.sessionId).events.map(({ event }) => event);
    const end = events.find(
      (event) =>
        (event.type === 'ModelCallCompleted' || event.type === 'ModelCallAborted') &&
        event.data.reservationId === reservationId,
    );
    yield* callMetering(world, { type: 'Settle', reservationId, outcome: outcomeOf(end) });
  }
}

/** Returns the outcome of a model call by its event; a call without one was never begun. */
export const outcomeOf = (
  event: { readonly type: string; readonly data: object } | undefined,
): Extract<LedgerCommand, { type: 'Settle' }>['outcome'] => {
  const data = event?.data as {
    dispatched?: boolean;
    usage?: { inputTokens: number; outputTokens: number; estimated: boolean } | null;
  };
  if (!event || (event.type === 'ModelCallAborted' && !data.dispatched))
    return { kind: 'not_dispatched', reason: 'never_begun' };
  return data.usage ? { kind: 'used', ...data.usage } : { kind: 'unknown' };
};
