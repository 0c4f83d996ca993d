import { describe, expect, it } from '@jest/globals';
import type { BudgetEvent, ReserveBudgetRequest } from '@antiphon/contracts/metering';
import { decideBatch, ledgerFrom } from '@antiphon/metering-domain';
import type { BudgetLimits, LedgerCommand, LedgerDecision } from '@antiphon/metering-domain';

const uuid = (n: number): string => `7a0c3f9e-0000-4000-8000-${String(n).padStart(12, '0')}`;
const SESSION = uuid(999_999);
const none: BudgetLimits = {
  session: null,
  daily: null,
  monthly: null,
  sessionMicroUsd: null,
  dailyMicroUsd: null,
  monthlyMicroUsd: null,
};
const rules = (limits: Partial<BudgetLimits> = {}, now = '2026-11-21T10:00:00.000Z') => ({
  limits: { ...none, ...limits },
  priceOf: () => null,
  now,
});
const request = (n: number, over: Partial<ReserveBudgetRequest> = {}): ReserveBudgetRequest => ({
  workspace: 'default',
  reservationId: uuid(n),
  sessionId: SESSION,
  turnId: uuid(888_888),
  attempt: n,
  agentId: 'main',
  sessionKey: 'main:cli:me:you',
  provider: 'scripted',
  model: 'echo',
  inputBound: 100,
  maxOutputTokens: 400,
  minOutputTokens: 400,
  expiresAt: '2026-11-21T10:05:00.000Z',
  ...over,
});
const reserve = (n: number, over: Partial<ReserveBudgetRequest> = {}): LedgerCommand => ({
  type: 'Reserve',
  request: request(n, over),
});
const settle = (n: number, inputTokens: number, outputTokens: number): LedgerCommand => ({
  type: 'Settle',
  reservationId: uuid(n),
  outcome: { kind: 'used', inputTokens, outputTokens, estimated: false },
});
const eventsOf = (decisions: LedgerDecision[]): BudgetEvent[] =>
  decisions.flatMap((decision) => ('error' in decision ? [] : decision.events));
const after = (...batches: LedgerDecision[][]) => {
  const ledger = ledgerFrom();
  for (const event of batches.flatMap(eventsOf)) ledger.put(event);
  return ledger.snapshot();
};
const replies = (decisions: LedgerDecision[]) =>
  decisions.map((decision) => ('error' in decision ? decision.error.code : decision.answer));
const granted = (decisions: LedgerDecision[]): boolean[] =>
  decisions.map(
    (decision) => 'answer' in decision && decision.answer.type === 'Reserve' && decision.answer.reply.granted,
  );

