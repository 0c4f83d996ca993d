/** Time without extensions after one waited too long for a lock, ms. It doubles up to the last. */
const FIRST_MS = 500;
const MAX_MS = 8_000;
/** Time after a pause within which another one is longer, ms. */
const FORGET_MS = 1_000;

/**
 * Time in which appends go without extensions, because a row that they need stays locked. Without
 * it, each batch would wait for that row first.
 */
export class ExtensionPause {
  private until = -Infinity;
  private lastMs = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  isOver(): boolean {
    return this.now() >= this.until;
  }

  /** Begins a pause. It is twice as long as one that has just ended. */
  begin(): void {
    const isRepeated = this.now() - this.until < FORGET_MS;
    this.lastMs = isRepeated ? Math.min(MAX_MS, this.lastMs * 2) : FIRST_MS;
    this.until = this.now() + this.lastMs;
  }
}
