import type { Query, QueryClient } from '@tanstack/react-query';

/** Time of the last reply, ms since 1970; 0 for a read that a part of the page is about to make. */
const repliedAt = ({ state }: Query): number => Math.max(state.dataUpdatedAt, state.errorUpdatedAt);

/**
 * Forgets the oldest replies beyond `max` reads that no part of the page shows. A read that is
 * about to be made stays: its part of the page would begin it again without end.
 */
export const boundCache = (queries: QueryClient, max: number): void => {
  const cache = queries.getQueryCache();
  cache.subscribe(({ type }) => {
    const excess = cache.getAll().length - max;
    if (type !== 'added' || excess <= 0) return;
    const unused = cache
      .getAll()
      .filter((query) => !query.isActive() && query.state.fetchStatus === 'idle' && repliedAt(query) > 0);
    const oldest = unused.sort((a, b) => repliedAt(a) - repliedAt(b));
    for (const query of oldest.slice(0, excess)) cache.remove(query);
  });
};
