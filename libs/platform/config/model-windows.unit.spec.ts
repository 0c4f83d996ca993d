import { describe, expect, it } from '@jest/globals';
import { findInputs } from './model-parameters.js';
import { contextSizes } from './model-windows.js';

const windowOf = (kind: 'anthropic' | 'openai' | 'ollama' | 'openai-compatible', model: string): number =>
  findInputs({}, { name: 'p', kind }, model).contextWindow;

describe('the window of a model', () => {
  it.each([
    ['anthropic', 'claude-sonnet-4-5', 200_000],
    ['openai', 'gpt-4', 8_192],
    ['openai', 'gpt-4o-mini', 128_000],
    ['openai', 'gpt-4.1', 1_000_000],
    ['openai-compatible', 'my-model', 32_768],
    ['ollama', 'my-model', 8_192],
  ] as const)('at %s of %s has %i tokens', (kind, model, tokens) => {
    expect(windowOf(kind, model)).toBe(tokens);
  });

  it('is the one of a setting, if there is one', () => {
    const parameters = [{ provider: 'p', model: '*', contextWindow: 65_536 }] as never;
    expect(findInputs({ parameters }, { name: 'p', kind: 'ollama' }, 'x').contextWindow).toBe(65_536);
  });
});

describe('the context of a model', () => {
  it.each([
    [200_000, 48_000, 4_000],
    [32_768, 16_384, 4_000],
    [8_192, 4_096, 2_048],
    [1_024, 2_048, 1_024],
  ])('with a window of %i has %i tokens, of which memory has %i', (window, contextTokens, memoryTokens) => {
    expect(contextSizes(window, undefined)).toMatchObject({ contextTokens, memoryTokens });
  });

  it('has the tokens of the setting, and memory half of them', () => {
    expect(contextSizes(200_000, 4_000)).toMatchObject({ contextTokens: 4_000, memoryTokens: 2_000 });
  });

  it('leaves images and documents the rest of the window, and never less than nothing', () => {
    expect(contextSizes(200_000, undefined).mediaTokens).toBe(132_000);
    expect(contextSizes(8_192, 100_000).mediaTokens).toBe(0);
  });
});
