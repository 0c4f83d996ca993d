import { describe, expect, it } from '@jest/globals';
import { describeModel, describeTest, kindOfKey, usualModel } from './provider-kinds.js';
import type { ProviderModel } from './provider-kinds.js';

const model = (id: string, more: Partial<ProviderModel> = {}): ProviderModel => ({
  ...{ id, contextTokens: null, images: null, price: null },
  ...more,
});
const price = { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 };

describe('the kind of a key', () => {
  it.each([
    ['sk-ant-api03-x', 'anthropic'],
    [' sk-or-v1-x', 'openrouter'],
    ['sk-proj-x', 'openai'],
    ['AIzaSy', 'gemini'],
    ['sk-something', null],
    ['', null],
  ])('follows from its beginning: %s', (key, kind) => {
    expect(kindOfKey(key)).toBe(kind);
  });
});

describe('the result of a test', () => {
  const test = { works: false, problem: null, status: null, message: '', durationMs: 310, models: [] };

  it('names the number of models and the time', () => {
    expect(describeTest({ ...test, works: true, models: [model('a'), model('b')] })).toEqual({
      line: 'works · 2 models · 310 ms',
      fix: null,
    });
  });

  it.each(['wrong_key', 'no_access', 'busy', 'unreachable', 'not_found', 'unexpected'] as const)(
    'says what to do about the problem %s',
    (problem) => {
      const { line, fix } = describeTest({ ...test, problem, status: 401 });
      expect(line).toContain('(401)');
      expect(fix).not.toBeNull();
    },
  );
});

describe('the model to begin with', () => {
  it.each([
    ['the usual one of the kind', ['x', 'gpt-4o'], ['gpt-4o'], 'gpt-4o'],
    ['one of its family', ['x', 'claude-sonnet-9'], ['claude-sonnet-4-5'], 'claude-sonnet-9'],
    ['the first of a list without known ones', ['x', 'y'], [], 'x'],
    ['none of an empty list', [], ['gpt-4o'], ''],
  ])('is %s', (_which, ids, preferred, expected) => {
    expect(
      usualModel(
        ids.map((id) => model(id)),
        preferred,
      ),
    ).toBe(expected);
  });

  it('is one with a known price before others', () => {
    expect(usualModel([model('x'), model('y', { price })], [])).toBe('y');
  });

  it('shows its price and size, or that they are unknown', () => {
    expect(describeModel(model('a'))).toBe('price unknown');
    expect(describeModel(model('a', { price, contextTokens: 200_000, images: true }))).toBe(
      '$3.00 in, $15.00 out for a million tokens · 200,000 tokens · images',
    );
  });
});
