import { fromFailures, type FailureReads } from './from-failures.js';
import { fromStates, type StateReads } from './from-states.js';

/** Something that a person should look at, or decide. */
export interface AttentionItem {
  /** Stable for as long as it is the same thing; another one for a newer failure of a group. */
  readonly id: string;
  readonly tone: 'bad' | 'warn';
  readonly title: string;
  readonly reason: string;
  /** Time since which it holds; null where it is not known. */
  readonly at: string | null;
  /** Time at which it ends by itself, or is too late. */
  readonly until?: string;
  readonly to: string;
  readonly action: string;
  /** Cause that several items may have; absent where the id names it. */
  readonly cause?: string;
  /** True for a failure that has happened, which a person may put away. Others hold until solved. */
  readonly isPast: boolean;
}

/** Replies of the API from which the items follow; undefined for one that has not arrived. */
export type AttentionReads = StateReads & FailureReads;

const RANK = { bad: 0, warn: 1 } as const;

/** Returns all items: those that hold before those that have happened, the worse first. */
export const attentionItems = (reads: AttentionReads, now: number): readonly AttentionItem[] =>
  [...fromStates(reads, now), ...fromFailures(reads)].sort(
    (a, b) => Number(a.isPast) - Number(b.isPast) || RANK[a.tone] - RANK[b.tone],
  );

/** Items that a person has put away, with the time until which they are, ms. */
export type PutAway = Readonly<Record<string, number>>;

/** Returns the items that are shown. */
export const shownItems = (
  items: readonly AttentionItem[],
  away: PutAway,
  now: number,
): readonly AttentionItem[] => items.filter(({ id }) => (away[id] ?? 0) <= now);
