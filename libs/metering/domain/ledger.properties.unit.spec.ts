import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { BudgetEvent, BudgetEventOf, BudgetScope } from '@antiphon/contracts/metering';
import { amountOf, decideBatch, emptyBalance, ledgerFrom } from '@antiphon/metering-domain';
import type {
  Balance,
  BudgetLimits,
  LedgerCommand,
  LedgerDecision,
  LedgerSnapshot,
} from '@antiphon/metering-domain';

const uuid = (n: number): string => `7a0c3f9e-0000-4000-8000-${String(n).padStart(12, '0')}`;
const prices = new Map([
  ['priced', { inputMicroUsdPerMtok: 333_333, outputMicroUsdPerMtok: 1_777_777 }],
  ['free', { inputMicroUsdPerMtok: 0, outputMicroUsdPerMtok: 0 }],
]);
const priceOf = (_: string, model: string) => prices.get(model) ?? null;
const TIMES = [
  '2026-11-30T23:59:00.000Z',
  '2026-11-30T23:59:59.999Z',
  '2026-12-01T00:00:00.000Z',
  '2026-12-02T08:00:00.000Z',
];

const reservation = fc.integer({ min: 1, max: 12 });
const maybe = (max: number) => fc.option(fc.integer({ min: 0, max }), { nil: null });
const limitsArb: fc.Arbitrary<BudgetLimits> = fc.record({
  session: maybe(5_000),
  daily: maybe(8_000),
  monthly: maybe(10_000),
  sessionMicroUsd: maybe(6_000),
  dailyMicroUsd: maybe(9_000),
  monthlyMicroUsd: maybe(12_000),
});

const reserveArb: fc.Arbitrary<LedgerCommand> = fc
  .record({
    n: reservation,
    model: fc.constantFrom('priced', 'free', 'unpriced'),
    inputBound: fc.nat(1_500),
    maxOutputTokens: fc.integer({ min: 1, max: 1_500 }),
    minOutputTokens: fc.integer({ min: 1, max: 600 }),
  })
  .map(({ n, ...ask }) => ({
    type: 'Reserve',
    request: {
      ...ask,
      workspace: 'default',
      reservationId: uuid(n),
      sessionId: uuid(1_000 + (n % 3)),
      turnId: uuid(2_000),
      attempt: n,
      agentId: 'main',
      sessionKey: 'k',
      provider: 'p',
      expiresAt: TIMES[n % TIMES.length] as string,
    },
  }));
const settleArb: fc.Arbitrary<LedgerCommand> = fc.record({
  type: fc.constant('Settle' as const),
  reservationId: reservation.map(uuid),
  outcome: fc.oneof(
    fc.record({
      kind: fc.constant('used' as const),
      inputTokens: fc.nat(2_000),
      outputTokens: fc.nat(2_000),
      estimated: fc.boolean(),
    }),
    fc.record({ kind: fc.constant('unknown' as const) }),
    fc.record({ kind: fc.constant('not_dispatched' as const), reason: fc.constant('x') }),
  ),
});
const expireArb: fc.Arbitrary<LedgerCommand> = fc.record({
  type: fc.constant('Expire' as const),
  reservationId: reservation.map(uuid),
});
const unfreezeArb: fc.Arbitrary<LedgerCommand> = fc.record({
  type: fc.constant('Unfreeze' as const),
  scopeKey: fc.constantFrom(`session/${uuid(1_000)}`, 'day/2026-11-30', 'month/2026-12'),
  by: fc.constant('op'),
  reason: fc.constant('seen'),
});
const batchesArb = fc.array(
  fc.record({
    limits: limitsArb,
    commands: fc.array(
      fc.oneof(
        { weight: 4, arbitrary: reserveArb },
        { weight: 3, arbitrary: settleArb },
        expireArb,
        unfreezeArb,
      ),
      {
        maxLength: 8,
      },
    ),
  }),
  { maxLength: 4 },
);

interface Played {
  readonly events: BudgetEvent[];
  readonly decisions: { command: LedgerCommand; decision: LedgerDecision; limits: BudgetLimits }[];
  readonly snapshot: LedgerSnapshot;
}

/**
 * Plays batches against a ledger kept as the adapter keeps it: by the changes that each decision
 * names.
 */
const play = (batches: { limits: BudgetLimits; commands: LedgerCommand[] }[]): Played => {
  const ledger = ledgerFrom();
  const played: Played = { events: [], decisions: [], snapshot: ledger.snapshot() };
  batches.forEach(({ limits, commands }, i) => {
    const rules = { limits, priceOf, now: TIMES[i % TIMES.length] as string };
    decideBatch(ledger.snapshot(), commands, rules).forEach((decision, j) => {
      played.decisions.push({ command: commands[j] as LedgerCommand, decision, limits });
      if ('error' in decision) return;
      for (const event of decision.events) {
        played.events.push(event);
        ledger.put(event);
      }
    });
  });
  return played;
};

