import { boundMicroUsd } from '@antiphon/kernel';
import type { BudgetEvent, BudgetEventOf, BudgetScope } from '@antiphon/contracts/metering';
import type { SessionEvent } from '@antiphon/contracts/agent';
import {
  type CheckRun,
  type EventPlace,
  type Finding,
  open,
  type Parsed,
  violation,
} from '../audit-check.js';
import type { MoneyCheck, ReservationCheck } from '../audit-check.js';
import type { BudgetBook, ScopeBook } from './budget-book.js';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];

const checkLimit = (
  unit: string,
  used: number,
  bound: number,
  limit: number | null,
  key: string,
  at: EventPlace,
): Finding[] =>
  limit !== null && used + bound > limit
    ? [violation(at, `${key} held ${used} ${unit} of ${limit} when ${bound} more were admitted`)]
    : [];

const checkScope = (scope: BudgetScope, book: ScopeBook, reserved: Reserved, at: EventPlace): Finding[] => {
  const { key, limitTokens, limitMicroUsd } = scope;
  // A call that can cost nothing passes each limit of money.
  const isFree = reserved.price !== null && reserved.microUsd === 0;
  const isLimited = limitTokens !== null || (limitMicroUsd !== null && !isFree);
  const usedTokens = book.settledTokens + book.reservedTokens;
  const usedMicroUsd = book.settledMicroUsd + book.reservedMicroUsd;
  return [
    ...checkLimit('tokens', usedTokens, reserved.tokens, limitTokens, key, at),
    ...(isFree ? [] : checkLimit('micro-USD', usedMicroUsd, reserved.microUsd, limitMicroUsd, key, at)),
    ...(isLimited && book.frozenBy !== null
      ? [violation(at, `${key} was frozen when a call was admitted`)]
      : []),
    ...(limitMicroUsd !== null && reserved.price === null
      ? [violation(at, `a call without a price was admitted under the money limit of ${key}`)]
      : []),
  ];
};

/** Replays admissions against the book, which it also updates. */
class AdmissionRun implements CheckRun<Parsed<SessionEvent | BudgetEvent>> {
  private admissions = 0;

  constructor(private readonly book: BudgetBook) {}

  see({ place, content }: Parsed<SessionEvent | BudgetEvent>): Finding[] {
    if (!content.type.startsWith('Budget')) return [];
    const findings = content.type === 'BudgetReserved' ? this.admit(content.data, place) : [];
    this.book.put(place.workspace, content as BudgetEvent);
    return findings;
  }

  end(): Finding[] {
    return [];
  }

  count(): number {
    return this.admissions;
  }

  private admit(reserved: Reserved, at: EventPlace): Finding[] {
    this.admissions++;
    const { inputBound, outputBound, tokens, scopes } = reserved;
    const isSum = inputBound + outputBound === tokens;
    return [
      ...(isSum ? [] : [violation(at, 'the bound is not the sum of its parts')]),
      ...scopes.flatMap((scope) => checkScope(scope, this.book.scope(at.workspace, scope.key), reserved, at)),
    ];
  }
}

/** Checks every admission against the balances of its scopes just before it. */
export const admissionsStayWithinLimits = (book: BudgetBook): MoneyCheck => ({
  name: 'admissions-stay-within-limits',
  about: 'every admission kept settled + reserved + bound within the limit then in force, in every scope',
  counts: 'admissions',
  start: () => new AdmissionRun(book),
});

type State = 'none' | 'reserved' | 'settled' | 'estimated' | 'released' | 'expired' | 'corrected';

/** States before and after each event of a reservation. */
const TRANSITIONS: Readonly<Partial<Record<BudgetEvent['type'], readonly [from: State, to: State]>>> = {
  BudgetReserved: ['none', 'reserved'],
  BudgetSettled: ['reserved', 'settled'],
  BudgetReleased: ['reserved', 'released'],
  BudgetExpired: ['reserved', 'expired'],
  BudgetCorrected: ['expired', 'corrected'],
};

const checkDriverBound = (
  { price, inputBound, outputBound, microUsd }: Reserved,
  at: EventPlace,
): Finding[] => {
  const cost = price === null ? 0 : boundMicroUsd(price, inputBound, outputBound);
  return microUsd === cost
    ? []
    : [violation(at, `the commit of a driver reserved ${microUsd} micro-USD; its bound costs ${cost}`)];
};

class ReservationRun implements CheckRun<Parsed<BudgetEvent>> {
  private state: State = 'none';
  private reservedAt: EventPlace | undefined;
  private bound: Reserved | undefined;
  private reservations = 0;

  see({ place, content, epoch }: Parsed<BudgetEvent>): Finding[] {
    if (content.type === 'BudgetReserved') {
      this.reservations++;
      this.reservedAt = place;
      this.bound = content.data;
    }
    const isOwn = place.streamId === `budget-${content.data.reservationId}`;
    const foreign = isOwn ? [] : [violation(place, `${content.type} names ${content.data.reservationId}`)];
    return [...foreign, ...this.move(place, content), ...this.checkDriver(place, content, epoch)];
  }

  end(): Finding[] {
    return this.state === 'reserved' && this.reservedAt
      ? [open(this.reservedAt, 'the reservation has not ended')]
      : [];
  }

  count(): number {
    return this.reservations;
  }

  /**
   * The commit of a driver may only reserve at the price in its event, and charge within the bound.
   * Metering decides all else. The limits of each admission are checked with the balances.
   */
  private checkDriver(at: EventPlace, event: BudgetEvent, epoch: number | undefined): Finding[] {
    if (epoch === undefined) return [];
    if (event.type === 'BudgetReserved') return checkDriverBound(event.data, at);
    if (event.type !== 'BudgetSettled') return [violation(at, `a driver appended ${event.type}`)];
    const { inputTokens, outputTokens, microUsd } = event.data;
    const { tokens = 0, microUsd: bound = 0 } = this.bound ?? {};
    return inputTokens + outputTokens > tokens || microUsd > bound
      ? [violation(at, 'the commit of a driver charged more than the bound')]
      : [];
  }

  private move(at: EventPlace, event: BudgetEvent): Finding[] {
    const transition = TRANSITIONS[event.type];
    // A scope's freeze is appended to the stream of the reservation that caused it.
    if (!transition) return [];
    const [from, to] = transition;
    const before = this.state;
    const isEstimate = event.type === 'BudgetSettled' && event.data.estimated;
    this.state = isEstimate ? 'estimated' : to;
    const isFigure = event.type === 'BudgetCorrected' && event.data.figure !== undefined;
    return before === from || (before === 'estimated' && isFigure)
      ? []
      : [violation(at, `${event.type} of a reservation that was ${before}`)];
  }
}

/**
 * Checks that a reservation is made once and ends once. Only an expired one is corrected, and one
 * with an estimated charge by the figure of its vendor. In the commit of a driver, the amount is
 * that of the bound at the price in the event, and the charge is within it. The price itself is not
 * compared with the configuration of that time.
 */
export const reservationsEndOnce: ReservationCheck = {
  name: 'reservations-end-once',
  about:
    'every reservation is made once and ends once, settled, released or expired; only an expired or estimated one is corrected, and a driver reserves at the price that its event records and charges within the bound',
  counts: 'reservations',
  start: () => new ReservationRun(),
};
