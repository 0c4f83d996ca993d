import type { LogEvent } from '@antiphon/client';

/** Selects events of some categories. */
export const isAbout =
  (...categories: readonly string[]) =>
  ({ category }: LogEvent): boolean =>
    categories.includes(category);

/** Returns the page on which an event is best read. */
export const pageOf = ({ streamId, category, position }: LogEvent): string => {
  const id = streamId.slice(category.length + 1);
  if (category === 'session' && !id.startsWith('key-')) return `/sessions/${id}`;
  if (category === 'run') return `/runs/${id}`;
  return `/events?open=${position}`;
};
