import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import {
  SESSION,
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

type Event = SessionEvent | BudgetEvent;
const states = (...events: BudgetEvent[]) => findingsOf(reservationsEndOnce, place(events));
const admissions = (...events: Event[]) =>
  findingsOf(admissionsStayWithinLimits(new BudgetBook()), place(events));

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
