import { SessionEvent, attemptOf, framesOf, initialCursor, sessionStream } from '@antiphon/contracts/agent';
import type { Frame, FrameCursor } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { RecordedEvent } from '@antiphon/event-store';
import { createBoundedMap, notFound } from '@antiphon/kernel';
import { findTurnStart, type FoldedTo, type StreamReads } from './find-turn-start.js';

/** Some frames of a session, in order. */
export interface FramePage {
  readonly frames: readonly Frame[];
  /**
   * When the attempt began that is at work behind them (ms since 1970, by the log's clock): its text may be sent already.
   * null: no turn is at work.
   */
  readonly openSince: number | null;
}

/** The committed frames of sessions, derived from their event streams. */
export interface FrameLog {
  /**
   * Frames with an offset above `after`, in order, an event's at a time: they are read as they are asked for. The last
   * page is where the log ends. An unknown session is `GATEWAY.SESSION_NOT_FOUND`.
   */
  framesAfter(workspace: string, sessionId: string, after: number): AsyncIterable<FramePage>;
  /** Where a session's frames end by now. An unknown session is `GATEWAY.SESSION_NOT_FOUND`. */
  end(workspace: string, sessionId: string): Promise<FrameCursor>;
}

/** Events of one read: each may have 1 MiB. */
const PAGE = 64;
const MAX_CHECKPOINTS = 10_000;
const BEGINNING: FoldedTo = { version: 0, cursor: initialCursor, openSince: null };

/** Events that this version does not know give no frames: a newer service may write them. */
const framesOfRecorded = (cursor: FrameCursor, recorded: RecordedEvent) => {
  const parsed = SessionEvent.safeParse(upcast(recorded));
  return parsed.success ? framesOf(cursor, parsed.data) : { cursor, frames: [] };
};

const foldEvent = (at: FoldedTo, event: RecordedEvent): { at: FoldedTo; frames: readonly Frame[] } => {
  const { cursor, frames } = framesOfRecorded(at.cursor, event);
  const began = event.type === 'ModelCallStarted' ? Date.parse(event.recordedAt) : at.openSince;
  const openSince = cursor.openTurnId === null ? null : began;
  return { at: { version: event.streamVersion, cursor, openSince }, frames };
};

/**
 * Folds from the newest point that is known to lie before `after`, else from the turn that `after` belongs to, so that
 * it costs a few short reads and what is to be delivered, however long the session is.
 */
export const createFrameLog = (store: StreamReads): FrameLog => {
  const checkpoints = createBoundedMap<FoldedTo>(MAX_CHECKPOINTS);

  const remember = (key: string, at: FoldedTo): void => {
    if ((checkpoints.get(key)?.version ?? 0) <= at.version) checkpoints.put(key, at);
  };
  const knownBefore = (key: string, after: number): FoldedTo => {
    const known = checkpoints.get(key);
    return known && known.cursor.lastOffset <= after ? known : BEGINNING;
  };

  const skipTo = async (
    workspace: string,
    sessionId: string,
    attempt: number,
    at: FoldedTo,
  ): Promise<FoldedTo> => {
    if (attempt <= at.cursor.attempt) return at;
    const found = await findTurnStart(store, workspace, sessionId, attempt, at.cursor);
    return found && found.version > at.version ? found : at;
  };

  async function* fold(workspace: string, sessionId: string, after: number) {
    const key = `${workspace}/${sessionId}`;
    let at = knownBefore(key, after);
    let searched = at.version > 0;
    if (searched) yield { at, frames: [] };
    for (;;) {
      const fromVersion = at.version + 1;
      const options = { fromVersion, limit: PAGE };
      const events = await store.readStream(workspace, sessionStream(sessionId), options);
      if (events.length === 0 && at.version === 0)
        throw notFound('GATEWAY.SESSION_NOT_FOUND', `no session ${sessionId}`);
      for (const event of events) {
        const step = foldEvent(at, event);
        at = step.at;
        yield step;
      }
      if (events.length < PAGE) break;
      // A long session: what lies between its beginning and the turn that is asked for is passed over.
      if (!searched) at = await skipTo(workspace, sessionId, attemptOf(after), at);
      searched = true;
    }
    remember(key, at);
  }

  return {
    framesAfter: async function* (workspace, sessionId, after) {
      let openSince: number | null = null;
      for await (const { at, frames } of fold(workspace, sessionId, after)) {
        openSince = at.openSince;
        const fresh = frames.filter(({ offset }) => offset > after);
        if (fresh.length > 0) yield { frames: fresh, openSince };
      }
      yield { frames: [], openSince };
    },
    end: async (workspace, sessionId) => {
      let cursor = initialCursor;
      for await (const { at } of fold(workspace, sessionId, Number.MAX_SAFE_INTEGER)) cursor = at.cursor;
      return cursor;
    },
  };
};
