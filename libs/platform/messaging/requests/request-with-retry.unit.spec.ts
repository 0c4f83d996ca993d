import { describe, expect, it } from '@jest/globals';
import { conflict, transient } from '@antiphon/kernel';
import { requestWithRetry } from './request-client.js';
import type { RequestOptions } from './request-client.js';

const late = () => transient('MESSAGING.TIMEOUT', 'the service did not answer in time');

describe('requestWithRetry', () => {
  const sent: RequestOptions[] = [];
  const replying =
    (...replies: (() => string)[]) =>
    async (options: RequestOptions): Promise<string> => {
      sent.push(options);
      return replies[sent.length - 1]?.() ?? 'no more';
    };
  const failing = (error: Error) => () => {
    throw error;
  };

  it('sends once when a reply arrives', async () => {
    sent.length = 0;
    expect(await requestWithRetry(replying(() => 'yes'))).toBe('yes');
    expect(sent).toEqual([{ timeoutMs: 2_000, endsAtStart: true }]);
  });

  it('retries once after a timeout, with the timeout of the contract', async () => {
    sent.length = 0;
    expect(await requestWithRetry(replying(failing(late()), () => 'yes'))).toBe('yes');
    expect(sent).toEqual([{ timeoutMs: 2_000, endsAtStart: true }, {}]);
  });

  it('rejects with an error reply without a retry', async () => {
    sent.length = 0;
    const refusal = conflict('SPEC.NO', 'no');
    await expect(requestWithRetry(replying(failing(refusal), () => 'yes'))).rejects.toBe(refusal);
    expect(sent).toHaveLength(1);
  });
});
