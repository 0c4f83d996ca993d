import fc from 'fast-check';
import type { BudgetLimits } from '@antiphon/metering-domain';
import { violationsOf } from './invariants.js';
import { simulate } from './simulate.js';

const limits = fc.record<BudgetLimits>({
  session: fc.constantFrom(null, 1_500),
  daily: fc.constantFrom(null, 3_000, 800),
  monthly: fc.constant(null),
  sessionMicroUsd: fc.constant(null),
  dailyMicroUsd: fc.constant(null),
  monthlyMicroUsd: fc.constant(null),
});

/**
 * Throws when a promise is broken in one of so many simulations, with the seed and the path that repeat it
 * (`ANTIPHON_TEST_SEED`; without one, every time is another).
 */
export const keepPromises = (numRuns: number, seed = process.env['ANTIPHON_TEST_SEED']): void =>
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), limits, (chance, limit) => {
      const numbers = chance[Symbol.iterator]();
      const world = simulate((bound) => (numbers.next().value as number) % bound, limit);
      const violations = violationsOf(world);
      if (violations.length > 0) throw new Error(violations.join('\n'));
    }),
    { numRuns, ...(seed === undefined ? {} : { seed: Number(seed) }) },
  );
