import { sessionStream } from '@antiphon/contracts/agent';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';

export type ReadStream = Pick<EventStore, 'readStream'>;

/** Events read at once: an event is 1 MiB at most. */
const PAGE = 200;

/**
 * The events of a session up to a version, as they were written, page by page, oldest first; none where there is no
 * such session. Throws what the store says of a stream that has left to an archive.
 */
export async function* readSession(
  store: ReadStream,
  workspace: string,
  sessionId: string,
  upTo: number = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<readonly RecordedEvent[]> {
  for (let after = 0; after < upTo;) {
    const options = { fromVersion: after + 1, limit: Math.min(PAGE, upTo - after) };
    const events = await store.readStream(workspace, sessionStream(sessionId), options);
    if (events.length > 0) yield events;
    if (events.length < PAGE) return;
    after += events.length;
  }
}
