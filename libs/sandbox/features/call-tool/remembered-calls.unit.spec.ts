import { describe, expect, it } from '@jest/globals';
import { createRememberedCalls } from './remembered-calls.js';

const remembered = (more: { maxCalls?: number; maxBytes?: number } = {}) => {
  let runs = 0;
  const calls = createRememberedCalls<string>({
    maxCalls: 3,
    maxBytes: 100,
    sizeOf: (answer) => answer.length,
    keep: (answer) => answer !== 'not run',
    ...more,
  });
  const ask = (callId: string, answer = callId, fingerprint = 'f') =>
    calls.once(callId, fingerprint, () => {
      runs += 1;
      return Promise.resolve(answer);
    });
  return { calls, ask, runs: () => runs };
};

describe('remembered calls', () => {
  it('run once, however often they are asked for', async () => {
    const { ask, runs } = remembered();
    expect(await ask('a', 'first')).toBe('first');
    expect(await ask('a', 'second')).toBe('first');
    expect(runs()).toBe(1);
  });

  it('join a run that has not ended', async () => {
    const { calls } = remembered();
    let release = (_answer: string): void => undefined;
    const first = calls.once('a', 'f', () => new Promise((resolve) => (release = resolve)));
    const second = calls.once('a', 'f', () => Promise.resolve('never'));
    release('done');
    expect(await Promise.all([first, second])).toEqual(['done', 'done']);
  });

  it('refuse an id that was used for another call', async () => {
    const { ask } = remembered();
    await ask('a');
    await expect(ask('a', 'a', 'other')).rejects.toMatchObject({
      kind: 'conflict',
      code: 'TOOL.CALL_ID_REUSED',
    });
  });

  it('forget what was not run, and what broke off', async () => {
    const { calls, ask, runs } = remembered();
    await ask('a', 'not run');
    expect(await ask('a', 'run')).toBe('run');
    await expect(calls.once('b', 'f', () => Promise.reject(new Error('broke off')))).rejects.toThrow(
      'broke off',
    );
    expect(await ask('b')).toBe('b');
    expect(runs()).toBe(3);
  });

  it('forget the oldest over their number', async () => {
    const { ask, runs } = remembered();
    for (const id of ['a', 'b', 'c', 'd']) await ask(id);
    await ask('d');
    expect(runs()).toBe(4);
    await ask('a');
    expect(runs()).toBe(5);
  });

  it('forget the oldest over their size', async () => {
    const { ask, runs } = remembered({ maxCalls: 100 });
    await ask('a', 'x'.repeat(60));
    await ask('b', 'x'.repeat(60));
    await ask('b');
    expect(runs()).toBe(2);
    await ask('a', 'small');
    expect(runs()).toBe(3);
  });
});
