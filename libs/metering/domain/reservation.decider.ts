import type { BudgetEvent, BudgetEventOf, CallOutcome } from '@antiphon/contracts/metering';
import {
  assertNever,
  boundMicroUsd,
  cacheTokensOf,
  conflict,
  costMicroUsd,
  rejected,
  transient,
} from '@antiphon/kernel';
import type { Decider, TokenUsage } from '@antiphon/kernel';
import { amountOf } from './balance.js';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];
type Ended = 'settled' | 'released' | 'expired_estimated';

/** State of a reservation: `reserved`, then one of three ends. `version` is that of its stream. */
export type Reservation =
  | { readonly status: 'none'; readonly version: 0 }
  | { readonly status: 'reserved'; readonly reserved: Reserved; readonly version: number }
  | {
      readonly status: Ended;
      readonly reserved: Reserved;
      readonly version: number;
      /** Amount charged to its scopes. */
      readonly charged: { readonly tokens: number; readonly microUsd: number };
      /** True once the usage of an expired, released or estimated reservation was learnt. */
      readonly corrected: boolean;
    };

/** Times are ISO 8601. */
export type ReservationCommand =
  | { readonly type: 'Reserve'; readonly reserved: Reserved }
  | { readonly type: 'Settle'; readonly outcome: CallOutcome; readonly now: string }
  | { readonly type: 'Correct'; readonly figure: Figure; readonly now: string }
  | { readonly type: 'Expire'; readonly now: string };

/** Usage of a call that its vendor told later, by the id of the call at the vendor. */
export interface Figure {
  readonly generationId: string;
  readonly usage: TokenUsage;
}

const event = <T extends BudgetEvent['type']>(type: T, data: BudgetEventOf<T>['data']): BudgetEvent =>
  ({ type, schemaVersion: 1, data }) as BudgetEvent;

const reserve = (state: Reservation, reserved: Reserved): BudgetEvent[] => {
  if (state.status !== 'none')
    throw conflict('METERING.RESERVATION_EXISTS', `reservation ${reserved.reservationId} was made already`);
  return [event('BudgetReserved', reserved)];
};

type Charge = TokenUsage & { readonly microUsd: number };

const chargeFor = ({ price }: Reserved, usage: TokenUsage): Charge => ({
  inputTokens: usage.inputTokens,
  ...cacheTokensOf(usage),
  outputTokens: usage.outputTokens,
  microUsd: price === null ? 0 : costMicroUsd(price, usage),
});

/** The call may have been billed in full, so the whole bound is charged. */
const chargeForBound = ({ price, inputBound, outputBound }: Reserved): Charge => ({
  inputTokens: inputBound,
  outputTokens: outputBound,
  microUsd: price === null ? 0 : boundMicroUsd(price, inputBound, outputBound),
});

const settleAs = (reserved: Reserved, charge: Charge, estimated: boolean, now: string): BudgetEvent[] => [
  event('BudgetSettled', { reservationId: reserved.reservationId, ...charge, estimated, settledAt: now }),
];

const settleOpen = (reserved: Reserved, outcome: CallOutcome, now: string): BudgetEvent[] => {
  switch (outcome.kind) {
    case 'used':
      return settleAs(reserved, chargeFor(reserved, outcome), outcome.estimated, now);
    case 'unknown':
      return settleAs(reserved, chargeForBound(reserved), true, now);
    case 'not_dispatched':
      return [
        event('BudgetReleased', {
          reservationId: reserved.reservationId,
          reason: outcome.reason,
          releasedAt: now,
        }),
      ];
    default:
      return assertNever(outcome);
  }
};

/** Charges a call that ran although its reservation had been released, once. */
const chargeReleased = (reserved: Reserved, outcome: CallOutcome, now: string): BudgetEvent[] => {
  if (outcome.kind === 'not_dispatched') return [];
  const charge = outcome.kind === 'used' ? chargeFor(reserved, outcome) : chargeForBound(reserved);
  return [event('BudgetCorrected', { reservationId: reserved.reservationId, ...charge, correctedAt: now })];
};

