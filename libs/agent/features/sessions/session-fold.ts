import { framesOf, initialCursor, isTurnEndEvent } from '@antiphon/contracts/agent';
import type { Frame, FrameCursor, SessionEvent } from '@antiphon/contracts/agent';
import { initialSession } from '@antiphon/agent-domain';
import type { SessionState } from '@antiphon/agent-domain';

/** Where a turn came from: what everything done for it carries on, whichever process does it. */
export interface TurnOrigin {
  readonly correlationId: string;
  readonly traceparent?: string;
  /** Event id of its `TurnRequested`. */
  readonly causationId: string;
}

/** All that a driver knows of a session: plain data, so that it can be kept as a snapshot. */
export interface SessionFold {
  /** Version of the event stream that it has seen, 0 for none. */
  readonly version: number;
  readonly state: SessionState;
  readonly cursor: FrameCursor;
  /** Of every turn that has not ended. */
  readonly origins: Readonly<Record<string, TurnOrigin>>;
}

export const emptyFold: SessionFold = {
  version: 0,
  state: initialSession(),
  cursor: initialCursor,
  origins: {},
};

/** An event with what the fold needs of its envelope. */
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

/** Folds events that follow each other; answers the fold after them and the frames that they give. */
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
