import type { LogEvent, RouteReply } from '@antiphon/client';
import { foldHistory } from '@antiphon/contracts/session-fold';
import type { Deletion } from './deletions.js';

type History = RouteReply<'readSessionHistory'>;
export type ScrubbedTurn = ReturnType<typeof foldHistory>[number];

/** Turns as of a position and the events after it. Every position up to `position` can be folded. */
export type HistoryPart = Pick<History, 'from' | 'position' | 'snapshot' | 'events' | 'deleted'>;

/** Turns that are shown while the position is dragged. */
export const SCRUBBED_TURNS = 4;
/** Positions that are read around the one that is shown, for a session whose events are dense. */
const MIN_SPAN = 2_000;
const MAX_PARTS = 16;

const byPosition = (events: readonly { readonly position: number }[], at: number): number => {
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
  const end = byPosition(events, at);
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

type ReadPart = (from: number, signal: AbortSignal) => Promise<HistoryPart>;

/**
 * Parts of the history of one session around the dragged position. It has at most one request at a
 * time, and reads ahead in the direction of the drag.
 */
export class HistoryParts {
  readonly #read: ReadPart;
  readonly #changed: () => void;
  readonly #abort = new AbortController();
  #parts: HistoryPart[] = [];
  #span = MIN_SPAN;
  #isReading = false;
  #last = 0;
  #wanted: number | null = null;

  constructor(read: ReadPart, changed: () => void) {
    this.#read = read;
    this.#changed = changed;
  }

  /** Returns the part that has a position, or null and reads it. */
  find(at: number): HistoryPart | null {
    const part = this.#partOf(at);
    const isForward = at >= this.#last;
    this.#last = at;
    const ahead = Math.max(0, isForward ? at + this.#span / 2 : at - this.#span / 2);
    if (part === null) this.#want(at);
    else if (this.#partOf(ahead) === null) this.#want(ahead);
    return part;
  }

  close(): void {
    this.#abort.abort();
  }

  #partOf(at: number): HistoryPart | null {
    return this.#parts.find(({ from, position }) => from <= at && at <= position) ?? null;
  }

  #want(at: number): void {
    this.#wanted = at;
    if (this.#isReading) return;
    this.#isReading = true;
    void this.#readWanted()
      .catch(() => undefined)
      .finally(() => {
        this.#isReading = false;
      });
  }

  async #readWanted(): Promise<void> {
    while (this.#wanted !== null && !this.#abort.signal.aborted) {
      const at = this.#wanted;
      this.#wanted = null;
      if (this.#partOf(at) !== null) continue;
      const part = await this.#read(Math.max(0, Math.floor(at - this.#span / 2)), this.#abort.signal);
      this.#parts = [...this.#parts, part].slice(-MAX_PARTS);
      this.#span = Math.max(MIN_SPAN, part.position - part.from);
      this.#changed();
    }
  }
}
