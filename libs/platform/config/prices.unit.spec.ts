import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { findPrice, matchesPattern } from '@antiphon/config';
import type { ProviderConfig, ProviderKind } from '@antiphon/config';
import { costMicroUsd } from '@antiphon/kernel';
import { camelKeys } from './camel-keys.js';
import { DEFAULT_PRICES } from './prices.js';

const provider = (name: string, kind: ProviderKind): ProviderConfig => ({
  name,
  kind,
  baseUrl: null,
  apiKeyEnv: null,
  storedKey: false,
  promptCache: true,
});
const config = {
  prices: camelKeys(DEFAULT_PRICES),
  providers: [provider('work', 'anthropic'), provider('openai', 'openai'), provider('demo', 'scripted')],
};
const usd = (name: string, model: string) => {
  const price = findPrice(config, name, model);
  return price === null ? null : [price.inputMicroUsdPerMtok / 1e6, price.outputMicroUsdPerMtok / 1e6];
};

describe('findPrice', () => {
  it('knows Claude Sonnet and GPT-4o by their names, of any provider of the kind', () => {
    expect(usd('work', 'claude-sonnet-4-5')).toEqual([3, 15]);
    expect(usd('work', 'claude-3-7-sonnet-20250219')).toEqual([3, 15]);
    expect(usd('openai', 'gpt-4o')).toEqual([2.5, 10]);
    expect(usd('demo', 'anything')).toEqual([0, 0]);
  });

  it('has no price for an unknown model', () => {
    expect(usd('openai', 'gpt-4o-mini')).toBeNull();
    expect(usd('work', 'claude-opus-4')).toBeNull();
    expect(usd('missing-provider', 'gpt-4o')).toBeNull();
  });
});

describe('prices of cached input', () => {
  const cached = (name: string, model: string, file: Partial<(typeof DEFAULT_PRICES)[number]>[] = []) => {
    const own = file.map((price) => ({ ...DEFAULT_PRICES[0]!, provider: '*', model: '*', ...price }));
    const price = findPrice({ ...config, prices: camelKeys([...own, ...DEFAULT_PRICES]) }, name, model);
    const { cacheReadMicroUsdPerMtok, cacheWriteMicroUsdPerMtok, cacheWrite1hMicroUsdPerMtok } = price!;
    return [cacheReadMicroUsdPerMtok, cacheWriteMicroUsdPerMtok, cacheWrite1hMicroUsdPerMtok];
  };

  it('follow from the rates of the vendor', () => {
    expect(cached('work', 'claude-sonnet-4-5')).toEqual([300_000, 3_750_000, 6_000_000]);
    expect(cached('openai', 'gpt-4o')).toEqual([1_250_000, undefined, undefined]);
    expect(cached('demo', 'anything')).toEqual([undefined, undefined, undefined]);
  });

  it.each([
    ['work', 'any-model', [300_000, 3_750_000, 6_000_000]],
    ['openai', 'anthropic/claude-opus-9', [300_000, 3_750_000, 6_000_000]],
    ['openai', 'gpt-5-mini', [300_000, undefined, undefined]],
    ['openai', 'gpt-4.1-mini', [750_000, undefined, undefined]],
    ['openai', 'o3-mini', [1_500_000, undefined, undefined]],
    ['openai', 'deepseek-chat', [300_000, undefined, undefined]],
    ['openai', 'unknown', [undefined, undefined, undefined]],
  ])('of %s, model %s, apply to a price of the file', (name, model, expected) =>
    expect(cached(name, model, [{ input_per_mtok: 3_000_000 }])).toEqual(expected),
  );

  it('of the file have precedence over the rates', () =>
    expect(
      cached('work', 'claude-sonnet-4-5', [
        { input_per_mtok: 3_000_000, cache_read_per_mtok: 0, cache_write_1h_per_mtok: 9_000_000 },
      ]),
    ).toEqual([0, 3_750_000, 9_000_000]));
});

/** Counts of a real call, and its cost by the price lists of the vendors. */
const U33 = [
  ['work', 'claude-sonnet-4-5', { inputTokens: 12_307, cacheWriteTokens: 12_304, outputTokens: 550 }, 54_399],
  ['work', 'claude-sonnet-4-5', { inputTokens: 12_308, cacheReadTokens: 12_304, outputTokens: 550 }, 11_953],
  ['openai', 'gpt-4o', { inputTokens: 10_000, cacheReadTokens: 9_984, outputTokens: 100 }, 13_520],
] as const;

describe('the cost of cached input', () => {
  // @shows U33
  it.each(U33)('of %s, model %s, for %j is %d micro-USD', (name, model, usage, microUsd) =>
    expect(costMicroUsd(findPrice(config, name, model)!, usage)).toBe(microUsd),
  );
});

describe('matchesPattern', () => {
  it.each([
    ['a*b*c', 'axxbyyc', true],
    ['a*b*c', 'acb', false],
    ['ab*ba', 'aba', false],
    ['*', '', true],
    ['a', 'ab', false],
  ])('%s on %s is %s', (pattern, text, expected) => expect(matchesPattern(pattern, text)).toBe(expected));

  it('agrees with a regular expression', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 6 }),
        fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 8 }),
        (pattern, text) =>
          expect(matchesPattern(pattern, text)).toBe(
            new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(text),
          ),
      ),
    ));
});
