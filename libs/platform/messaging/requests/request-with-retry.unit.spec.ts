import { describe, expect, it } from '@jest/globals';
import { conflict, transient } from '@antiphon/kernel';
import { requestWithRetry } from './request-with-retry.js';
import type { RequestOptions } from './request-client.js';

const late = () => transient('MESSAGING.TIMEOUT', 'the service did not answer in time');

describe('asking for what may be asked for twice', () => {
  const asked: RequestOptions[] = [];
  const answering =
    (...answers: (() => string)[]) =>
    async (options: RequestOptions): Promise<string> => {
      asked.push(options);
      return answers[asked.length - 1]?.() ?? 'no more';
    };
  const failing = (error: Error) => () => {
    throw error;
  };

  it('asks once when there is an answer', async () => {
    asked.length = 0;
    expect(await requestWithRetry(answering(() => 'yes'))).toBe('yes');
    expect(asked).toEqual([{ timeoutMs: 2_000 }]);
  });

  it('asks once more after silence, and waits as long as the contract says', async () => {
    asked.length = 0;
    expect(await requestWithRetry(answering(failing(late()), () => 'yes'))).toBe('yes');
    expect(asked).toEqual([{ timeoutMs: 2_000 }, {}]);
  });

  it('takes an answer that is an error for an answer', async () => {
    asked.length = 0;
    const refusal = conflict('SPEC.NO', 'no');
    await expect(requestWithRetry(answering(failing(refusal), () => 'yes'))).rejects.toBe(refusal);
    expect(asked).toHaveLength(1);
  });
});
