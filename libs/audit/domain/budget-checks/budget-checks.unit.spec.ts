import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import {
  SESSION,
  callAborted,
  callCompleted,
  callStarted,
  corrected,
  expired,
  findingsOf,
  place,
  released,
  reserved,
  scopeFrozen,
  scopeUnfrozen,
  settled,
  uuid,
} from '../audit-examples.spec.js';
import { admissionsStayWithinLimits, reservationsEndOnce } from './admissions.js';
import { BudgetBook } from './budget-book.js';
import { ledgerEqualsUsage } from './ledger-equals-usage.js';

type Event = SessionEvent | BudgetEvent;
const states = (...events: BudgetEvent[]) => findingsOf(reservationsEndOnce, place(events));
const admissions = (...events: Event[]) =>
  findingsOf(admissionsStayWithinLimits(new BudgetBook()), place(events));
const ledger = (...events: Event[]) => findingsOf(ledgerEqualsUsage, place(events));

/** Charge of a lost call at its bound. */
const ESTIMATED = settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_300, estimated: true });

describe('reservations-end-once', () => {
  it.each([
    ['settled', [reserved(1), settled(1)]],
    ['settled over its bound', [reserved(1), settled(1), scopeFrozen(1), scopeUnfrozen(1)]],
    ['released', [reserved(1), released(1)]],
    ['expired', [reserved(1), expired(1)]],
    ['expired and corrected', [reserved(1), expired(1), corrected(1)]],
    ['estimated and corrected by its vendor', [reserved(1), ESTIMATED, corrected(1, 10, {})]],
  ])('accepts a reservation that was %s', (_, events) => expect(states(...events)).toEqual([]));

  it('reports an open reservation', () =>
    expect(states(reserved(1))).toEqual(['open 1 the reservation has not ended']));

  it.each([
    [
      'a second charge',
      [reserved(1), settled(1), settled(1)],
      'violation 3 BudgetSettled of a reservation that was settled',
    ],
    [
      'a charge after a release',
      [reserved(1), released(1), settled(1)],
      'violation 3 BudgetSettled of a reservation that was released',
    ],
    [
      'a correction of a settled reservation',
      [reserved(1), settled(1), corrected(1)],
      'violation 3 BudgetCorrected of a reservation that was settled',
    ],
    [
      'a correction of an estimate without a figure of its vendor',
      [reserved(1), ESTIMATED, corrected(1)],
      'violation 3 BudgetCorrected of a reservation that was estimated',
    ],
    [
      'a second figure of a vendor',
      [reserved(1), ESTIMATED, corrected(1, 10, {}), corrected(1, 10, {})],
      'violation 4 BudgetCorrected of a reservation that was corrected',
    ],
    [
      'a second correction',
      [reserved(1), expired(1), corrected(1), corrected(1)],
      'violation 4 BudgetCorrected of a reservation that was corrected',
    ],
    [
      'an end without a reservation',
      [settled(1)],
      'violation 1 BudgetSettled of a reservation that was none',
    ],
  ])('reports %s', (_, events, finding) => expect(states(...events)).toEqual([finding]));

  it.each([
    ['settles within the bound', settled(1), []],
    [
      'charges more than the bound',
      settled(1, { outputTokens: 9_000 }),
      ['violation 2 the commit of a driver charged more than the bound'],
    ],
    ['releases the reservation', released(1), ['violation 2 a driver appended BudgetReleased']],
  ])('judges a driver that %s', (_, event, findings) => {
    const [first, second] = place([reserved(1), event]);
    expect(findingsOf(reservationsEndOnce, [first!, { ...second!, epoch: 3 }])).toEqual(findings);
  });

  it.each([
    ['reserves at the price in the event', {}, []],
    [
      'reserves less money than its bound costs',
      { price: { inputMicroUsdPerMtok: 9_000_000, outputMicroUsdPerMtok: 9_000_000 }, microUsd: 1 },
      [expect.stringContaining('violation 1 the commit of a driver reserved 1 micro-USD')],
    ],
  ])('judges a driver that %s', (_, more, findings) => {
    const [first] = place([reserved(1, more)]);
    const open = expect.stringContaining('the reservation has not ended');
    expect(findingsOf(reservationsEndOnce, [{ ...first!, epoch: 3 }])).toEqual([...findings, open]);
  });

  it('reports an event in the stream of another reservation', () => {
    const [first] = place([reserved(1)]);
    const moved = { ...first!, place: { ...first!.place, streamId: `budget-${uuid(9)}` } };
    expect(findingsOf(reservationsEndOnce, [moved])[0]).toBe(`violation 1 BudgetReserved names ${uuid(501)}`);
  });
});

