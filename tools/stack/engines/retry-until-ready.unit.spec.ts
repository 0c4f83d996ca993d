import { describe, expect, it } from '@jest/globals';
import { StartRefused } from '../process/start-refused.js';
import { retryUntilReady } from './engine.js';
import { isRefusal } from './postgres.js';

const never = new AbortController().signal;
const failing = (error: Error, times: number) => {
  const attempts = { count: 0 };
  const attempt = (): Promise<string> =>
    ++attempts.count > times ? Promise.resolve('ready') : Promise.reject(error);
  return { attempts, attempt };
};

describe('the wait for an engine', () => {
  it('goes through a server that does not listen yet', async () => {
    const { attempt } = failing(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }), 3);
    expect(await retryUntilReady(never, attempt)).toBe('ready');
  });

  it('goes through a server that refuses for a moment', async () => {
    const { attempt } = failing(new Error('the server does not support SSL connections'), 3);
    expect(await retryUntilReady(never, attempt, { isRefusal, refusedMs: 1_000 })).toBe('ready');
  });

  it('ends with the reason when the server keeps refusing, after few requests', async () => {
    const { attempt, attempts } = failing(new Error('the server does not support SSL connections'), Infinity);
    const ended = retryUntilReady(never, attempt, { isRefusal, refusedMs: 300 });
    await expect(ended).rejects.toThrow('refused its first request: the server does not support SSL');
    await expect(ended).rejects.toBeInstanceOf(StartRefused);
    expect(attempts.count).toBeLessThan(12);
  });

  it.each([
    [{ code: 'ECONNREFUSED', message: 'connect' }, false],
    [{ code: '57P03', message: 'the database system is starting up' }, false],
    [{ message: 'timeout expired' }, false],
    [{ message: 'Connection terminated unexpectedly' }, false],
    [{ code: '28P01', message: 'password authentication failed' }, true],
    [{ code: '22023', message: 'invalid value for parameter' }, true],
  ])('takes %j for a refusal: %s', (error, expected) => expect(isRefusal(error)).toBe(expected));

  it('ends with the last error once it is aborted', async () => {
    const { attempt } = failing(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }), Infinity);
    await expect(retryUntilReady(AbortSignal.abort(), attempt)).rejects.toThrow('refused');
  });
});
