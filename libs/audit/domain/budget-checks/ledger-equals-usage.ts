import type { BudgetEvent } from '@antiphon/contracts/metering';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, type Parsed, violation } from '../audit-check.js';
import type { MoneyCheck } from '../audit-check.js';
import {
  type Account,
  type CallEnd,
  checkCharge,
  checkExpiry,
  checkFigure,
  checkRecordedCost,
  checkRelease,
  checkSettlement,
  computeExpectedCharge,
  findDue,
  type Reserved,
  wasRefused,
  wasSent,
} from './charge-rules.js';

type UnreservedEnd = { readonly event: CallEnd; readonly at: EventPlace };

/** Number of settled estimates that a run keeps. Their vendors are asked for an hour only. */
const MAX_ESTIMATES = 1_000;

/** State of a run as JSON. */
interface SavedLedger {
  readonly accounts: readonly (readonly [id: string, account: Account])[];
  readonly begun: readonly string[];
  readonly unreserved: readonly (readonly [id: string, end: UnreservedEnd])[];
}

class LedgerRun implements CheckRun<Parsed<SessionEvent | BudgetEvent>> {
  private readonly accounts: Map<string, Account>;
  /** Running attempts whose reservation is not in the log yet. */
  private readonly begun: Set<string>;
  private readonly unreserved: Map<string, UnreservedEnd>;
  /** Ids of the accounts that were settled with an estimate, the oldest first. */
  private readonly estimates: string[];
  private charges = 0;

  constructor(past: SavedLedger | undefined) {
    // The run changes accounts; the saved ones must stay unchanged.
    const saved = structuredClone(past);
    this.accounts = new Map(saved?.accounts);
    this.begun = new Set(saved?.begun);
    this.unreserved = new Map(saved?.unreserved);
    this.estimates = [...this.accounts].flatMap(([id, { settled }]) => (settled ? [id] : []));
  }

  see({ place: at, content: event }: Parsed<SessionEvent | BudgetEvent>): Finding[] {
    if (!('reservationId' in event.data)) return [];
    const id = `${at.workspace} ${event.data.reservationId}`;
    if (event.type === 'BudgetReserved') return this.reserve(event.data, at, id);
    if (event.type === 'ModelCallCompleted' || event.type === 'ModelCallAborted')
      return this.finish(event, at, id);
    if (event.type === 'ModelCallStarted') return this.begin(id);
    return this.charge(event as BudgetEvent, at, id);
  }

  end(): Finding[] {
    return [...this.accounts.values()].flatMap(findDue);
  }

  count(): number {
    return this.charges;
  }

  save(): SavedLedger {
    return { accounts: [...this.accounts], begun: [...this.begun], unreserved: [...this.unreserved] };
  }

  private reserve(reserved: Reserved, at: EventPlace, id: string): Finding[] {
    const account: Account = { reserved, at, end: null, expired: false, begun: this.begun.delete(id) };
    this.accounts.set(id, account);
    // The driver may lose its session after the request: the attempt then ends before its
    // reservation.
    const earlier = this.unreserved.get(id);
    this.unreserved.delete(id);
    return earlier ? this.endAccount(account, earlier.event, earlier.at) : [];
  }

  private begin(id: string): Finding[] {
    const account = this.accounts.get(id);
    if (account) account.begun = true;
    else this.begun.add(id);
    return [];
  }

  private finish(event: CallEnd, at: EventPlace, id: string): Finding[] {
    const account = this.accounts.get(id);
    this.begun.delete(id);
    if (account) return this.endAccount(account, event, at);
    if (wasSent(event))
      return [violation(at, `model attempt ${event.data.attempt} was sent without a reservation`)];
    if (!wasRefused(event)) this.unreserved.set(id, { event, at });
    return [];
  }

  private endAccount(account: Account, event: CallEnd, at: EventPlace): Finding[] {
    const { reserved } = account;
    const expected = computeExpectedCharge(reserved, event);
    const { generationId } = event.data;
    account.end = { at, expected, ...(generationId === undefined ? {} : { generationId }) };
    const isOwn = at.streamId === `session-${reserved.sessionId}` && event.data.attempt === reserved.attempt;
    return [
      ...(isOwn ? [] : [violation(at, `reservation ${reserved.reservationId} was made for another attempt`)]),
      ...checkRecordedCost(event, expected, reserved, at),
    ];
  }

  /** Keeps an account whose estimate the figure of its vendor may replace, the newest ones only. */
  private settle(account: Account, id: string, isEstimated: boolean): void {
    this.accounts.delete(id);
    if (!isEstimated || account.end?.generationId === undefined) return;
    account.settled = true;
    this.accounts.set(id, account);
    this.estimates.push(id);
    if (this.estimates.length > MAX_ESTIMATES) this.accounts.delete(this.estimates.shift() ?? '');
  }

  private charge(event: BudgetEvent, at: EventPlace, id: string): Finding[] {
    const account = this.accounts.get(id);
    if (!account) return []; // `reservations-end-once` checks the states of reservations
    switch (event.type) {
      case 'BudgetExpired':
        this.charges++;
        account.expired = true;
        return checkExpiry(event.data, account, at);
      case 'BudgetReleased':
        this.accounts.delete(id);
        return checkRelease(account, at);
      case 'BudgetSettled':
        this.charges++;
        this.settle(account, id, event.data.estimated);
        return checkSettlement(event.data, account, at);
      case 'BudgetCorrected':
        this.charges++;
        this.accounts.delete(id);
        return (event.data.figure ? checkFigure : checkCharge)(event.data, account, at);
      default:
        return [];
    }
  }
}

/**
 * Checks that every attempt that reached a provider is charged once, as its event in the session
 * records it, and that no other charge exists. Keeps reservations for which an event is still
 * expected, and ends of attempts without a reservation.
 */
export const ledgerEqualsUsage: MoneyCheck = {
  name: 'ledger-equals-usage',
  about:
    'each model attempt is charged once, exactly as its event in the session records it, an estimate until the figure of its vendor replaces it, and nothing else is charged',
  counts: 'charges',
  start: (past) => new LedgerRun(past as SavedLedger | undefined),
};
