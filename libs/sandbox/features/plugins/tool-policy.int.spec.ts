import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';

jest.setTimeout(60_000);

const CAPS = { maxAttempts: null, maxBackoffMs: null };

describe('the policy that a plug-in declares', () => {
  let box: TestSandbox;
  beforeAll(async () => {
    const refused = ['retry-too-often', 'retry-unsafe', 'retry-misspelt', 'timeout-too-long'];
    box = await startSandbox(['patient', 'declares-nothing', 'once', ...refused], {
      timeoutMs: 1_000,
      retry: CAPS,
    });
  });
  afterAll(() => box.close());
  const tool = (name: string) => box.tools.find((one) => one.name === name);
  const runsOf = (plugin: string): number =>
    box.log.filter((entry) => entry['plugin'] === plugin && entry['line'] === 'ran').length;

  it('is part of the tool description', () => {
    const retry = { maxAttempts: 4, backoffMs: 50, maxBackoffMs: 800, onTimeout: true };
    expect(tool('patient')).toMatchObject({ idempotent: true, timeoutMs: 250, retry });
    expect(tool('declares-nothing')).toMatchObject({ timeoutMs: 1_000 });
    expect(tool('declares-nothing')).not.toHaveProperty('retry');
  });

  it.each([
    ['retry-too-often', '"retry.max_attempts" Too big'],
    ['retry-unsafe', '"retry" without "idempotent": true'],
    ['retry-misspelt', '"retry" Unrecognized key: "backof_ms"'],
    ['timeout-too-long', '"timeout_ms" Too big'],
  ])('is refused when it is invalid: %s', (name, reason) => {
    expect(box.view(name)).toMatchObject({ status: 'rejected', reason: expect.stringContaining(reason) });
    expect(tool(name)).toBeUndefined();
  });

  it('ends an attempt at its timeout', async () => {
    const reply = await box.call('patient');
    expect(reply).toMatchObject({ code: 'TOOL.TIMEOUT', message: expect.stringContaining('within 250 ms') });
    expect(await box.call('declares-nothing')).toMatchObject({
      message: expect.stringContaining('within 1000 ms'),
    });
  });

  it('accepts a shorter timeout from the caller and ignores a longer one', async () => {
    const within = async (timeoutMs: number) => (await box.call('patient', {}, { timeoutMs })) as object;
    expect(await within(100)).toMatchObject({ message: expect.stringContaining('within 100 ms') });
    expect(await within(60_000)).toMatchObject({ message: expect.stringContaining('within 250 ms') });
  });

  it('runs a timed-out call again under the same id when its tool is idempotent', async () => {
    const callId = randomUUID();
    const before = runsOf('patient');
    for (let i = 0; i < 2; i++)
      expect(await box.call('patient', {}, { callId })).toMatchObject({ code: 'TOOL.TIMEOUT' });
    expect(runsOf('patient')).toBe(before + 2);
  });

  it('does not run a timed-out call again when its tool is not idempotent', async () => {
    const callId = randomUUID();
    for (let i = 0; i < 2; i++)
      expect(await box.call('once', {}, { callId })).toMatchObject({ code: 'TOOL.TIMEOUT' });
    expect(runsOf('once')).toBe(1);
  });
});

describe('a configuration that allows less than a plug-in declares', () => {
  it('limits the plug-in and logs the keys that would allow more', async () => {
    const retry = { maxAttempts: 2, maxBackoffMs: 100 };
    const box = await startSandbox(['patient', 'declares-nothing'], { timeoutMs: 200, retry });
    try {
      const [patient, other] = ['patient', 'declares-nothing'].map((name) =>
        box.tools.find((tool) => tool.name === name),
      );
      const held = { maxAttempts: 2, backoffMs: 50, maxBackoffMs: 100, onTimeout: true };
      expect(patient).toMatchObject({ timeoutMs: 200, retry: held });
      expect(other?.retry).toEqual({ maxAttempts: 2, backoffMs: 100, maxBackoffMs: 100, onTimeout: false });
      expect(await box.call('patient')).toMatchObject({ message: expect.stringContaining('within 200 ms') });
      const warnings = box.log.filter(({ message }) => message === 'plugin declares more than allowed');
      expect(warnings).toEqual([expect.objectContaining({ level: 'warn', plugin: 'patient' })]);
      expect(warnings[0]?.['allowWith']).toEqual([
        'timeout_ms = 250',
        'retry.max_attempts = 4',
        'retry.max_backoff_ms = 800',
      ]);
    } finally {
      await box.close();
    }
  });
});
