import type { LogEvent } from '@antiphon/client';
import { SPAN_MS, type Amount } from './time-series.js';

/** Events of the last 30 minutes that the charts count. */
export const COUNTED_TYPES = 'TurnRequested,BudgetSettled,BudgetExpired';
/** Maximum number of amounts of one kind that a tab keeps. */
export const MAX_AMOUNTS = 50_000;

/** Turns and charges that the log has recorded, known from `since` to `until`, ms. */
export interface LogAmounts {
  readonly turns: readonly Amount[];
  /** Charges of ended model calls, micro-USD. */
  readonly charges: readonly Amount[];
  readonly since: number;
  readonly until: number;
  /** Position after which the next read begins. */
  readonly position: number;
}

/** A read of the counted events after a position, oldest first. */
export interface CountedRead {
  readonly events: readonly Pick<LogEvent, 'type' | 'data' | 'recordedAt' | 'position'>[];
  /** True if no further event followed. */
  readonly isComplete: boolean;
  /** Position of the log as of which the events were read. */
  readonly position: number;
  /** Time of the read, ms. */
  readonly readAt: number;
}

const amountsIn = (events: CountedRead['events']): Pick<LogAmounts, 'turns' | 'charges'> => {
  const turns: Amount[] = [];
  const charges: Amount[] = [];
  for (const { type, data, recordedAt } of events) {
    const at = Date.parse(recordedAt);
    const { microUsd } = (data ?? {}) as { readonly microUsd?: unknown };
    if (type === 'TurnRequested') turns.push({ at, amount: 1 });
    else if (typeof microUsd === 'number') charges.push({ at, amount: microUsd });
  }
  return { turns, charges };
};

/** Returns the newest amounts that are recent, and the time since which they are complete. */
const keepNewest = (amounts: readonly Amount[], start: number) => {
  const recent = amounts.filter(({ at }) => at >= start);
  const kept = recent.slice(-MAX_AMOUNTS);
  const isCut = kept.length < recent.length;
  return { kept, since: isCut ? (kept[0]?.at ?? start) + 1 : start };
};

/**
 * Adds the events of a read to the amounts that were known before. After a read that is not
 * complete they are known up to its last event, and the next read continues there.
 */
export const addCounted = (before: LogAmounts | null, read: CountedRead): LogAmounts => {
  const { events, isComplete, readAt } = read;
  const last = events.at(-1);
  const until = isComplete || !last ? readAt : Date.parse(last.recordedAt);
  const found = amountsIn(events);
  const turns = keepNewest([...(before?.turns ?? []), ...found.turns], readAt - SPAN_MS);
  const charges = keepNewest([...(before?.charges ?? []), ...found.charges], readAt - SPAN_MS);
  return {
    turns: turns.kept,
    charges: charges.kept,
    since: Math.max(before?.since ?? 0, turns.since, charges.since),
    until,
    position: isComplete ? Math.max(read.position, last?.position ?? 0) : (last?.position ?? 0),
  };
};
