import type { ModelFailureDetails } from './model-port.js';

/** Failures in a row, over all agent processes, after which a provider is left alone. */
export const BREAKER_FAILURES = 5;
/** For so long, ms. */
export const BREAKER_OPEN_MS = 60_000;
/** A trial call whose process says nothing for so long, ms, is taken for lost, and another may be made. */
export const BREAKER_PROBE_MS = 60_000;

/** What is known of a provider in trouble; times in ms since the epoch. */
export interface BreakerState {
  readonly failures: number;
  /** Null while it is still asked. */
  readonly openUntil: number | null;
  /** Until when a trial call is waited for. */
  readonly probeUntil: number | null;
}

/** `closed`: it is asked. `open`: it is left alone. `due`: one trial call may be made. `probing`: that call is on its way. */
export type BreakerView = 'closed' | 'open' | 'due' | 'probing';

/** A time that lies further ahead than it was set for is another clock's, or was set before this one was put back. */
const isAhead = (time: number, now: number, setForMs: number): boolean =>
  time > now && time <= now + setForMs;

export const breakerView = (state: BreakerState | undefined, now: number): BreakerView => {
  if (!state || state.openUntil === null) return 'closed';
  if (isAhead(state.openUntil, now, BREAKER_OPEN_MS)) return 'open';
  const { probeUntil } = state;
  return probeUntil !== null && isAhead(probeUntil, now, BREAKER_PROBE_MS) ? 'probing' : 'due';
};

/** Why a provider is not asked now, as decisions about a turn see it. */
export interface OpenCircuit {
  readonly state: 'open' | 'probing';
  /** ISO 8601, UTC. */
  readonly until: string;
}
/** By the provider's configured name. */
export type OpenCircuits = ReadonlyMap<string, OpenCircuit>;
export const NO_OPEN_CIRCUITS: OpenCircuits = new Map();

/**
 * `failed`: the provider is at fault, which counts. `alive`: it answered, and said no to this request.
 * `unknown`: the call says nothing about the provider.
 */
export type FailureClass = 'failed' | 'alive' | 'unknown';

const REQUEST_TIMEOUT = 408;

/**
 * What a failed call says about its provider: unreachable, a timeout, 408 and 5xx, a broken or cut answer and an error event
 * that may pass are its fault. Other 4xx are ours to mend, 429 included: it is alive, and says itself how long to wait.
 */
export const classifyFailure = ({
  reason,
  status,
  retryable,
  dispatched,
}: Pick<ModelFailureDetails, 'reason' | 'status' | 'retryable' | 'dispatched'>): FailureClass => {
  switch (reason) {
    case 'provider_unreachable':
    case 'provider_timeout':
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
