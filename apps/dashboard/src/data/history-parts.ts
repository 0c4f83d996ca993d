/** Positions that are read around the one that is shown, if events are dense. */
const MIN_SPAN = 2_000;
const MAX_PARTS = 16;

/** Something as of a position and the events after it, complete up to `position`. */
interface Part {
  readonly from: number;
  readonly position: number;
  /** Newest position of the log. */
  readonly head: number;
}

type ReadPart<P> = (from: number, signal: AbortSignal) => Promise<P>;

/**
 * Parts of the history of one session or run around the dragged position. It has at most one
 * request at a time, and reads ahead in the direction of the drag.
 */
export class HistoryParts<P extends Part> {
  readonly #read: ReadPart<P>;
  readonly #changed: () => void;
  readonly #abort = new AbortController();
  #parts: P[] = [];
  #span = MIN_SPAN;
  #isReading = false;
  #last = 0;
  #wanted: number | null = null;
  /** Newest position of the log as of the last part. */
  #head = Number.MAX_SAFE_INTEGER;

  constructor(read: ReadPart<P>, changed: () => void) {
    this.#read = read;
    this.#changed = changed;
  }

  /** Returns the part that has a position, or null and reads it. */
  find(at: number): P | null {
    const part = this.#partOf(at);
    const isForward = at >= this.#last;
    this.#last = at;
    const ahead = isForward ? Math.min(this.#head, at + this.#span / 2) : Math.max(0, at - this.#span / 2);
    if (part === null) this.#want(at);
    else if (this.#partOf(ahead) === null) this.#want(ahead);
    return part;
  }

  close(): void {
    this.#abort.abort();
  }

  #partOf(at: number): P | null {
    return this.#parts.find(({ from, position }) => from <= at && at <= position) ?? null;
  }

  /** Returns where to read for a position: half a span before it, or where a shorter part ended. */
  #startFor(at: number): number {
    let from = Math.max(0, Math.floor(at - this.#span / 2));
    for (const { from: begin, position } of this.#parts.toSorted((a, b) => a.position - b.position))
      if (begin <= from && from < position) from = position;
    return from;
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
      const part = await this.#read(this.#startFor(at), this.#abort.signal);
      this.#head = part.head;
      this.#parts = [...this.#parts, part].slice(-MAX_PARTS);
      this.#span = Math.max(MIN_SPAN, part.position - part.from);
      this.#changed();
    }
  }
}
