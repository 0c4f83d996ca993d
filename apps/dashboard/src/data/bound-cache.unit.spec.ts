import { describe, expect, it } from '@jest/globals';
import { QueryClient } from '@tanstack/react-query';
import { boundCache } from './bound-cache.js';

describe('boundCache', () => {
  it('forgets the oldest replies, and never a read that is about to be made', () => {
    const queries = new QueryClient();
    boundCache(queries, 5);
    for (let n = 0; n < 5; n++) queries.setQueryData([`old ${n}`], n, { updatedAt: 1_000 + n });
    const cache = queries.getQueryCache();
    for (const key of ['roots', 'archives']) cache.build(queries, { queryKey: [key] });
    expect(cache.getAll().map(({ queryKey }) => queryKey[0])).toEqual([
      ...['old 2', 'old 3', 'old 4', 'roots', 'archives'],
    ]);
    queries.clear();
  });
});
