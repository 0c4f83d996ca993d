interface Held {
  readonly bytes: Buffer;
  readonly until: number;
}

/** Bytes that wait in the memory of this process until their reader has them. */
export class HeldBytes {
  private readonly held = new Map<string, Held>();
  private size = 0;

  /** `now` is a steady clock. `maxBytes` limits all bytes that wait. */
  constructor(
    private readonly now: () => number,
    private readonly keepMs: number,
    private readonly maxBytes: number,
  ) {}

  /** Holds bytes. Returns false if too many others wait. */
  hold(key: string, bytes: Buffer): boolean {
    this.release(key);
    const now = this.now();
    for (const [other, { until }] of this.held) if (until <= now) this.release(other);
    if (this.size + bytes.length > this.maxBytes) return false;
    this.held.set(key, { bytes, until: now + this.keepMs });
    this.size += bytes.length;
    return true;
  }

  /** Returns a part of held bytes, or null if they are gone. */
  read(key: string, offset: number, length: number): Buffer | null {
    return this.held.get(key)?.bytes.subarray(offset, offset + length) ?? null;
  }

  /** Forgets bytes that their reader has, or that have waited too long. */
  release(key: string): void {
    this.size -= this.held.get(key)?.bytes.length ?? 0;
    this.held.delete(key);
  }
}