describe('admissions-stay-within-limits', () => {
  it('accepts admissions within every limit', () =>
    expect(
      admissions(
        reserved(1),
        reserved(2),
        reserved(3),
        settled(1),
        settled(2),
        released(3),
        reserved(4),
        reserved(5),
      ),
    ).toEqual([]));

  it('reports the admission that exceeded a limit', () =>
    expect(admissions(reserved(1), reserved(2), reserved(3), reserved(4))).toEqual([
      `violation 4 session/${SESSION} held 900 tokens of 1000 when 300 more were admitted`,
      'violation 4 day/2026-11-21 held 9900 micro-USD of 10000 when 3300 more were admitted',
    ]));

  it('counts settled usage, even above its bound', () =>
    expect(admissions(reserved(1), settled(1, { outputTokens: 700, microUsd: 0 }), reserved(2))).toEqual([
      `violation 3 session/${SESSION} held 790 tokens of 1000 when 300 more were admitted`,
    ]));

  it('counts an expired reservation at its bound until its correction', () => {
    const three = [reserved(1), reserved(2), reserved(3), expired(1), released(2), released(3)];
    const next = reserved(4, { inputBound: 600, tokens: 800, microUsd: 100 });
    expect(admissions(...three, next)).toHaveLength(1);
    expect(admissions(...three, corrected(1), next)).toEqual([]);
  });

  it('reports an admission under a frozen scope until it is unfrozen', () => {
    expect(admissions(reserved(1), settled(1), scopeFrozen(1), reserved(2))).toEqual([
      `violation 4 session/${SESSION} was frozen when a call was admitted`,
    ]);
    expect(admissions(reserved(1), settled(1), scopeFrozen(1), scopeUnfrozen(1), reserved(2))).toEqual([]);
  });

  it('accepts a call that costs nothing under a limit that is overspent or frozen', () => {
    const free = { price: { inputMicroUsdPerMtok: 0, outputMicroUsdPerMtok: 0 }, microUsd: 0 };
    const limits = { limitTokens: null, limitMicroUsd: 100 };
    const scope = { kind: 'session', key: `session/${SESSION}`, ...limits } as const;
    const spent = [reserved(1, { scopes: [{ ...scope, limitMicroUsd: 3_300 }] }), settled(1)];
    expect(admissions(...spent, reserved(2, { ...free, scopes: [scope] }))).toEqual([]);
    expect(admissions(...spent, scopeFrozen(1), reserved(2, { ...free, scopes: [scope] }))).toEqual([]);
    expect(admissions(...spent, reserved(2, { scopes: [scope] }))).toHaveLength(1);
  });

  it('reports an admission without a price under a money limit', () =>
    expect(admissions(reserved(1, { price: null, microUsd: 0 }))).toEqual([
      'violation 1 a call without a price was admitted under the money limit of day/2026-11-21',
    ]));

  it('reports a bound that is not the sum of its parts', () =>
    expect(admissions(reserved(1, { tokens: 299 }))).toEqual([
      'violation 1 the bound is not the sum of its parts',
    ]));

  it('separates workspaces', () => {
    const events = place<Event>([reserved(1), reserved(2), reserved(3), reserved(4)]);
    const other = events.map((event, i) =>
      i < 3 ? event : { ...event, place: { ...event.place, workspace: 'other' } },
    );
    expect(findingsOf(admissionsStayWithinLimits(new BudgetBook()), other)).toEqual([]);
  });
});

/** Cached input costs a tenth to read and twice as much to write. */
const CACHED = {
  price: {
    ...{ inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 },
    ...{ cacheReadMicroUsdPerMtok: 300_000, cacheWriteMicroUsdPerMtok: 4_000_000 },
  },
  microUsd: 3_400,
};
const CACHED_USAGE = {
  ...{ inputTokens: 90, cacheReadTokens: 60, cacheWriteTokens: 20, outputTokens: 10, estimated: false },
};

