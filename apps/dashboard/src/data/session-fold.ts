import type { LogEvent } from '@antiphon/client';
import { EMPTY, foldEvents, type Transcript } from './transcript.js';

const STEP = 128;

/** Events of a session that can be folded up to any position in few steps. */
export interface SessionFold {
  readonly events: readonly LogEvent[];
  /** Transcripts after every 128 events. */
  readonly kept: Transcript[];
}

/** Creates a fold. It takes over what a former one of the same events, or fewer, has folded. */
export const createFold = (events: readonly LogEvent[], before: SessionFold | null = null): SessionFold => {
  const isSame = before !== null && before.events[0] === events[0] && before.events.length <= events.length;
  return { events, kept: isSame ? before.kept : [EMPTY] };
};

/** Folds up to a position of the log; null folds all. */
export const foldTo = ({ events, kept }: SessionFold, position: number | null): Transcript => {
  const after = position === null ? -1 : events.findIndex((event) => event.position > position);
  const count = after < 0 ? events.length : after;
  const index = Math.floor(count / STEP);
  for (let next = kept.length; next <= index; next++)
    kept.push(foldEvents(events.slice((next - 1) * STEP, next * STEP), null, kept[next - 1]));
  return foldEvents(events.slice(index * STEP, count), null, kept[index]);
};
