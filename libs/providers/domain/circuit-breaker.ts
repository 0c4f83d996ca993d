import type { ModelFailureDetails } from './model-port.js';

/** Failures in a row, counted over all agent processes, that open a provider's circuit. */
export const BREAKER_FAILURES = 5;
/** Time that a circuit stays open before a trial call, ms. */
export const BREAKER_OPEN_MS = 60_000;
/** Time after which a trial call counts as lost and another may be made, ms. */
export const BREAKER_TRIAL_MS = 60_000;

/** Stored state of a provider that has failed. Times are ms since the epoch. */
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
 * Returns the phase of a circuit at `now`. A provider without stored state has a closed circuit.
 */
export const circuitPhase = (state: CircuitState | undefined, now: number): CircuitPhase => {
  if (!state || state.openUntil === null) return 'closed';
  if (isAhead(state.openUntil, now, BREAKER_OPEN_MS)) return 'open';
  const { trialUntil } = state;
  return trialUntil !== null && isAhead(trialUntil, now, BREAKER_TRIAL_MS) ? 'probing' : 'half-open';
};

/** A circuit that refuses calls, as decisions about a turn see it. */
export interface OpenCircuit {
  readonly state: 'open' | 'probing';
  /** ISO 8601, UTC. */
  readonly until: string;
}
/** Open circuits by the provider's configured name. */
export type OpenCircuits = ReadonlyMap<string, OpenCircuit>;
export const NO_OPEN_CIRCUITS: OpenCircuits = new Map();

/**
 * Meaning of a failed call. With `failed` the provider is at fault, and the failure counts. With
 * `alive` the provider refused this request. With `unknown` the call says nothing about it.
 */
export type FailureClass = 'failed' | 'alive' | 'unknown';

const REQUEST_TIMEOUT = 408;

/**
 * Classifies a failed call for the circuit breaker. The provider's fault: unreachable, a timeout,
 * 408 and 5xx, a broken or cut response, a retryable error event. Other 4xx are the caller's fault,
 * and so is 429: the provider is alive and states its own wait.
 */
export const classifyFailure = ({
  reason,
  status,
  retryable,
  dispatched,
  why,
}: Pick<ModelFailureDetails, 'reason' | 'status' | 'retryable' | 'dispatched' | 'why'>): FailureClass => {
  switch (reason) {
    case 'provider_timeout':
      // The places of this process were taken: the provider was not asked.
      return why?.kind === 'provider_wait' && why.awaited === 'free_place' ? 'unknown' : 'failed';
    case 'provider_unreachable':
      return 'failed';
    case 'provider_protocol':
      return retryable ? 'failed' : 'unknown';
    case 'provider_error':
      if (status !== undefined) return status >= 500 || status === REQUEST_TIMEOUT ? 'failed' : 'alive';
      if (!dispatched) return 'unknown';
      return retryable ? 'failed' : 'alive';
    case 'cancelled':
      return 'unknown';
  }
};
