import type { ModelFailureDetails } from './model-port.js';

export { BREAKER_FAILURES, BREAKER_OPEN_MS, BREAKER_TRIAL_MS, circuitPhase } from '@antiphon/kernel';
export type { CircuitPhase, CircuitState } from '@antiphon/kernel';

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
