interface Retry {
  readonly retryAt: number;
  readonly expiresAt: number;
}

/** Maximum entries of each map: messages settled by another process would otherwise add up. */
const MAX_ENTRIES = 10_000;
/** Minimum delay of a message that waits for an earlier one, ms: bounds its redeliveries. */
const MIN_WAIT_MS = 100;

const removeOldest = <K, V>(map: Map<K, V>): void => {
  const oldest = map.keys().next();
  if (map.size > MAX_ENTRIES && !oldest.done) map.delete(oldest.value);
};

/** Records what one process knows about deliveries; JetStream only counts them. */
export class DeliveryLedger {
  readonly #excused = new Map<number, number>();
  readonly #seen = new Map<number, true>();
  readonly #retries = new Map<string, Map<number, Retry>>();

  /** Records that this process handles a message. */
  see(sequence: number): void {
    this.#seen.set(sequence, true);
    removeOldest(this.#seen);
  }

  /** Returns true for a message whose earlier delivery had an outcome in this process. */
  hasSeen(sequence: number): boolean {
    return this.#seen.has(sequence);
  }

  /** Records a failed attempt that the message did not cause. */
  excuse(sequence: number): void {
    this.#excused.set(sequence, (this.#excused.get(sequence) ?? 0) + 1);
    removeOldest(this.#excused);
  }

  /** Returns how many of `deliveries` count against the message. */
  countFailures(sequence: number, deliveries: number): number {
    return deliveries - (this.#excused.get(sequence) ?? 0);
  }

  /**
   * Holds later messages of the subject back until this one is settled. The hold ends at
   * `expiresAt`, when another process may have the message.
   */
  hold(subject: string, sequence: number, retryAt: number, expiresAt: number): void {
    const waiting = this.#retries.get(subject) ?? new Map<number, Retry>();
    waiting.set(sequence, { retryAt, expiresAt });
    this.#retries.set(subject, waiting);
    removeOldest(this.#retries);
  }

  /**
   * Returns how long a message must wait for an earlier one of its subject, ms; 0 if it need not.
   */
  holdTime(subject: string, sequence: number, now: number): number {
    const earlier = [...(this.#retries.get(subject) ?? [])].filter(
      ([other, { expiresAt }]) => other < sequence && expiresAt > now,
    );
    if (earlier.length === 0) return 0;
    return Math.max(MIN_WAIT_MS, ...earlier.map(([, { retryAt }]) => retryAt - now));
  }

  /** Forgets a message that has been acknowledged or given up. */
  settle(subject: string, sequence: number): void {
    this.#excused.delete(sequence);
    this.#seen.delete(sequence);
    const waiting = this.#retries.get(subject);
    if (waiting?.delete(sequence) && waiting.size === 0) this.#retries.delete(subject);
  }
}
