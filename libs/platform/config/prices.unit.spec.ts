import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { findPrice, matchesPattern } from '@antiphon/config';
import type { ProviderConfig, ProviderKind } from '@antiphon/config';
import { camelKeys } from './camel-keys.js';
import { DEFAULT_PRICES } from './prices.js';

const provider = (name: string, kind: ProviderKind): ProviderConfig => ({
  name,
  kind,
  baseUrl: null,
  apiKeyEnv: null,
  storedKey: false,
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
