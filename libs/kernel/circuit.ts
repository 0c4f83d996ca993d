/** Failures in a row that open the circuit of a provider or an MCP server. */
export const BREAKER_FAILURES = 5;
/** Time that a circuit stays open before a trial call, ms. */
export const BREAKER_OPEN_MS = 60_000;
/** Time after which a trial call counts as lost and another may be made, ms. */
export const BREAKER_TRIAL_MS = 60_000;

/** State of a dependency that has failed. Times are ms since the epoch. */
export interface CircuitState {
  readonly failures: number;
  /** Null while the circuit is closed. */
  readonly openUntil: number | null;
  /** Deadline of the trial call in progress; null without one. */
  readonly trialUntil: number | null;
}

/**
 * State of a circuit. A closed one passes calls, an open one refuses them, and a half-open one
 * admits one trial call. It is probing while that call is in progress.
 */
export type CircuitPhase = 'closed' | 'open' | 'half-open' | 'probing';

/**
 * Returns false for a time further ahead than any clock would set it: it is another clock's, or
 * older than a reset.
 */
const isAhead = (time: number, now: number, setForMs: number): boolean =>
  time > now && time <= now + setForMs;

/**
 * Returns the phase of a circuit at `now`. A dependency without state has a closed circuit.
 */
export const circuitPhase = (state: CircuitState | undefined, now: number): CircuitPhase => {
  if (!state || state.openUntil === null) return 'closed';
  if (isAhead(state.openUntil, now, BREAKER_OPEN_MS)) return 'open';
  const { trialUntil } = state;
  return trialUntil !== null && isAhead(trialUntil, now, BREAKER_TRIAL_MS) ? 'probing' : 'half-open';
};
