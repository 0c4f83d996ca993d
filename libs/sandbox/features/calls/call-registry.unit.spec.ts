import { describe, expect, it } from '@jest/globals';
import { RememberedCalls } from './call-registry.js';

const remembered = (more: { maxCalls?: number; maxBytes?: number } = {}) => {
  let runs = 0;
  const calls = new RememberedCalls<string>({
    maxCalls: 3,
    maxBytes: 100,
    sizeOf: (result) => result.length,
    isFinal: (result) => result !== 'not run',
    ...more,
  });
  const run = (callId: string, result = callId, fingerprint = 'f') =>
    calls.runOnce(callId, fingerprint, () => {
      runs += 1;
      return Promise.resolve(result);
    });
  return { calls, run, runs: () => runs };
};

describe('RememberedCalls', () => {
  it('runs a call id once', async () => {
    const { run, runs } = remembered();
    expect(await run('a', 'first')).toBe('first');
    expect(await run('a', 'second')).toBe('first');
    expect(runs()).toBe(1);
  });

  it('shares the result of a running call', async () => {
    const { calls } = remembered();
    let release = (_result: string): void => undefined;
    const first = calls.runOnce('a', 'f', () => new Promise((resolve) => (release = resolve)));
    const second = calls.runOnce('a', 'f', () => Promise.resolve('never'));
    release('done');
    expect(await Promise.all([first, second])).toEqual(['done', 'done']);
  });

  it('refuses an id that was used for another call', async () => {
    const { run } = remembered();
    await run('a');
    await expect(run('a', 'a', 'other')).rejects.toMatchObject({
      kind: 'conflict',
      code: 'TOOL.CALL_ID_REUSED',
    });
  });

  it('runs a call again whose result is not final or that failed', async () => {
    const { calls, run, runs } = remembered();
    await run('a', 'not run');
    expect(await run('a', 'run')).toBe('run');
    await expect(calls.runOnce('b', 'f', () => Promise.reject(new Error('broke off')))).rejects.toThrow(
      'broke off',
    );
    expect(await run('b')).toBe('b');
    expect(runs()).toBe(3);
  });

  it('evicts the oldest call above the maximum number', async () => {
    const { run, runs } = remembered();
    for (const id of ['a', 'b', 'c', 'd']) await run(id);
    await run('d');
    expect(runs()).toBe(4);
    await run('a');
    expect(runs()).toBe(5);
  });

  it('evicts the oldest call above the maximum size', async () => {
    const { run, runs } = remembered({ maxCalls: 100 });
    await run('a', 'x'.repeat(60));
    await run('b', 'x'.repeat(60));
    await run('b');
    expect(runs()).toBe(2);
    await run('a', 'small');
    expect(runs()).toBe(3);
  });
});
