import type { LogEvent, RouteReply } from '@antiphon/client';
import { foldHistory } from '@antiphon/contracts/session-fold';
import type { Deletion } from './deletions.js';

export type History = RouteReply<'readSessionHistory'>;
export type ScrubbedTurn = ReturnType<typeof foldHistory>[number];

/** Turns as of a position and the events after it. Every position up to `position` can be folded. */
export type HistoryPart = Pick<History, 'from' | 'position' | 'snapshot' | 'events' | 'deleted'>;

/** Turns that are shown while the position is dragged. */
export const SCRUBBED_TURNS = 4;

/** Returns how many events are up to a position. */
const countUpTo = (events: readonly { readonly position: number }[], at: number): number => {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.position ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
};

/**
 * Returns the part of loaded events that has the last turns as of a position. Returns null if
 * events before them are not loaded.
 */
export const partOfEvents = (
  events: readonly LogEvent[],
  deleted: readonly Deletion[],
  at: number,
): HistoryPart | null => {
  const end = countUpTo(events, at);
  let start = end;
  for (let turns = 0; turns < SCRUBBED_TURNS && start > 0; start--)
    if (events[start - 1]?.type === 'TurnRequested') turns++;
  const hasAll = start > 0 || events[0]?.streamVersion === 1;
  if (end === 0 || !hasAll) return null;
  const shown = events.slice(start, end).map(({ streamVersion, position, recordedAt, type, data }) => ({
    ...{ version: streamVersion, position, recordedAt },
    event: { type, schemaVersion: 1, data: data as HistoryPart['events'][number]['event']['data'] },
  }));
  return { from: 0, position: at, snapshot: { turns: [] }, events: shown, deleted: [...deleted] };
};

/** Returns the last turns of a part as of a position, by the fold of the server. */
export const foldPart = (part: HistoryPart, at: number): readonly ScrubbedTurn[] =>
  foldHistory(part, at).slice(-SCRUBBED_TURNS);
