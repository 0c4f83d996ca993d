import type { BudgetEvent, BudgetEventOf } from '@antiphon/contracts/metering';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { open, violation } from '../audit-check.js';
import type { EventPlace, Finding, MoneyCheck } from '../audit-check.js';
import { expectedCharge } from './expected-charge.js';
import type { CallEnd, ExpectedCharge } from './expected-charge.js';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];

/** A reservation that something is still due of. */
interface Account {
  readonly reserved: Reserved;
  readonly at: EventPlace;
  /** Where its attempt ended, and what it costs by that. */
  end: { readonly at: EventPlace; readonly expected: ExpectedCharge } | null;
  expired: boolean;
  /** True once a model attempt that cites it has started. */
  begun: boolean;
}

type Unreserved = { readonly event: CallEnd; readonly at: EventPlace };

/** What this check keeps of the past, as JSON. */
interface SavedLedger {
  readonly accounts: readonly (readonly [id: string, account: Account])[];
  readonly begun: readonly string[];
  readonly unreserved: readonly (readonly [id: string, end: Unreserved])[];
}

const says = (charge: { inputTokens: number; outputTokens: number; microUsd: number }): string =>
  `${charge.inputTokens} + ${charge.outputTokens} tokens, ${charge.microUsd} micro-USD`;

const compare = (
  charge: BudgetEventOf<'BudgetSettled' | 'BudgetCorrected'>['data'],
  { end }: Account,
  at: EventPlace,
): Finding[] => {
  if (!end) return [violation(at, 'a charge came before the end of its model attempt')];
  const { expected } = end;
  const due = expected.kind === 'nothing' ? { inputTokens: 0, outputTokens: 0, microUsd: 0 } : expected;
  const isEqual =
    due.inputTokens === charge.inputTokens &&
    due.outputTokens === charge.outputTokens &&
    due.microUsd === charge.microUsd;
  return isEqual ? [] : [violation(at, `charged ${says(charge)}; the model attempt used ${says(due)}`)];
};

const settledFindings = (
  data: BudgetEventOf<'BudgetSettled'>['data'],
  account: Account,
  at: EventPlace,
): Finding[] => {
  const expected = account.end?.expected;
  if (expected?.kind === 'nothing') return [violation(at, 'a call that was never sent was charged')];
  const marked =
    expected && expected.estimated !== data.estimated
      ? [
          violation(
            at,
            `the charge is marked estimated=${data.estimated}, the usage estimated=${expected.estimated}`,
          ),
        ]
      : [];
  return [...compare(data, account, at), ...marked];
};

const releasedFindings = ({ end, begun }: Account, at: EventPlace): Finding[] => {
  // Asked for while the start of its attempt was being committed, which then did not come about.
  if (!end && !begun) return [];
  if (!end) return [violation(at, 'a reservation was released before the end of its model attempt')];
  return end.expected.kind === 'nothing' ? [] : [violation(at, 'a call that was sent was not charged')];
};

const costFindings = (
  event: CallEnd,
  expected: ExpectedCharge,
  { price }: Reserved,
  at: EventPlace,
): Finding[] => {
  if (event.type !== 'ModelCallCompleted' || expected.kind === 'nothing') return [];
  const due = price === null ? null : expected.microUsd;
  return event.data.costMicroUsd === due
    ? []
    : [
        violation(
          at,
          `the session says that the call cost ${event.data.costMicroUsd}; by its price it is ${due}`,
        ),
      ];
};

/** An expired reservation was charged its bound; that needs no correction when nobody knows better. */
const isBound = (expected: ExpectedCharge, { inputBound, outputBound }: Reserved): boolean =>
  expected.kind === 'charge' &&
  expected.estimated &&
  expected.inputTokens === inputBound &&
  expected.outputTokens === outputBound;

const due = ({ reserved, end, expired, at }: Account): Finding[] => {
  if (!end) return [open(at, 'the model attempt of this reservation has not ended')];
  if (expired && isBound(end.expected, reserved)) return [];
  return [open(end.at, `the end of this model attempt is not ${expired ? 'corrected' : 'settled'} yet`)];
};

/** A call that answered, or that the provider counted, was sent: without a reservation nobody pays for it. */
const wasSent = (event: CallEnd): boolean => event.type === 'ModelCallCompleted' || event.data.usage !== null;
const wasRefused = (event: CallEnd): boolean =>
  event.type === 'ModelCallAborted' && event.data.reason === 'budget_refused';

