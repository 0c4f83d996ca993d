import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { affordableOutputTokens, costMicroUsd } from '@antiphon/kernel';

const sonnet = { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 };
const tokens = fc.integer({ min: 0, max: 10_000_000 });
const price = fc.record({
  inputMicroUsdPerMtok: fc.integer({ min: 0, max: 1_000_000_000 }),
  outputMicroUsdPerMtok: fc.integer({ min: 0, max: 1_000_000_000 }),
});

describe('costMicroUsd', () => {
  it('multiplies tokens by the price', () => expect(costMicroUsd(sonnet, 1_000, 200)).toBe(6_000));

  it('rounds up once over the sum', () =>
    expect(costMicroUsd({ inputMicroUsdPerMtok: 400_000, outputMicroUsdPerMtok: 400_000 }, 1, 1)).toBe(1));

  it('is exact when the product exceeds the safe integers', () =>
    expect(
      costMicroUsd({ inputMicroUsdPerMtok: 999_999_999, outputMicroUsdPerMtok: 1 }, 999_999_999, 1),
    ).toBe(999_999_998_001));

  it('never decreases when tokens increase', () =>
    fc.assert(
      fc.property(price, tokens, tokens, tokens, (p, input, output, more) => {
        expect(costMicroUsd(p, input, output + more)).toBeGreaterThanOrEqual(costMicroUsd(p, input, output));
      }),
    ));
});

describe('affordableOutputTokens', () => {
  it('returns the largest output that still fits', () =>
    fc.assert(
      fc.property(price, tokens, fc.integer({ min: 0, max: 100_000_000 }), (p, input, microUsd) => {
        const output = affordableOutputTokens(p, input, microUsd);
        if (output < 0) expect(costMicroUsd(p, input, 0)).toBeGreaterThan(microUsd);
        else if (output !== Infinity) {
          expect(costMicroUsd(p, input, output)).toBeLessThanOrEqual(microUsd);
          expect(costMicroUsd(p, input, output + 1)).toBeGreaterThan(microUsd);
        }
      }),
    ));
});
