import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { bundledPlugins, startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';

jest.setTimeout(60_000);

describe('the bundled plug-ins', () => {
  let box: TestSandbox;

  beforeAll(async () => {
    box = await startSandbox([], {}, { bundledDirectory: await bundledPlugins() });
  });
  afterAll(() => box.close());

  it('load without configuration and describe themselves', () => {
    expect(box.sandbox.plugins.map(({ name, status }) => [name, status])).toEqual([
      ['echo', 'loaded'],
      ['calculator', 'loaded'],
      ['http-get', 'loaded'],
    ]);
    expect(box.tools).toEqual([
      expect.objectContaining({
        name: 'echo',
        idempotent: true,
        inputSchema: expect.objectContaining({ type: 'object' }),
      }),
      expect.objectContaining({
        name: 'calculator',
        idempotent: true,
        inputSchema: expect.objectContaining({ required: ['expression'] }),
      }),
      expect.objectContaining({
        name: 'http-get',
        idempotent: true,
        inputSchema: expect.objectContaining({ required: ['url'] }),
      }),
    ]);
  });

  describe('echo', () => {
    it.each([
      [{ text: 'hello' }],
      [{ text: 'quotes " and \\ and \n and \u0001, h\u00e9 \u{1f600}' }],
      [{ content: 'not a result object', is_error: true }],
      [[]],
      ['text'],
      [null],
    ])('returns %j', async (input) =>
      expect(await box.call('echo', input)).toMatchObject({
        outcome: 'completed',
        content: JSON.stringify(input),
        isError: false,
      }),
    );

    it('returns a megabyte, which the sandbox holds for its caller', async () => {
      const input = { text: 'x'.repeat(1_000_000) };
      const text = JSON.stringify(input);
      const reply = await box.call('echo', input);
      const digest = createHash('sha256').update(text).digest('hex');
      expect(reply).toMatchObject({ outcome: 'completed', large: { digest, size: text.length } });
      expect((reply as { content: string }).content.startsWith('{"text":"xxx')).toBe(true);
    });

    it('refuses an input above the maximum', async () =>
      expect(await box.call('echo', { text: 'x'.repeat(1_100_000) })).toMatchObject({
        outcome: 'failed',
        code: 'TOOL.DENIED',
      }));
  });

  describe('calculator', () => {
    const calculate = (expression: unknown) => box.call('calculator', { expression });

    it.each([
      ['1 + 2 * 3', '7'],
      ['(1 + 2) * 3', '9'],
      ['10 - 4 - 3', '3'],
      ['100 / 10 / 2', '5'],
      ['7 % 3', '1'],
      ['-2 ^ 2', '-4'],
      ['(-2) ^ 2', '4'],
      ['2 ^ -1', '0.5'],
      ['2 ^ 3 ^ 2', '512'],
      ['--3 + +4', '7'],
      ['2 * -3', '-6'],
      ['.5 + 1.25', '1.75'],
      ['0.1 + 0.2', '0.3'],
      ['1.005 * 1000', '1005'],
      ['1 / 3', '0.333333333333333'],
      ['-22 / 7', '-3.14285714285714'],
      ['1e3 * 2', '2000'],
      ['-0', '0'],
      ['9007199254740990 + 1', '9007199254740991'],
      ['123456789 * 987654321', '1.21932631112635e+17'],
      ['2 ^ 100', '1.26765060022823e+30'],
      ['1 / 8e30', '1.25e-31'],
      ['6 \u00d7 7 \u00f7 2 \u2212 1', '20'],
      [`${'('.repeat(40)}1${')'.repeat(40)}`, '1'],
    ])('%s = %s', async (expression, content) =>
      expect(await calculate(expression)).toMatchObject({ outcome: 'completed', content, isError: false }),
    );

    it.each([
      ['1 / 0', 'division by zero'],
      ['5 % (2 - 2)', 'division by zero'],
      ['0 ^ -1', 'division by zero'],
      ['', 'empty'],
      ['   ', 'empty'],
      ['1 +', 'ends too early'],
      ['(1 + 2', 'closing parenthesis'],
      ['1 + 2)', 'unexpected ) at character 6'],
      ['2 ** 3', 'unexpected * at character 4'],
      ['1 2', 'unexpected 2'],
      ['1.2.3', 'unexpected .'],
      ['process.exit()', 'unexpected p at character 1'],
      ['10 ^ 400', 'too large'],
      ['(-1) ^ 0.5', 'not a number'],
      ['1'.repeat(1_001), 'at most 1000'],
      ['('.repeat(999), 'nests too deeply'],
      ['-'.repeat(999), 'nests too deeply'],
    ])('refuses %s', async (expression, reason) =>
      expect(await calculate(expression)).toMatchObject({
        outcome: 'completed',
        isError: true,
        content: expect.stringContaining(reason),
      }),
    );

    it.each([
      [{}, 'with a string'],
      [{ expression: 5 }, 'with a string'],
      [{ expression: null }, 'with a string'],
      [{ expression: ['1'] }, 'with a string'],
      [[], 'not a JSON object'],
      ['1 + 1', 'not a JSON object'],
      [{ padding: 'x'.repeat(9_000), expression: '1' }, 'at most 8192'],
    ])('refuses the input %j', async (input, reason) =>
      expect(await box.call('calculator', input)).toMatchObject({
        isError: true,
        content: expect.stringContaining(reason),
      }),
    );

    it('finds the expression among other members', async () =>
      expect(
        await box.call('calculator', {
          a: { b: [1, ']', { expression: '9' }] },
          c: 'x"}',
          expression: '1+1',
          d: true,
        }),
      ).toMatchObject({ content: '2', isError: false }));
  });
});
