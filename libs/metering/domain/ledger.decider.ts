import type {
  BudgetEvent,
  BudgetEventOf,
  BudgetScope,
  CallOutcome,
  Price,
  ReserveBudgetReply,
  ReserveBudgetRequest,
  SettleBudgetReply,
} from '@antiphon/contracts/metering';
import { assertNever, conflict, invalid, isAppError } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import { decideAdmission } from './admission.decider.js';
import type { BalanceChange } from './balance.js';
import { reservationDecider } from './reservation.decider.js';
import type { Figure, Reservation } from './reservation.decider.js';
import { scopesAt } from './budget-scopes.js';
import type { BudgetLimits } from './budget-scopes.js';
import { freezes, ledgerFrom } from './ledger.js';
import type { Ledger, LedgerSnapshot } from './ledger.js';

export type LedgerCommand =
  | {
      readonly type: 'Reserve';
      readonly request: ReserveBudgetRequest;
      /** Scopes of its tasks, and of the agent and its ancestors, that have a limit. */
      readonly ownerScopes?: readonly BudgetScope[];
    }
  | { readonly type: 'Settle'; readonly reservationId: string; readonly outcome: CallOutcome }
  | { readonly type: 'Correct'; readonly reservationId: string; readonly figure: Figure }
  | { readonly type: 'Expire'; readonly reservationId: string }
  | { readonly type: 'Unfreeze'; readonly scopeKey: string; readonly by: string; readonly reason: string };

export type LedgerAnswer =
  | { readonly type: 'Reserve'; readonly reply: ReserveBudgetReply }
  | { readonly type: 'Settle' | 'Expire'; readonly status: SettleBudgetReply['status'] | 'reserved' }
  | { readonly type: 'Correct'; readonly corrected: boolean }
  | { readonly type: 'Unfreeze'; readonly unfrozen: boolean };

/** Decision on one command: the result, its events and its balance changes (none for a repeat). */
export type LedgerDecision =
  | {
      readonly answer: LedgerAnswer;
      /** Events of one reservation, in stream order. */
      readonly events: readonly BudgetEvent[];
      readonly reservationId: string | null;
      /** Data of the reservation, or null without one. */
      readonly reserved: BudgetEventOf<'BudgetReserved'>['data'] | null;
      /** Version of the reservation's stream before the events. */
      readonly expectedVersion: number;
      readonly changes: readonly BalanceChange[];
    }
  | { readonly error: AppError };

/**
 * Returns the price of a provider's model, or null if none is known. `kind` is the kind of a
 * provider that was connected at run time.
 */
export type PriceOf = (provider: string, model: string, kind?: string) => Price | null;

/** The rules in force while a batch is decided. `now` is ISO 8601, UTC. */
export interface LedgerRules {
  readonly limits: BudgetLimits;
  readonly priceOf: PriceOf;
  readonly now: string;
}

/** No model takes or gives more in one call; beyond it sums could leave the safe integers. */
export const MAX_CALL_TOKENS = 1_000_000_000;

type Decided = { answer: LedgerAnswer; events: BudgetEvent[]; reservationId: string | null };

const nothing = (answer: LedgerAnswer): Decided => ({ answer, events: [], reservationId: null });

const grant = (reservationId: string, maxOutputTokens: number, price: Price | null): LedgerAnswer => ({
  type: 'Reserve',
  reply: { granted: true, reservationId, maxOutputTokens, price },
});

const SAME_CALL = ['sessionId', 'turnId', 'attempt', 'provider', 'model'] as const;

/** Asking again for an open reservation is answered with the grant that was given. */
const repeatGrant = (
  request: ReserveBudgetRequest,
  known: Exclude<Reservation, { status: 'none' }>,
): LedgerAnswer => {
  const { reserved, status } = known;
  const id = request.reservationId;
  if (
    SAME_CALL.some((field) => request[field] !== reserved[field]) ||
    request.inputBound > reserved.inputBound
  )
    throw conflict('METERING.RESERVATION_CONFLICT', `reservation ${id} was made for another call`);
  if (status !== 'reserved')
    throw conflict('METERING.RESERVATION_ENDED', `reservation ${id} has ended (${status})`, {
      data: { status },
    });
  return grant(id, Math.min(reserved.outputBound, request.maxOutputTokens), reserved.price);
};

