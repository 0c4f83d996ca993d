import { createBoundedMap, exhausted, type Clock } from '@antiphon/kernel';

/** Window in which sign-ins are counted, ms. */
const WINDOW_MS = 300_000;
/** Maximum number of names that are counted. */
const MAX_NAMES = 10_000;

/**
 * Limits sign-ins, each of which adds a key and facts to the log. It counts those of a client
 * address and those of a credential in a sliding window. Each gateway counts its own.
 */
export class SignInLimits {
  readonly #recent = createBoundedMap<readonly number[]>(MAX_NAMES);

  constructor(
    /** Sign-ins of one name in a window; 0 for no limit. */
    private readonly max: number,
    private readonly clock: Clock,
  ) {}

  /**
   * Records one sign-in of several names, such as an address and a key. Throws
   * `GATEWAY.TOO_MANY_SIGN_INS` and records nothing if one of them is at its limit.
   */
  charge(...names: readonly string[]): void {
    if (this.max === 0) return;
    const now = this.clock.now();
    const counted = names.map((name) => ({ name, times: this.#within(name, now) }));
    const ends = counted.flatMap(({ times }) =>
      times.length < this.max ? [] : [(times[0] ?? now) + WINDOW_MS],
    );
    if (ends.length > 0) {
      const retryAfterSeconds = Math.max(1, Math.ceil((Math.max(...ends) - now) / 1_000));
      const message = `over ${this.max} sign-ins within ${WINDOW_MS / 60_000} minutes: use a session that exists, or wait`;
      throw exhausted('GATEWAY.TOO_MANY_SIGN_INS', message, { data: { retryAfterSeconds } });
    }
    for (const { name, times } of counted) this.#recent.put(name, [...times, now]);
  }

  #within(name: string, now: number): readonly number[] {
    return (this.#recent.get(name) ?? []).filter((at) => now - at < WINDOW_MS);
  }
}
