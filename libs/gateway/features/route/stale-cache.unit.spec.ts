import { describe, expect, it } from '@jest/globals';
import { transient } from '@antiphon/kernel';
import { createStaleCache } from './stale-cache.js';

describe('the last values of reads', () => {
  it('are bounded in size, however many keys a client asks for', async () => {
    let isDown = false;
    const page = 'x'.repeat(1024 * 1024);
    const read = createStaleCache((limit: string) =>
      isDown ? Promise.reject(transient('SPEC.DOWN', 'down')) : Promise.resolve({ limit, page }),
    );
    for (let limit = 0; limit < 100; limit++) await read(String(limit));
    isDown = true;
    const outcomes = await Promise.allSettled(Array.from({ length: 100 }, (_, limit) => read(String(limit))));
    const kept = outcomes.flatMap((outcome, limit) => (outcome.status === 'fulfilled' ? [limit] : []));
    expect(kept).toEqual(Array.from({ length: 15 }, (_, n) => 85 + n));
    await expect(read('99')).resolves.toMatchObject({ stale: true, value: { limit: '99' } });
  });

  it('are not kept where one is larger than all may be', async () => {
    let isDown = false;
    const read = createStaleCache((_key: string) =>
      isDown ? Promise.reject(transient('SPEC.DOWN', 'down')) : Promise.resolve('x'.repeat(17 * 1024 * 1024)),
    );
    await read('a');
    isDown = true;
    await expect(read('a')).rejects.toMatchObject({ code: 'SPEC.DOWN' });
  });
});
