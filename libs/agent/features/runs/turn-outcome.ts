import { isTurnEnd, sessionStream } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import type { TurnRef } from './turn-ends.js';

/** What a turn came to, as its session's events tell. */
export type TurnOutcome =
  | { readonly kind: 'completed'; /** What the model said in the last step. */ readonly text: string }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | { readonly kind: 'cancelled' };

const textOf = ({ data }: RecordedEvent, field: string): string => {
  const value = data[field];
  return typeof value === 'string' ? value : '';
};

/** Reads the outcome of a turn that has ended. Throws `TURN.NOT_ENDED`, a bug. */
export const readOutcome = async (
  store: EventStore,
  { workspace, sessionId, turnId }: TurnRef,
): Promise<TurnOutcome> => {
  const recorded = await store.readStream(workspace, sessionStream(sessionId));
  const events = recorded.map(upcast).filter(({ data }) => data['turnId'] === turnId);
  const end = events.findLast(({ type }) => isTurnEnd(type));
  const answer = events.findLast(({ type }) => type === 'ModelCallCompleted');
  switch (end?.type) {
    case 'TurnCompleted':
      return { kind: 'completed', text: answer ? textOf(answer, 'text') : '' };
    case 'TurnFailed':
      return { kind: 'failed', code: textOf(end, 'code'), message: textOf(end, 'message') };
    case 'TurnCancelled':
      return { kind: 'cancelled' };
    default:
      throw bug('TURN.NOT_ENDED', 'a turn was said to have ended without a terminal event');
  }
};
