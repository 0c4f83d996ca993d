import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { affordableOutputTokens, boundMicroUsd, costMicroUsd } from '@antiphon/kernel';

const sonnet = { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 };
const tokens = fc.integer({ min: 0, max: 10_000_000 });
const price = fc.record({
  inputMicroUsdPerMtok: fc.integer({ min: 0, max: 1_000_000_000 }),
  outputMicroUsdPerMtok: fc.integer({ min: 0, max: 1_000_000_000 }),
});

const usage = (inputTokens: number, outputTokens: number) => ({ inputTokens, outputTokens });
const cachePrice = fc.record({
  ...{ inputMicroUsdPerMtok: fc.integer({ min: 0, max: 1e9 }), outputMicroUsdPerMtok: fc.constant(0) },
  cacheReadMicroUsdPerMtok: fc.option(fc.integer({ min: 0, max: 1e9 }), { nil: undefined }),
  cacheWriteMicroUsdPerMtok: fc.option(fc.integer({ min: 0, max: 1e9 }), { nil: undefined }),
  cacheWrite1hMicroUsdPerMtok: fc.option(fc.integer({ min: 0, max: 1e9 }), { nil: undefined }),
});

describe('costMicroUsd', () => {
  it('multiplies tokens by the price', () => expect(costMicroUsd(sonnet, usage(1_000, 200))).toBe(6_000));

  it('rounds up once over the sum', () =>
    expect(costMicroUsd({ inputMicroUsdPerMtok: 400_000, outputMicroUsdPerMtok: 400_000 }, usage(1, 1))).toBe(
      1,
    ));

  it('is exact when the product exceeds the safe integers', () =>
    expect(
      costMicroUsd({ inputMicroUsdPerMtok: 999_999_999, outputMicroUsdPerMtok: 1 }, usage(999_999_999, 1)),
    ).toBe(999_999_998_001));

  it('never decreases when tokens increase', () =>
    fc.assert(
      fc.property(price, tokens, tokens, tokens, (p, input, output, more) => {
        expect(costMicroUsd(p, usage(input, output + more))).toBeGreaterThanOrEqual(
          costMicroUsd(p, usage(input, output)),
        );
      }),
    ));

  it('costs cached input as other input where it has no price of its own', () =>
    expect(costMicroUsd(sonnet, { ...usage(1_000, 200), cacheReadTokens: 400, cacheWriteTokens: 500 })).toBe(
      6_000,
    ));

  it('never exceeds the bound, however the input is cached', () =>
    fc.assert(
      fc.property(cachePrice, tokens, tokens, tokens, (p, fresh, read, written) => {
        const inputTokens = fresh + read + written;
        const cached = { cacheReadTokens: read, cacheWriteTokens: written, cacheWrite1hTokens: written >> 1 };
        expect(costMicroUsd(p, { inputTokens, outputTokens: 0, ...cached })).toBeLessThanOrEqual(
          boundMicroUsd(p, inputTokens, 0),
        );
      }),
    ));
});

describe('affordableOutputTokens', () => {
  it('returns the largest output that still fits', () =>
    fc.assert(
      fc.property(price, tokens, fc.integer({ min: 0, max: 100_000_000 }), (p, input, microUsd) => {
        const output = affordableOutputTokens(p, input, microUsd);
        if (output < 0) expect(boundMicroUsd(p, input, 0)).toBeGreaterThan(microUsd);
        else if (output !== Infinity) {
          expect(boundMicroUsd(p, input, output)).toBeLessThanOrEqual(microUsd);
          expect(boundMicroUsd(p, input, output + 1)).toBeGreaterThan(microUsd);
        }
      }),
    ));
});
