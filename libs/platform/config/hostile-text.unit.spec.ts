import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isAppError } from '@antiphon/kernel';
import { configProblems, parseConfig, renderConfigErrors } from '@antiphon/config';
import { configKeys } from './problem-list.js';

const parse = (text: string): unknown =>
  parseConfig(text, { source: null, folder: '/etc', homeDir: '/root', env: {}, requireKeys: true });

const problems = (text: string): readonly unknown[] => {
  try {
    parse(text);
  } catch (error) {
    return configProblems(error);
  }
  return [];
};

describe('any text', () => {
  const key = fc.oneof(
    fc.constantFrom(...configKeys(), '__proto__', 'constructor', 'toString', '""'),
    fc.string(),
  );
  const value = fc.oneof(
    fc.constantFrom(
      '1',
      '-1',
      'inf',
      'nan',
      '1e400',
      '""',
      '"x"',
      "'''",
      '[[',
      '{a={b=1}}',
      '1979-05-27',
      'true',
      '[1,[2]]',
    ),
    fc.string(),
  );
  const line = fc.oneof(
    fc.tuple(key, value).map(([name, what]) => `${name} = ${what}`),
    key.map((name) => `[${name}]`),
    key.map((name) => `[[${name}]]`),
    key.map((name) => `[[agents.${name}]]`),
  );

  it.each([
    ['text', fc.string({ unit: 'binary', maxLength: 400 })],
    ['lines that look like TOML', fc.array(line, { maxLength: 12 }).map((lines) => lines.join('\n'))],
  ])('%s: the answer is a configuration or a CONFIG error', (_, texts) => {
    fc.assert(
      fc.property(texts, (text) => {
        try {
          parse(text);
        } catch (error) {
          expect(isAppError(error) && error.code).toBe('CONFIG.INVALID');
          expect(renderConfigErrors(error)).toContain('expected');
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    `a = ${'{a='.repeat(20_000)}1${'}'.repeat(20_000)}`,
    `${'a.'.repeat(20_000)}a = 1`,
    `[${'a.'.repeat(20_000)}a]`,
    `a = "${'x'.repeat(900_000)}"`,
    `a = """\\\n${'[\n'.repeat(100)}"""`,
  ])('is bounded before it is parsed (%#)', (text) => expect(problems(text)).toHaveLength(1));
});
