import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';

jest.setTimeout(60_000);

const NAMES = ['wasi-clock', 'wasi-random', 'wasi-nothing', 'wasi-write', 'wasi-http'];
const contentOf = async (box: TestSandbox, name: string, input: unknown = {}): Promise<string> => {
  const reply = await box.call(name, input);
  if (reply.outcome !== 'completed') throw new Error(`${name}: ${reply.message}`);
  return reply.content;
};
const toBigInt = (hex: string): bigint => Buffer.from(hex, 'hex').readBigUInt64LE();

describe('a module that imports WASI', () => {
  let box: TestSandbox;
  beforeAll(async () => {
    box = await startSandbox(NAMES);
  });
  afterAll(() => box.close());

  it('sees a time that stands still and constant random bytes in each call', async () => {
    const first = [await contentOf(box, 'wasi-clock'), await contentOf(box, 'wasi-random')];
    const [clock = '', random = ''] = first;
    expect([toBigInt(clock.slice(0, 16)), toBigInt(clock.slice(16))]).toEqual([0n, 1_000n]);
    expect(new Set(random.match(/../g)).size).toBeGreaterThan(8);
    for (let i = 0; i < 4; i++)
      expect([await contentOf(box, 'wasi-clock'), await contentOf(box, 'wasi-random')]).toEqual(first);
  });

  it('gets no file, argument or variable, and no memory that is not its own', async () => {
    // No arguments and variables; then bad files (8), no such call (52), bad addresses (21, 28).
    expect(await contentOf(box, 'wasi-nothing')).toBe(
      '0000' + '0808' + '3408' + '0808' + '1515' + '1c' + '00'.repeat(5),
    );
  });

  it('writes its output to the log, as one line', async () => {
    expect(await box.call('wasi-write')).toMatchObject({ outcome: 'completed', isError: false });
    expect(box.log).toContainEqual(
      expect.objectContaining({ plugin: 'wasi-write', line: 'hello', level: 'info' }),
    );
  });

  it('may import the HTTP functions without a capability, and is refused when it uses them', async () => {
    expect(await box.call('wasi-http')).toMatchObject({ outcome: 'completed', isError: false });
    expect(await box.call('wasi-http', { url: 1 })).toMatchObject({
      ...{ outcome: 'failed', code: 'TOOL.DENIED' },
      message: expect.stringContaining('no capability http:HOST'),
    });
  });
});

describe('a plug-in with the capabilities clock and random', () => {
  let box: TestSandbox;
  beforeAll(async () => {
    const capabilities = ['clock', 'random'];
    box = await startSandbox([...NAMES, 'import-clock', 'import-random'], { capabilities });
  });
  afterAll(() => box.close());

  it('reads the time in whole milliseconds', async () => {
    const before = Date.now();
    const wasi = toBigInt((await contentOf(box, 'wasi-clock')).slice(0, 16));
    const own = toBigInt((await contentOf(box, 'import-clock')).slice(0, 16));
    for (const ms of [wasi / 1_000_000n, own]) {
      expect(Number(ms)).toBeGreaterThanOrEqual(before);
      expect(Number(ms)).toBeLessThanOrEqual(Date.now());
    }
    expect(wasi % 1_000_000n).toBe(0n);
  });

  it.each(['wasi-random', 'import-random'])('reads other random bytes in each call: %s', async (name) => {
    const seen = new Set<string>();
    for (let i = 0; i < 5; i++) seen.add(await contentOf(box, name));
    expect(seen.size).toBe(5);
  });
});
