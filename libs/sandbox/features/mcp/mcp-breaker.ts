import { BREAKER_FAILURES, BREAKER_OPEN_MS, BREAKER_TRIAL_MS, circuitPhase } from '@antiphon/kernel';
import type { CircuitState } from '@antiphon/kernel';

const CLOSED: CircuitState = { failures: 0, openUntil: null, trialUntil: null };

/**
 * Circuit breaker of a connection. Its state is that of this process, as the connection is: another
 * process may reach the server.
 */
export class McpBreaker {
  #state = CLOSED;

  constructor(private readonly now: () => number) {}

  /** Time until which calls are refused; null if they are not. */
  get openUntil(): number | null {
    const phase = circuitPhase(this.#state, this.now());
    return phase === 'open' || phase === 'probing' ? (this.#state.trialUntil ?? this.#state.openUntil) : null;
  }

  /** Admits a call, or returns the time until which calls are refused. Claims the trial call. */
  admit(): { readonly isAdmitted: true } | { readonly isAdmitted: false; readonly until: number } {
    const now = this.now();
    const phase = circuitPhase(this.#state, now);
    if (phase === 'half-open') this.#state = { ...this.#state, trialUntil: now + BREAKER_TRIAL_MS };
    if (phase === 'closed' || phase === 'half-open') return { isAdmitted: true };
    return { isAdmitted: false, until: this.openUntil ?? now };
  }

  recordSuccess(): void {
    this.#state = CLOSED;
  }

  /** Returns true if this failure opened the circuit. */
  recordFailure(): boolean {
    const failures = this.#state.failures + 1;
    const wasOpen = this.#state.openUntil !== null;
    if (!wasOpen && failures < BREAKER_FAILURES) {
      this.#state = { ...CLOSED, failures };
      return false;
    }
    this.#state = { failures, openUntil: this.now() + BREAKER_OPEN_MS, trialUntil: null };
    return !wasOpen;
  }

  /** Gives the trial call back: it ended without a word about the server. */
  releaseTrial(): void {
    this.#state = { ...this.#state, trialUntil: null };
  }
}