const reservedBy = (
  request: ReserveBudgetRequest,
  scopes: BudgetScope[],
  price: Price | null,
  bound: { outputBound: number; tokens: number; microUsd: number },
  now: string,
) => ({
  reservationId: request.reservationId,
  sessionId: request.sessionId,
  turnId: request.turnId,
  attempt: request.attempt,
  agentId: request.agentId,
  ...(request.agents && request.agents.length > 1 ? { agents: request.agents } : {}),
  sessionKey: request.sessionKey,
  ...(request.caller === undefined ? {} : { caller: request.caller }),
  provider: request.provider,
  model: request.model,
  scopes,
  inputBound: request.inputBound,
  outputBound: bound.outputBound,
  tokens: bound.tokens,
  microUsd: bound.microUsd,
  price,
  reservedAt: now,
  expiresAt: request.expiresAt,
});

const decideReserve = (
  ledger: Ledger,
  { request, ownerScopes }: Extract<LedgerCommand, { type: 'Reserve' }>,
  rules: LedgerRules,
): Decided => {
  const known = ledger.reservation(request.reservationId);
  if (known.status !== 'none') return nothing(repeatGrant(request, known));
  if (request.inputBound > MAX_CALL_TOKENS || request.maxOutputTokens > MAX_CALL_TOKENS)
    throw invalid('METERING.BOUND_TOO_LARGE', `one call cannot use more than ${MAX_CALL_TOKENS} tokens`);
  const scopes = scopesAt(rules.limits, request.sessionId, rules.now, ownerScopes);
  const price = rules.priceOf(request.provider, request.model, request.providerKind);
  const standings = scopes.map((scope) => ({ scope, balance: ledger.balance(scope.key) }));
  const admission = decideAdmission(request, standings, price);
  if (!admission.granted) return nothing({ type: 'Reserve', reply: admission.refusal });
  const reserved = reservedBy(request, scopes, price, admission, rules.now);
  return {
    answer: grant(request.reservationId, admission.outputBound, price),
    events: reservationDecider.decide({ type: 'Reserve', reserved }, known),
    reservationId: request.reservationId,
  };
};

const decideEnd = (
  ledger: Ledger,
  command: Extract<LedgerCommand, { type: 'Settle' | 'Expire' | 'Correct' }>,
  { now }: LedgerRules,
): Decided => {
  const { reservationId } = command;
  const state = ledger.reservation(reservationId);
  const charged = reservationDecider.decide({ ...command, now }, state);
  const events = [...charged, ...freezes(ledger, charged, now)];
  if (command.type === 'Correct')
    return { answer: { type: 'Correct', corrected: events.length > 0 }, events, reservationId };
  const after = events.reduce(reservationDecider.evolve, state);
  const status = after.status === 'none' ? 'missing' : after.status;
  return { answer: { type: command.type, status }, events, reservationId };
};

const decideUnfreeze = (
  ledger: Ledger,
  { scopeKey, by, reason }: Extract<LedgerCommand, { type: 'Unfreeze' }>,
  { now }: LedgerRules,
): Decided => {
  const reservationId = ledger.balance(scopeKey).frozenBy;
  if (reservationId === null) return nothing({ type: 'Unfreeze', unfrozen: false });
  const data = { reservationId, scopeKey, by, reason, unfrozenAt: now };
  return {
    answer: { type: 'Unfreeze', unfrozen: true },
    events: [{ type: 'BudgetScopeUnfrozen', schemaVersion: 1, data }],
    reservationId,
  };
};

const decideOne = (ledger: Ledger, command: LedgerCommand, rules: LedgerRules): Decided => {
  switch (command.type) {
    case 'Reserve':
      return decideReserve(ledger, command, rules);
    case 'Settle':
    case 'Correct':
    case 'Expire':
      return decideEnd(ledger, command, rules);
    case 'Unfreeze':
      return decideUnfreeze(ledger, command, rules);
    default:
      return assertNever(command);
  }
};

/**
 * Decides the commands of one workspace in order, each on the result of the earlier ones. So a
 * batch respects the limits as if its commands had arrived alone. A command that breaks a rule
 * fails alone. The snapshot must contain every balance and reservation that the commands name.
 */
export const decideBatch = (
  snapshot: LedgerSnapshot,
  commands: readonly LedgerCommand[],
  rules: LedgerRules,
): LedgerDecision[] => {
  const ledger = ledgerFrom(snapshot);
  return commands.map((command) => {
    try {
      const { answer, events, reservationId } = decideOne(ledger, command, rules);
      const expectedVersion = reservationId === null ? 0 : ledger.reservation(reservationId).version;
      const changes = events.flatMap((event) => ledger.put(event));
      const after = ledger.reservation(reservationId ?? '');
      const reserved = after.status === 'none' ? null : after.reserved;
      return { answer, events, reservationId, reserved, expectedVersion, changes };
    } catch (error) {
      if (isAppError(error)) return { error };
      throw error;
    }
  });
};