const reservedOf = (events: readonly BudgetEvent[], id: string) =>
  events.find(
    (event): event is BudgetEventOf<'BudgetReserved'> =>
      event.type === 'BudgetReserved' && event.data.reservationId === id,
  );

/** An independent reckoning of one scope: per reservation, by its last word. */
const reckon = (events: readonly BudgetEvent[], scope: BudgetScope): Balance => {
  const standing = new Map<string, { open: boolean; tokens: number; microUsd: number }>();
  let frozenBy: string | null = null;
  for (const event of events) {
    if (event.type === 'BudgetScopeFrozen' || event.type === 'BudgetScopeUnfrozen') {
      if (event.data.scopeKey === scope.key)
        frozenBy = event.type === 'BudgetScopeFrozen' ? event.data.reservationId : null;
      continue;
    }
    if (!reservedOf(events, event.data.reservationId)?.data.scopes.some(({ key }) => key === scope.key))
      continue;
    const open = event.type === 'BudgetReserved';
    const amount =
      event.type === 'BudgetReleased'
        ? { tokens: 0, microUsd: 0 }
        : 'tokens' in event.data
          ? { tokens: event.data.tokens, microUsd: event.data.microUsd }
          : amountOf(event.data);
    standing.set(event.data.reservationId, { open, ...amount });
  }
  const sum = (open: boolean, unit: 'tokens' | 'microUsd'): number =>
    [...standing.values()]
      .filter((entry) => entry.open === open)
      .reduce((total, entry) => total + entry[unit], 0);
  return {
    reservedTokens: sum(true, 'tokens'),
    settledTokens: sum(false, 'tokens'),
    reservedMicroUsd: sum(true, 'microUsd'),
    settledMicroUsd: sum(false, 'microUsd'),
    frozenBy,
  };
};

describe('the ledger under any commands', () => {
  it('never admits beyond a limit in force, at any prefix', () =>
    fc.assert(
      fc.property(batchesArb, (batches) => {
        const { events } = play(batches);
        events.forEach((event, i) => {
          if (event.type !== 'BudgetReserved') return;
          for (const scope of event.data.scopes) {
            const before = reckon(events.slice(0, i), scope);
            if (scope.limitTokens !== null)
              expect(before.settledTokens + before.reservedTokens + event.data.tokens).toBeLessThanOrEqual(
                scope.limitTokens,
              );
            // A call that can cost nothing passes each limit of money.
            if (scope.limitMicroUsd !== null && event.data.microUsd > 0)
              expect(
                before.settledMicroUsd + before.reservedMicroUsd + event.data.microUsd,
              ).toBeLessThanOrEqual(scope.limitMicroUsd);
          }
        });
      }),
      { numRuns: 300 },
    ));

  it('has balances that equal the fold of the events, none below zero', () =>
    fc.assert(
      fc.property(batchesArb, (batches) => {
        const { events, snapshot } = play(batches);
        const rebuilt = ledgerFrom();
        for (const event of events) rebuilt.put(event);
        expect(rebuilt.snapshot()).toEqual(snapshot);
        const scopes = events.flatMap((event) => (event.type === 'BudgetReserved' ? event.data.scopes : []));
        for (const scope of scopes) {
          const balance = snapshot.balances.get(scope.key) ?? emptyBalance;
          expect(balance).toEqual(reckon(events, scope));
          const { frozenBy: _, ...amounts } = balance;
          for (const amount of Object.values(amounts)) expect(amount).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: 300 },
    ));

  it('ends each reservation at most once, and corrects only what expired', () =>
    fc.assert(
      fc.property(batchesArb, (batches) => {
        const lives = new Map<string, string>();
        for (const { type, data } of play(batches).events)
          if (!type.startsWith('BudgetScope'))
            lives.set(data.reservationId, `${lives.get(data.reservationId) ?? ''}>${type.slice(6)}`);
        for (const life of lives.values())
          expect(life).toMatch(/^>Reserved(>Settled|>Released(>Corrected)?|>Expired(>Corrected)?)?$/);
      }),
      { numRuns: 300 },
    ));

  it('refuses only what the least output would not fit, what has no price, or what is frozen', () =>
    fc.assert(
      fc.property(batchesArb, (batches) => {
        for (const { command, decision } of play(batches).decisions) {
          if (command.type !== 'Reserve' || 'error' in decision || decision.answer.type !== 'Reserve')
            continue;
          const { reply } = decision.answer;
          if (reply.granted) {
            expect(reply.maxOutputTokens).toBeLessThanOrEqual(command.request.maxOutputTokens);
            continue;
          }
          const { inputBound, minOutputTokens, maxOutputTokens } = command.request;
          const least = inputBound + Math.min(minOutputTokens, maxOutputTokens);
          if (reply.reason === 'over_limit' && reply.unit === 'tokens')
            expect(reply.used + least).toBeGreaterThan(reply.limit);
        }
      }),
      { numRuns: 300 },
    ));
});
