import {
  SessionEvent,
  framesOf,
  initialCursor,
  sessionStream,
  type Frame,
  type FrameCursor,
} from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import { createBoundedMap, notFound } from '@antiphon/kernel';

/** The committed frames of sessions, derived from their event streams. */
export interface FrameLog {
  /** Frames with an offset above `after`, in order. An unknown session is `GATEWAY.SESSION_NOT_FOUND`. */
  framesAfter(workspace: string, sessionId: string, after: number): Promise<Frame[]>;
}

interface Checkpoint {
  readonly version: number;
  readonly cursor: FrameCursor;
}

const PAGE = 500;
const MAX_CHECKPOINTS = 10_000;

/** Events that this version does not know give no frames: a newer service may write them. */
const framesOfRecorded = (cursor: FrameCursor, recorded: RecordedEvent) => {
  const parsed = SessionEvent.safeParse(upcast(recorded));
  return parsed.success ? framesOf(cursor, parsed.data) : { cursor, frames: [] };
};

/**
 * Folds from the newest point that is known to lie before `after`, so that a reader who is nearly up to date
 * costs one short read however long the session is.
 */
export const createFrameLog = (store: Pick<EventStore, 'readStream'>): FrameLog => {
  const checkpoints = createBoundedMap<Checkpoint>(MAX_CHECKPOINTS);

  const startOf = (key: string, after: number): Checkpoint => {
    const known = checkpoints.get(key);
    return known && known.cursor.lastOffset <= after ? known : { version: 0, cursor: initialCursor };
  };

  const framesAfter = async (workspace: string, sessionId: string, after: number): Promise<Frame[]> => {
    const key = `${workspace}/${sessionId}`;
    let at = startOf(key, after);
    const frames: Frame[] = [];
    for (;;) {
      const events = await store.readStream(workspace, sessionStream(sessionId), {
        fromVersion: at.version + 1,
        limit: PAGE,
      });
      for (const event of events) {
        const step = framesOfRecorded(at.cursor, event);
        at = { version: event.streamVersion, cursor: step.cursor };
        frames.push(...step.frames.filter((frame) => frame.offset > after));
      }
      if (events.length < PAGE) break;
    }
    if (at.version === 0) throw notFound('GATEWAY.SESSION_NOT_FOUND', `no session ${sessionId}`);
    checkpoints.put(key, at);
    return frames;
  };
  return { framesAfter };
};
