import type { LogEvent } from '@antiphon/client';

/** Events in memory; others are read again when they are scrolled to. */
export const MAX_EVENTS = 20_000;

/** Where older events continue: at a cursor of the API, or before a position. */
export type Older = { readonly cursor: string } | { readonly before: number } | null;

/** A part of a list of events, newest first. */
export interface EventWindow {
  readonly events: readonly LogEvent[];
  readonly older: Older;
  /** Number of newer events that the list has had and dropped. */
  readonly dropped: number;
}

/** Drops the oldest events beyond the maximum. They are read again by their position. */
const dropOldest = (window: EventWindow, max: number): EventWindow => {
  if (window.events.length <= max) return window;
  const events = window.events.slice(0, max);
  return { ...window, events, older: { before: events.at(-1)?.position ?? 1 } };
};

/** Adds events that were just recorded, unless the newest events before them were dropped. */
export const addRecorded = (
  window: EventWindow,
  fresh: readonly LogEvent[],
  max = MAX_EVENTS,
): EventWindow => {
  const newest = window.events[0]?.position ?? 0;
  const later = fresh.filter(({ position }) => position > newest).toReversed();
  if (later.length === 0 || window.dropped > 0) return window;
  return dropOldest({ ...window, events: [...later, ...window.events] }, max);
};

/** Adds a page of older events, and drops the newest ones beyond the maximum. */
export const addOlder = (
  window: EventWindow,
  page: readonly LogEvent[],
  cursor: string | null,
  max = MAX_EVENTS,
): EventWindow => {
  const all = [...window.events, ...page];
  const excess = Math.max(0, all.length - max);
  return {
    events: all.slice(excess),
    older: cursor === null ? null : { cursor },
    dropped: window.dropped + excess,
  };
};

/** Adds a page of newer events, oldest first as the API returns it, and drops the oldest ones. */
export const addNewer = (
  window: EventWindow,
  page: readonly LogEvent[],
  isLast: boolean,
  max = MAX_EVENTS,
): EventWindow => {
  const events = [...page.toReversed(), ...window.events];
  const dropped = isLast ? 0 : Math.max(0, window.dropped - page.length);
  return dropOldest({ ...window, events, dropped }, max);
};