describe('the figure of a vendor', () => {
  const replacing = (figure: Parameters<typeof corrected>[2], generationId = 'gen-1'): string[] =>
    ledger(
      ...[callStarted(1), reserved(1), callAborted(1, { generationId }), ESTIMATED],
      corrected(1, 10, figure),
    );

  it.each([
    ['of another call', replacing({}, 'gen-2'), 'violation 5 the figure is that of another call'],
    [
      'for another charge',
      replacing({ replacedTokens: 299 }),
      'violation 5 the figure replaced 299 tokens; 300 were charged',
    ],
  ])('%s is reported', (_, findings, finding) => expect(findings).toEqual([finding]));

  it('moves the balances of a reservation that the book has dropped', () => {
    const book = new BudgetBook();
    const events = [reserved(1), ESTIMATED, corrected(1, 10, {})];
    for (const one of place(events)) book.put(one.place.workspace, one.content as BudgetEvent);
    expect([...book.scopes()].map(([, scope]) => scope)).toMatchObject([
      { reservedTokens: 0, settledTokens: 100, settledMicroUsd: 420 },
      { reservedTokens: 0, settledTokens: 100, settledMicroUsd: 420 },
    ]);
  });
});

describe('ledger-equals-usage', () => {
  const calls = (attempt: number): Event[] => [callStarted(attempt), reserved(attempt)];

  it.each([
    ['a completed call', [...calls(1), callCompleted(1), settled(1)]],
    [
      'a lost call at its bound',
      [
        ...calls(1),
        callAborted(1),
        settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_300, estimated: true }),
      ],
    ],
    [
      'a lost call whose vendor told its usage later',
      [...calls(1), callAborted(1, { generationId: 'gen-1' }), ESTIMATED, corrected(1, 10, {})],
    ],
    [
      'an expired call whose vendor told its usage later',
      [...calls(1), expired(1), callAborted(1, { generationId: 'gen-1' }), corrected(1, 10, {})],
    ],
    [
      'a failed call that the provider counted',
      [
        ...calls(1),
        callAborted(1, { usage: { inputTokens: 90, outputTokens: 10, estimated: false } }),
        settled(1),
      ],
    ],
    [
      'a call that its provider refused',
      [...calls(1), callAborted(1, { refused: true, reason: 'provider_error' }), released(1)],
    ],
    [
      'a call that was cancelled in the moment of its refusal',
      [...calls(1), callAborted(1, { refused: true, reason: 'cancelled' }), released(1)],
    ],
    [
      'a call that its provider refused while the process stopped in order',
      [...calls(1), callAborted(1, { refused: true, reason: 'driver_lost', released: true }), released(1)],
    ],
    [
      'a call with cached input at its prices',
      [
        callStarted(1),
        reserved(1, CACHED),
        callCompleted(1, { usage: CACHED_USAGE, costMicroUsd: 278 }),
        settled(1, { ...CACHED_USAGE, microUsd: 278 }),
      ],
    ],
    [
      'a lost call at the bound with the dearest price of input',
      [
        ...[callStarted(1), reserved(1, CACHED), callAborted(1)],
        settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_400, estimated: true }),
      ],
    ],
    [
      'a cancelled call with the input that was reported and the limit of its output',
      [
        ...calls(1),
        callAborted(1, { usage: { inputTokens: 90, outputTokens: 200, estimated: true } }),
        settled(1, { outputTokens: 200, estimated: true, microUsd: 3_270 }),
      ],
    ],
    ['a call that was never sent', [...calls(1), callAborted(1, { dispatched: false }), released(1)]],
    ['a refused call', [callStarted(1), callAborted(1, { dispatched: false, reason: 'budget_refused' })]],
    ['a reservation whose call never started', [reserved(1), released(1)]],
    [
      'a driver that was lost before it had reserved',
      [callStarted(1), callAborted(1, { reason: 'driver_lost' })],
    ],
    ['an expiry that was corrected', [...calls(1), expired(1), callCompleted(1), corrected(1)]],
    ['an expiry without a later usage', [...calls(1), expired(1), callAborted(1)]],
    [
      'a reservation after the end of its attempt',
      [
        callStarted(1),
        callAborted(1, { reason: 'driver_lost' }),
        reserved(1),
        settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_300, estimated: true }),
      ],
    ],
  ])('accepts %s', (_, events) => expect(ledger(...events)).toEqual([]));

  it.each([
    ['a running call', calls(1), 'open 2 the model attempt of this reservation has not ended'],
    [
      'a call that is not settled yet',
      [...calls(1), callCompleted(1)],
      'open 3 the end of this model attempt is not settled yet',
    ],
    [
      'an estimate that is not corrected yet',
      [...calls(1), expired(1), callCompleted(1)],
      'open 4 the end of this model attempt is not corrected yet',
    ],
  ])('reports %s as open', (_, events, finding) => expect(ledger(...events)).toEqual([finding]));

  it.each([
    [
      'a charge that differs from the usage',
      [...calls(1), callCompleted(1), settled(1, { outputTokens: 11 })],
      'violation 4 charged 90 + 11 tokens, 420 micro-USD; the model attempt used 90 + 10 tokens, 420 micro-USD',
    ],
    [
      'a charge that counts cached input as other input',
      [
        callStarted(1),
        reserved(1, CACHED),
        callCompleted(1, { usage: CACHED_USAGE, costMicroUsd: 278 }),
        settled(1),
      ],
      'violation 4 charged 90 + 10 tokens, 420 micro-USD; the model attempt used 90 (60 read from a cache, 20 written) + 10 tokens, 278 micro-USD',
    ],
    [
      'a charge at another price',
      [...calls(1), callCompleted(1), settled(1, { microUsd: 421 })],
      'violation 4 charged 90 + 10 tokens, 421 micro-USD; the model attempt used 90 + 10 tokens, 420 micro-USD',
    ],
    [
      'an exact charge that is marked as an estimate',
      [...calls(1), callCompleted(1), settled(1, { estimated: true })],
      'violation 4 the charge is marked estimated=true, the usage estimated=false',
    ],
    [
      'a charge before the call ended',
      [...calls(1), settled(1), callCompleted(1)],
      'violation 3 a charge came before the end of its model attempt',
    ],
    [
      'a charge for an unsent call',
      [
        ...calls(1),
        callAborted(1, { dispatched: false }),
        settled(1, { inputTokens: 0, outputTokens: 0, microUsd: 0 }),
      ],
      'violation 4 a call that was never sent, or was refused by its provider, was charged',
    ],
    [
      'a charge for a refused call',
      [
        ...calls(1),
        callAborted(1, { refused: true, reason: 'provider_error' }),
        settled(1, { inputTokens: 100, outputTokens: 200, microUsd: 3_300, estimated: true }),
      ],
      'violation 4 a call that was never sent, or was refused by its provider, was charged',
    ],
    [
      'a lost call that is called refused',
      [...calls(1), callAborted(1, { refused: true, reason: 'driver_lost' }), released(1)],
      'violation 4 a call that was sent was not charged',
    ],
    [
      'a call that was not charged',
      [...calls(1), callCompleted(1), released(1)],
      'violation 4 a call that was sent was not charged',
    ],
    [
      'a release during the call',
      [...calls(1), released(1)],
      'violation 3 a reservation was released before the end of its model attempt',
    ],
    [
      'a call without a reservation',
      [callStarted(1), callCompleted(1)],
      'violation 2 model attempt 1 was sent without a reservation',
    ],
    [
      'a correction that differs from the usage',
      [...calls(1), expired(1), callCompleted(1), corrected(1, 12)],
      'violation 5 charged 90 + 12 tokens, 420 micro-USD; the model attempt used 90 + 10 tokens, 420 micro-USD',
    ],
    [
      'an expiry that differs from the bound',
      [...calls(1), expired(1, 1), callAborted(1)],
      'violation 3 expired at 1 tokens, 3300 micro-USD; its bound was 300, 3300',
    ],
    [
      'a reservation made for another attempt',
      [callStarted(1), reserved(1, { attempt: 7 }), callCompleted(1), settled(1)],
      `violation 3 reservation ${uuid(501)} was made for another attempt`,
    ],
    [
      'a wrong cost in the session',
      [...calls(1), callCompleted(1, { costMicroUsd: 1 }), settled(1)],
      'violation 3 the session records a cost of 1; by its price it is 420',
    ],
  ])('reports %s', (_, events, finding) => expect(ledger(...events)).toContain(finding));
});
