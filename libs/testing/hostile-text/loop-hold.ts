import { processorMs } from '../linear-time.js';
import type { HostileText } from './hostile-texts.js';

/** Maximum time that work on a text may hold the event loop, ms. */
export const MOST_HOLD_MS = 50;
/** Tries, of which the best counts: a collection of garbage may fall into any one. */
const TRIES = 5;
/** Further tries of a text that was over the bound: other programs may have had the caches. */
const LATER_TRIES = 20;

/** A function that reads text on the loop that tenants share, with the bound of its caller. */
export interface LoopReader {
  readonly name: string;
  /** Maximum length of its text, UTF-16 units. */
  readonly longest: number;
  readonly read: (text: string) => unknown;
}

/**
 * Returns the time of a run, ms. The time of the clock has other programs in it, and that of the
 * processor the threads that collect garbage: the smaller one counts.
 */
const timeOf = (run: () => unknown): number => {
  const from = performance.now();
  const processor = processorMs(run);
  return Math.min(processor, performance.now() - from);
};

/** Returns the time of a reader on a text, ms. Its refusals count as an end. */
export const holdOf = ({ read, longest }: LoopReader, text: string, tries = TRIES): number => {
  const given = text.slice(0, longest);
  const run = () => {
    try {
      read(given);
    } catch {
      // The time counts, not the refusal.
    }
  };
  let best = Infinity;
  for (let n = 0; n < tries && best > MOST_HOLD_MS; n++) best = Math.min(best, timeOf(run));
  return best;
};

/** Returns the holds over the bound, as `reader: ms of recipe`. */
export const findHolds = (readers: readonly LoopReader[], texts: Iterable<HostileText>): string[] => {
  const found: string[] = [];
  for (const { text, recipe } of texts)
    for (const reader of readers) {
      const first = holdOf(reader, text);
      const ms = first > MOST_HOLD_MS ? Math.min(first, holdOf(reader, text, LATER_TRIES)) : first;
      if (ms > MOST_HOLD_MS) found.push(`${reader.name}: ${Math.round(ms)} ms of ${recipe}`);
    }
  return found;
};
