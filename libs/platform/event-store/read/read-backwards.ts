import type { EventStore, RecordedEvent } from '../event-store.port.js';

/**
 * Yields the events of a stream, newest first, reading pages on demand. The first page has at most
 * `firstLimit` events: most searches end near the end.
 */
export async function* readBackwards(
  store: Pick<EventStore, 'readStreamPage'>,
  workspace: string,
  streamId: string,
  limit: number,
  firstLimit = limit,
): AsyncGenerator<RecordedEvent, void, undefined> {
  let beforeVersion = Number.MAX_SAFE_INTEGER;
  for (let [hasMore, size] = [true, firstLimit]; hasMore && beforeVersion > 1; size = limit) {
    const options = { beforeVersion, limit: size, backwards: true };
    const page = await store.readStreamPage(workspace, streamId, options);
    yield* page.events;
    beforeVersion = page.events.at(-1)?.streamVersion ?? 0;
    hasMore = page.hasMore;
  }
}