describe('a batch', () => {
  it('admits in order, each call on what the earlier ones left', () => {
    const decisions = decideBatch(after(), [reserve(1), reserve(2), reserve(3)], rules({ session: 1_000 }));
    expect(granted(decisions)).toEqual([true, true, false]);
    expect(decisions[2]).toMatchObject({
      answer: { reply: { message: 'token budget exceeded (session: 1000/1000)' } },
      events: [],
    });
  });

  it('lets a settlement free its difference for the next call of the same batch', () => {
    const first = decideBatch(after(), [reserve(1), reserve(2)], rules({ session: 1_000 }));
    const decisions = decideBatch(
      after(first),
      [settle(1, 50, 50), reserve(3, { minOutputTokens: 100 })],
      rules({ session: 1_000 }),
    );
    expect(decisions[1]).toMatchObject({ answer: { reply: { granted: true, maxOutputTokens: 300 } } });
  });

  it('answers a repeated request with the first grant and adds no fact', () => {
    const first = decideBatch(after(), [reserve(1, { minOutputTokens: 1 })], rules({ session: 300 }));
    const again = decideBatch(after(first), [reserve(1, { minOutputTokens: 1 })], rules({ session: 300 }));
    expect(replies(again)).toEqual(replies(first));
    expect(eventsOf(again)).toEqual([]);
  });

  it('answers the same request twice within one batch with one fact', () => {
    const decisions = decideBatch(after(), [reserve(1), reserve(1)], rules({ session: 500 }));
    expect(granted(decisions)).toEqual([true, true]);
    expect(eventsOf(decisions)).toHaveLength(1);
  });

  it.each([
    ['another session', { sessionId: uuid(5) }],
    ['another model', { model: 'other' }],
    ['a larger request', { inputBound: 101 }],
  ])('refuses the id of a reservation for %s, and only that', (_, over) => {
    const first = decideBatch(after(), [reserve(1)], rules());
    const decisions = decideBatch(after(first), [reserve(1, over), reserve(2)], rules());
    expect(replies(decisions)[0]).toBe('METERING.RESERVATION_CONFLICT');
    expect(granted(decisions)).toEqual([false, true]);
  });

  it('grants nothing on a reservation that has ended', () => {
    const first = decideBatch(after(), [reserve(1), settle(1, 1, 1)], rules());
    expect(replies(decideBatch(after(first), [reserve(1)], rules()))).toEqual(['METERING.RESERVATION_ENDED']);
  });

  it('refuses a bound beyond any model', () =>
    expect(replies(decideBatch(after(), [reserve(1, { inputBound: 1_000_000_001 })], rules()))).toEqual([
      'METERING.BOUND_TOO_LARGE',
    ]));

  it('returns missing for an unknown reservation', () =>
    expect(replies(decideBatch(after(), [settle(1, 1, 1)], rules()))).toEqual([
      { type: 'Settle', status: 'missing' },
    ]));

  it('charges a call to the day of its admission', () => {
    const first = decideBatch(after(), [reserve(1)], rules({ daily: 500 }, '2026-11-21T23:59:59.999Z'));
    const next = decideBatch(
      after(first),
      [settle(1, 100, 300), reserve(2)],
      rules({ daily: 500 }, '2026-11-22T00:00:00.000Z'),
    );
    expect(granted(next)).toEqual([false, true]);
    const { balances } = after(first, next);
    expect(balances.get('day/2026-11-21')).toMatchObject({ settledTokens: 400, reservedTokens: 0 });
    expect(balances.get('day/2026-11-22')).toMatchObject({ settledTokens: 0, reservedTokens: 500 });
    expect(balances.get('month/2026-11')).toMatchObject({ settledTokens: 400, reservedTokens: 500 });
  });

  describe('freezes', () => {
    const limits = rules({ session: 1_000 });
    const scopeKey = `session/${SESSION}`;
    const look: LedgerCommand = { type: 'Unfreeze', scopeKey, by: 'op', reason: 'seen' };

    it('a scope whose limit a charge over its bound broke, until an operator unfreezes it', () => {
      const first = decideBatch(after(), [reserve(1), settle(1, 100, 1_000)], limits);
      expect(eventsOf(first)).toMatchObject([
        { type: 'BudgetReserved' },
        { type: 'BudgetSettled', data: { inputTokens: 100, outputTokens: 1_000 } },
        { type: 'BudgetScopeFrozen', data: { scopeKey, boundTokens: 500, usedTokens: 1_100 } },
      ]);
      const second = decideBatch(after(first), [reserve(2)], limits);
      expect(second[0]).toMatchObject({ answer: { reply: { reason: 'over_limit', used: 1_100 } } });
      const raised = rules({ session: 10_000 });
      const third = decideBatch(after(first), [reserve(2), look, reserve(3), look], raised);
      expect(replies(third)).toMatchObject([
        { reply: { reason: 'frozen', used: 1_100 } },
        { unfrozen: true },
        { reply: { granted: true } },
        { unfrozen: false },
      ]);
      expect(third[1]).toMatchObject({ reservationId: uuid(1), expectedVersion: 3 });
    });

    it('each limited scope at a charge ten times over its bound, also within the limit', () => {
      const wide = rules({ session: 1_000_000, daily: 1_000_000 });
      const first = decideBatch(after(), [reserve(1), settle(1, 100, 4_901)], wide);
      expect(eventsOf(first).slice(2)).toMatchObject([
        { type: 'BudgetScopeFrozen', data: { scopeKey, boundTokens: 500, usedTokens: 5_001 } },
        { type: 'BudgetScopeFrozen', data: { scopeKey: expect.stringMatching(/^day/) } },
      ]);
      expect(replies(decideBatch(after(first), [reserve(2)], wide))).toMatchObject([
        { reply: { granted: false, reason: 'frozen' } },
      ]);
    });

    it('nothing while the limit holds: later admissions count what was charged', () => {
      const first = decideBatch(after(), [reserve(1), settle(1, 100, 600)], rules({ session: 1_200 }));
      expect(eventsOf(first).map(({ type }) => type)).toEqual(['BudgetReserved', 'BudgetSettled']);
      const next = decideBatch(after(first), [reserve(2), reserve(3)], rules({ session: 1_200 }));
      expect(granted(next)).toEqual([true, false]);
    });

    it('nothing where a lowered limit is passed by a charge within its bound', () => {
      const first = decideBatch(after(), [reserve(1)], rules({ session: 1_000 }));
      const second = decideBatch(after(first), [settle(1, 100, 400)], rules({ session: 100 }));
      expect(eventsOf(second)).toHaveLength(1);
    });

    it('nothing without a limit', () => {
      const decisions = decideBatch(after(), [reserve(1), settle(1, 100, 60_000)], rules());
      expect(eventsOf(decisions)).toHaveLength(2);
    });

    it('by money as by tokens, and by a late correction', () => {
      const price = { inputMicroUsdPerMtok: 1_000_000, outputMicroUsdPerMtok: 10_000_000 };
      const money = { ...rules({ dailyMicroUsd: 5_000 }, '2026-11-21T10:06:00.000Z'), priceOf: () => price };
      const first = decideBatch(
        after(),
        [reserve(1), { type: 'Expire', reservationId: uuid(1) }, settle(1, 0, 501)],
        money,
      );
      expect(eventsOf(first).at(-1)).toMatchObject({
        type: 'BudgetScopeFrozen',
        data: { scopeKey: 'day/2026-11-21', boundMicroUsd: 4_100, usedMicroUsd: 5_010 },
      });
    });
  });

  it('returns the balance changes of each decision', () => {
    const [decision] = decideBatch(after(), [reserve(1)], rules());
    expect(decision).toMatchObject({ expectedVersion: 0, changes: [{}, {}, {}] });
    expect(decision).toMatchObject({
      changes: expect.arrayContaining([
        {
          scopeKey: 'day/2026-11-21',
          reservedTokens: 500,
          settledTokens: 0,
          reservedMicroUsd: 0,
          settledMicroUsd: 0,
        },
      ]),
    });
  });
});
