/** Path of the socket that begins with one subscription to events. */
export const EVENTS_PATH = '/ws/events';

/**
 * Returns the request `events.subscribe` that the query of `/ws/events` means. Its id is `events`.
 * Returns undefined for another path.
 */
export const subscribeRequest = (url: string): string | undefined => {
  const [path, query] = url.split('?', 2);
  if (path !== EVENTS_PATH) return undefined;
  const { from, ...filter } = Object.fromEntries(new URLSearchParams(query));
  const params = { filter, ...(from === undefined ? {} : { from }) };
  return JSON.stringify({ id: 'events', method: 'events.subscribe', params });
};
