import { framesOf, initialCursor, isTurnEndEvent } from '@antiphon/contracts/agent';
import type { Frame, FrameCursor, SessionEvent } from '@antiphon/contracts/agent';
import { initialSession } from '@antiphon/conversation-domain';
import type { SessionState } from '@antiphon/conversation-domain';

/**
 * Origin of a turn. Every event, message and span of the turn refers to it, in whichever process.
 */
export interface TurnOrigin {
  readonly correlationId: string;
  readonly traceparent?: string;
  /** Event id of its `TurnRequested`. */
  readonly causationId: string;
}

/** State of a session as a driver needs it. Plain data, so that it can be stored as a snapshot. */
export interface SessionFold {
  /** Version of the event stream up to which events are folded, 0 for none. */
  readonly version: number;
  readonly state: SessionState;
  readonly cursor: FrameCursor;
  /** Origins of the turns that have not ended, by turn id. */
  readonly origins: Readonly<Record<string, TurnOrigin>>;
}

export const emptyFold: SessionFold = {
  version: 0,
  state: initialSession(),
  cursor: initialCursor,
  origins: {},
};

/** An event with the fields of its envelope that the fold uses. */
export interface FoldedEvent {
  readonly event: SessionEvent;
  readonly eventId: string;
  readonly metadata: { readonly correlationId: string; readonly traceparent?: string };
}

const originsAfter = (
  origins: SessionFold['origins'],
  { event, eventId, metadata }: FoldedEvent,
): SessionFold['origins'] => {
  if (event.type === 'TurnRequested') {
    const { correlationId, traceparent } = metadata;
    const origin = { correlationId, causationId: eventId, ...(traceparent ? { traceparent } : {}) };
    return { ...origins, [event.data.turnId]: origin };
  }
  if (!isTurnEndEvent(event)) return origins;
  const { [event.data.turnId]: _ended, ...open } = origins;
  return open;
};

/** Folds consecutive events. Returns the fold after them and the frames that they yield. */
export const advanceFold =
  (evolve: (state: SessionState, event: SessionEvent) => SessionState) =>
  (fold: SessionFold, events: readonly FoldedEvent[]): { fold: SessionFold; frames: Frame[] } => {
    const frames: Frame[] = [];
    let next = fold;
    for (const folded of events) {
      const framed = framesOf(next.cursor, folded.event);
      frames.push(...framed.frames);
      next = {
        version: next.version + 1,
        state: evolve(next.state, folded.event),
        cursor: framed.cursor,
        origins: originsAfter(next.origins, folded),
      };
    }
    return { fold: next, frames };
  };
export type AdvanceFold = ReturnType<typeof advanceFold>;
