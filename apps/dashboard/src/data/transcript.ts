import type { LogEvent } from '@antiphon/client';
import { foldTurn } from '@antiphon/contracts/session-fold';
import { forkPointOf, type ForkPoint } from './fork-point.js';
import { textOf, type Fields } from './read-fields.js';

type TurnEvent = Parameters<typeof foldTurn>[1];
/** A turn of a session, with its whole texts. */
export type Turn = Readonly<NonNullable<ReturnType<typeof foldTurn>>>;

/** A session up to a position of the log. */
export interface Transcript {
  readonly agentId: string | null;
  readonly sessionKey: string | null;
  readonly startedAt: string | null;
  readonly forkedFrom: ForkPoint | null;
  readonly turns: readonly Turn[];
  /** Position of the last event that is folded in. */
  readonly position: number;
  readonly version: number;
}

export const EMPTY: Transcript = {
  agentId: null,
  sessionKey: null,
  startedAt: null,
  forkedFrom: null,
  turns: [],
  position: 0,
  version: 0,
};

const start = (before: Transcript, data: Fields): Transcript => ({
  ...before,
  agentId: textOf(data['agentId']) || null,
  sessionKey: textOf(data['sessionKey']) || null,
  startedAt: textOf(data['startedAt']) || null,
});

/** Folds one event of a session into its transcript. Events must come in the order of the log. */
export const foldEvent = (before: Transcript, event: LogEvent): Transcript => {
  const { type, streamVersion: version, position } = event;
  if (version <= before.version) return before;
  const data = (event.data ?? {}) as Fields;
  const next = { ...before, position, version };
  if (type === 'SessionStarted') return start(next, data);
  if (type === 'SessionForked') return { ...next, forkedFrom: forkPointOf(data) };
  const index = before.turns.findLastIndex(({ turnId }) => turnId === data['turnId']);
  // The gateway sends events as they were written: the fold reads every version of them.
  const recorded = { type, data } as unknown as TurnEvent['event'];
  const turn = foldTurn(before.turns[index], { event: recorded, version, position }, Infinity);
  if (!turn) return next;
  return { ...next, turns: index < 0 ? [...before.turns, turn] : before.turns.with(index, turn) };
};

/** Sums a figure of turns. */
export const sumUsage = (
  turns: readonly Turn[],
  figure: 'inputTokens' | 'outputTokens' | 'costMicroUsd',
): number => turns.reduce((total, { usage }) => total + usage[figure], 0);

/** Folds the events of a session up to a position of the log; null folds all. */
export const foldEvents = (
  events: readonly LogEvent[],
  position: number | null,
  before: Transcript = EMPTY,
): Transcript => {
  let transcript = before;
  for (const event of events) {
    if (position !== null && event.position > position) break;
    transcript = foldEvent(transcript, event);
  }
  return transcript;
};
