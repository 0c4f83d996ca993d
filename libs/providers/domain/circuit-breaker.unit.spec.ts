import { describe, expect, it } from '@jest/globals';
import type { ModelFailureDetails } from './model-port.js';
import { circuitPhase, classifyFailure } from './circuit-breaker.js';

const failure = (more: Partial<ModelFailureDetails>): ModelFailureDetails => ({
  reason: 'provider_error',
  message: 'no',
  dispatched: true,
  retryable: true,
  ...more,
});

describe('classifyFailure', () => {
  it.each<[string, Partial<ModelFailureDetails>, string]>([
    ['an unreachable provider', { reason: 'provider_unreachable', dispatched: false }, 'failed'],
    ['a timeout', { reason: 'provider_timeout' }, 'failed'],
    [
      'a wait for a free place of this process',
      {
        reason: 'provider_timeout',
        dispatched: false,
        why: { kind: 'provider_wait', awaited: 'free_place', ms: 1_000, setting: 'concurrent_calls of x' },
      },
      'unknown',
    ],
    ['a cut response', { reason: 'provider_protocol' }, 'failed'],
    ['a response over the size limit', { reason: 'provider_protocol', retryable: false }, 'unknown'],
    ['500', { status: 500 }, 'failed'],
    ['529, overloaded', { status: 529 }, 'failed'],
    ['500 with x-should-retry: false', { status: 500, retryable: false }, 'failed'],
    ['408', { status: 408 }, 'failed'],
    ['400', { status: 400, retryable: false }, 'alive'],
    ['401', { status: 401, retryable: false }, 'alive'],
    ['429', { status: 429, retryable: true }, 'alive'],
    ['an overloaded error in the stream', {}, 'failed'],
    ['a final error in the stream', { retryable: false }, 'alive'],
    ['a missing key', { dispatched: false, retryable: false }, 'unknown'],
    ['a cancellation', { reason: 'cancelled', retryable: false }, 'unknown'],
  ])('classifies %s', (_case, more, verdict) => expect(classifyFailure(failure(more))).toBe(verdict));
});

describe('circuitPhase', () => {
  it.each([
    [undefined, 'closed'],
    [{ failures: 4, openUntil: null, trialUntil: null }, 'closed'],
    [{ failures: 5, openUntil: 101, trialUntil: null }, 'open'],
    [{ failures: 5, openUntil: 100, trialUntil: null }, 'half-open'],
    [{ failures: 5, openUntil: 90, trialUntil: 101 }, 'probing'],
    // Set by a clock ahead of this one, or before this one was set back.
    [{ failures: 5, openUntil: 60_101, trialUntil: null }, 'half-open'],
    [{ failures: 5, openUntil: 90, trialUntil: 60_101 }, 'half-open'],
    [{ failures: 5, openUntil: 90, trialUntil: 100 }, 'half-open'],
  ] as const)('%j is %s', (state, view) => expect(circuitPhase(state, 100)).toBe(view));
});
