import type { CallerTime } from '@antiphon/contracts/sandbox';

/** Difference of the clocks that is assumed for a caller without earlier messages, ms. */
const MAX_SKEW_MS = 300_000;
/** Time after which the smallest difference is measured again, because clocks drift, ms. */
const WINDOW_MS = 120_000;
const MAX_CALLERS = 1_000;

/** Smallest differences of the current and the previous window. */
interface Measured {
  readonly since: number;
  readonly current: number;
  readonly previous: number;
}

/**
 * Returns milliseconds since the epoch, counted by the monotonic clock: never steps, and advances
 * while the process is suspended.
 */
export const steadyNow = (): number => performance.timeOrigin + performance.now();

/**
 * Compares callers' clocks with this process's. The difference of two clocks is at most the
 * smallest difference of a message's arrival and its sending. A message whose difference is larger
 * was delayed. So neither clock has to be right.
 */
export class CallerClocks {
  private readonly callers = new Map<string, Measured>();

  constructor(private readonly now: () => number = steadyNow) {}

  /** Measures the difference with a message that has just arrived. */
  observe({ caller, at }: CallerTime): void {
    const now = this.now();
    const difference = now - at;
    const known = this.callers.get(caller);
    this.callers.delete(caller); // inserted again, as the newest
    if (!known) this.callers.set(caller, { since: now, current: difference, previous: difference });
    else if (now - known.since > WINDOW_MS)
      this.callers.set(caller, { since: now, current: difference, previous: known.current });
    else this.callers.set(caller, { ...known, current: Math.min(known.current, difference) });
    const [oldest] = this.callers.keys();
    if (this.callers.size > MAX_CALLERS && oldest !== undefined) this.callers.delete(oldest);
  }

  /**
   * Returns whether a time by the caller's clock has passed. Without earlier messages of the caller
   * it has passed only if it has for every difference up to five minutes.
   */
  isOver(caller: string, time: number): boolean {
    const known = this.callers.get(caller);
    const difference = known ? Math.min(known.current, known.previous) : MAX_SKEW_MS;
    return this.now() - difference > time;
  }
}