/** Replaces the estimate of an expired reservation once. `unknown` adds nothing to the estimate. */
const correct = (reserved: Reserved, outcome: CallOutcome, now: string): BudgetEvent[] => {
  if (outcome.kind === 'unknown') return [];
  const used = outcome.kind === 'used' ? outcome : { inputTokens: 0, outputTokens: 0 };
  const charge = chargeFor(reserved, used);
  return [event('BudgetCorrected', { reservationId: reserved.reservationId, ...charge, correctedAt: now })];
};

const settle = (state: Reservation, outcome: CallOutcome, now: string): BudgetEvent[] => {
  switch (state.status) {
    case 'none':
      return []; // nothing was reserved, so there is nothing to end
    case 'reserved':
      return settleOpen(state.reserved, outcome, now);
    case 'expired_estimated':
      return state.corrected ? [] : correct(state.reserved, outcome, now);
    case 'released':
      return state.corrected ? [] : chargeReleased(state.reserved, outcome, now);
    case 'settled':
      return []; // a repeat adds no fact
    default:
      return assertNever(state);
  }
};

/** Replaces an estimated charge with the vendor's figure, once. The caller knows that it is one. */
const correctByFigure = (state: Reservation, figure: Figure, now: string): BudgetEvent[] => {
  if (state.status === 'reserved')
    throw transient('METERING.NOT_SETTLED', `reservation ${state.reserved.reservationId} is not settled yet`);
  if (state.status === 'none' || state.status === 'released' || state.corrected) return [];
  const { reserved, charged } = state;
  const { reservationId, scopes } = reserved;
  const replaced = {
    generationId: figure.generationId,
    ...{ replacedTokens: charged.tokens, replacedMicroUsd: charged.microUsd },
    scopeKeys: scopes.map(({ key }) => key),
  };
  const charge = chargeFor(reserved, figure.usage);
  return [event('BudgetCorrected', { reservationId, ...charge, figure: replaced, correctedAt: now })];
};

const expire = (state: Reservation, now: string): BudgetEvent[] => {
  if (state.status !== 'reserved') return [];
  const { reservationId, tokens, microUsd, expiresAt } = state.reserved;
  if (now < expiresAt)
    throw rejected('METERING.NOT_EXPIRED', `reservation ${reservationId} holds until ${expiresAt}`);
  return [event('BudgetExpired', { reservationId, tokens, microUsd, expiredAt: now })];
};

const decide = (command: ReservationCommand, state: Reservation): BudgetEvent[] => {
  switch (command.type) {
    case 'Reserve':
      return reserve(state, command.reserved);
    case 'Settle':
      return settle(state, command.outcome, command.now);
    case 'Correct':
      return correctByFigure(state, command.figure, command.now);
    case 'Expire':
      return expire(state, command.now);
    default:
      return assertNever(command);
  }
};

const ended = (
  state: Reservation,
  status: Ended,
  charged: { tokens: number; microUsd: number },
  corrected = false,
): Reservation =>
  state.status === 'none'
    ? state // an end without a start, which the audit reports
    : { status, reserved: state.reserved, version: state.version + 1, charged, corrected };

const evolve = (state: Reservation, happened: BudgetEvent): Reservation => {
  switch (happened.type) {
    case 'BudgetReserved':
      return { status: 'reserved', reserved: happened.data, version: 1 };
    case 'BudgetSettled':
      return ended(state, 'settled', amountOf(happened.data));
    case 'BudgetReleased':
      return ended(state, 'released', { tokens: 0, microUsd: 0 });
    case 'BudgetExpired':
      return ended(state, 'expired_estimated', {
        tokens: happened.data.tokens,
        microUsd: happened.data.microUsd,
      });
    case 'BudgetCorrected':
      return ended(
        state,
        state.status === 'released' || state.status === 'settled' ? state.status : 'expired_estimated',
        amountOf(happened.data),
        true,
      );
    case 'BudgetScopeFrozen':
    case 'BudgetScopeUnfrozen':
      return state.status === 'none' ? state : { ...state, version: state.version + 1 };
    default:
      return assertNever(happened);
  }
};

/**
 * Decides the lifecycle of one reservation. Errors: `METERING.RESERVATION_EXISTS`,
 * `METERING.NOT_EXPIRED`, `METERING.NOT_SETTLED`.
 */
export const reservationDecider: Decider<Reservation, ReservationCommand, BudgetEvent> = {
  initialState: () => ({ status: 'none', version: 0 }),
  decide,
  evolve,
};
