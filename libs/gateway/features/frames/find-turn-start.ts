import { initialCursor, sessionStream } from '@antiphon/contracts/agent';
import type { FrameCursor } from '@antiphon/contracts/agent';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';

/**
 * Position in a session's event stream. `cursor` is the frame cursor after the event of this
 * version.
 */
export interface FoldedTo {
  readonly version: number;
  readonly cursor: FrameCursor;
  /** As in `FramePage`. */
  readonly openSince: number | null;
}

export type StreamReads = Pick<EventStore, 'readStreamPage' | 'streamVersion'>;

/** Bounds of one read of the search. */
const PROBE = { limit: 32, maxBytes: 1024 * 1024 };
/**
 * Number of events at which the search ends, because reading them costs no more than another probe.
 */
const NEAR = 64;

/** First model call of a turn. All frames before it have lower offsets than all frames after it. */
interface TurnStart {
  readonly version: number;
  readonly attempt: number;
}

const turnStartOf = ({ type, streamVersion, data }: RecordedEvent): TurnStart | undefined =>
  type === 'ModelCallStarted' && data['step'] === 1 && data['tryNumber'] === 1
    ? { version: streamVersion, attempt: Number(data['attempt']) }
    : undefined;

/**
 * Finds the position from which to fold for frames of `attempt` and later. It lies just before a
 * turn that begins with that attempt or an earlier one, at most a few turns too early. It is a
 * binary search, because attempts only grow within a stream: a few short reads, however long the
 * session is. Returns null for the beginning of the stream.
 */
export const findTurnStart = async (
  store: StreamReads,
  workspace: string,
  sessionId: string,
  attempt: number,
  { agentId }: Pick<FrameCursor, 'agentId'>,
): Promise<FoldedTo | null> => {
  const stream = sessionStream(sessionId);

  const nextStart = async (from: number, below: number): Promise<TurnStart | undefined> => {
    let fromVersion = from;
    for (;;) {
      const options = { fromVersion, beforeVersion: below, ...PROBE };
      const { events, hasMore } = await store.readStreamPage(workspace, stream, options);
      const found = events.map(turnStartOf).find((start) => start !== undefined);
      if (found || !hasMore) return found;
      fromVersion = (events.at(-1)?.streamVersion ?? below) + 1;
    }
  };

  let best: TurnStart | null = null;
  let low = 2;
  let high = (await store.streamVersion(workspace, stream)) + 1;
  while (high - low > NEAR) {
    const middle = Math.floor((low + high) / 2);
    const start = await nextStart(middle, high);
    if (start && start.attempt <= attempt) {
      best = start;
      low = start.version + 1;
    } else high = middle;
  }
  if (!best) return null;
  return {
    version: best.version - 1,
    cursor: { ...initialCursor, sessionId, agentId, attempt: best.attempt - 1 },
    openSince: null,
  };
};
