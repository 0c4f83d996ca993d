import { describe, expect, it } from '@jest/globals';
import { priceTable } from '@antiphon/metering-domain';

const entry = (provider: string, model: string, input: number, output: number) => ({
  provider,
  model,
  inputMicroUsdPerMtok: input,
  outputMicroUsdPerMtok: output,
});

describe('priceTable', () => {
  const priceOf = priceTable([
    entry('anthropic', 'claude-sonnet', 3_000_000, 15_000_000),
    entry('openai', 'gpt-4o', 2_500_000, 10_000_000),
    entry('openai', 'gpt-4o', 2_000_000, 12_000_000),
  ]);

  it('knows a price by provider and model', () =>
    expect(priceOf('anthropic', 'claude-sonnet')).toEqual({
      inputMicroUsdPerMtok: 3_000_000,
      outputMicroUsdPerMtok: 15_000_000,
    }));

  it('does not guess: another provider, a longer name', () => {
    expect(priceOf('openrouter', 'claude-sonnet')).toBeNull();
    expect(priceOf('anthropic', 'claude-sonnet-5')).toBeNull();
  });

  it('takes the dearer figure of each side when a model is priced twice', () =>
    expect(priceOf('openai', 'gpt-4o')).toEqual({
      inputMicroUsdPerMtok: 2_500_000,
      outputMicroUsdPerMtok: 12_000_000,
    }));
});