/**
 * Every attempt that reached a provider is charged what its event in the session says, once; nothing else is charged.
 * Keeps the reservations that something is still due of, and ends that no reservation was made for (yet).
 */
export const ledgerEqualsUsage: MoneyCheck = {
  name: 'ledger-equals-usage',
  about:
    'each model attempt is charged exactly what its event in the session says, once, and nothing else is charged',
  counts: 'charges',
  start: (past) => {
    // Accounts change as the check goes on; what was saved stays as it is.
    const saved = structuredClone(past as SavedLedger | undefined);
    const accounts = new Map<string, Account>(saved?.accounts);
    /** Attempts at work that no reservation was made for yet. */
    const begun = new Set<string>(saved?.begun);
    const unreserved = new Map<string, Unreserved>(saved?.unreserved);
    let charges = 0;

    const endAccount = (account: Account, event: CallEnd, at: EventPlace): Finding[] => {
      const { reserved } = account;
      const expected = expectedCharge(reserved, event);
      account.end = { at, expected };
      const own =
        at.streamId === `session-${reserved.sessionId}` && event.data.attempt === reserved.attempt
          ? []
          : [violation(at, `reservation ${reserved.reservationId} was made for another attempt`)];
      return [...own, ...costFindings(event, expected, reserved, at)];
    };
    const reserve = (reserved: Reserved, at: EventPlace, id: string): Finding[] => {
      const account: Account = { reserved, at, end: null, expired: false, begun: begun.delete(id) };
      accounts.set(id, account);
      // Asked for by a driver that had been given up by then; it ends as its attempt did.
      const late = unreserved.get(id);
      unreserved.delete(id);
      return late ? endAccount(account, late.event, late.at) : [];
    };
    const begin = (id: string): Finding[] => {
      const account = accounts.get(id);
      if (account) account.begun = true;
      else begun.add(id);
      return [];
    };
    const finish = (event: CallEnd, at: EventPlace, id: string): Finding[] => {
      const account = accounts.get(id);
      begun.delete(id);
      if (account) return endAccount(account, event, at);
      if (wasSent(event))
        return [violation(at, `model attempt ${event.data.attempt} was sent without a reservation`)];
      if (!wasRefused(event)) unreserved.set(id, { event, at });
      return [];
    };
    const expire = (
      data: BudgetEventOf<'BudgetExpired'>['data'],
      account: Account,
      at: EventPlace,
    ): Finding[] => {
      charges++;
      account.expired = true;
      const { tokens, microUsd } = account.reserved;
      return data.tokens === tokens && data.microUsd === microUsd
        ? []
        : [
            violation(
              at,
              `expired at ${data.tokens} tokens, ${data.microUsd} micro-USD; its bound was ${tokens}, ${microUsd}`,
            ),
          ];
    };
    const charge = (event: BudgetEvent, at: EventPlace, id: string): Finding[] => {
      const account = accounts.get(id);
      if (!account) return []; // the states of reservations are another check's
      if (event.type === 'BudgetExpired') return expire(event.data, account, at);
      if (event.type === 'BudgetReleased') {
        accounts.delete(id);
        return releasedFindings(account, at);
      }
      if (event.type !== 'BudgetSettled' && event.type !== 'BudgetCorrected') return [];
      charges++;
      accounts.delete(id);
      return event.type === 'BudgetSettled'
        ? settledFindings(event.data, account, at)
        : compare(event.data, account, at);
    };
    const see = (at: EventPlace, event: SessionEvent | BudgetEvent): Finding[] => {
      if (!('reservationId' in event.data)) return [];
      const id = `${at.workspace} ${event.data.reservationId}`;
      if (event.type === 'BudgetReserved') return reserve(event.data, at, id);
      if (event.type === 'ModelCallCompleted' || event.type === 'ModelCallAborted')
        return finish(event, at, id);
      if (event.type === 'ModelCallStarted') return begin(id);
      return charge(event as BudgetEvent, at, id);
    };
    return {
      see: ({ place, content }) => see(place, content),
      end: () => [...accounts.values()].flatMap(due),
      count: () => charges,
      save: (): SavedLedger => ({
        accounts: [...accounts],
        begun: [...begun],
        unreserved: [...unreserved],
      }),
    };
  },
};
