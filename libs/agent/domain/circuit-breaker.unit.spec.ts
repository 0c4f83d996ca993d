import { describe, expect, it } from '@jest/globals';
import type { ModelFailureDetails } from './model-port.js';
import { breakerView, classifyFailure } from './circuit-breaker.js';

const failure = (more: Partial<ModelFailureDetails>): ModelFailureDetails => ({
  reason: 'provider_error',
  message: 'no',
  dispatched: true,
  retryable: true,
  ...more,
});

describe('what a failed call says about its provider', () => {
  it.each<[string, Partial<ModelFailureDetails>, string]>([
    ['unreachable', { reason: 'provider_unreachable', dispatched: false }, 'failed'],
    ['a timeout', { reason: 'provider_timeout' }, 'failed'],
    ['a cut answer', { reason: 'provider_protocol' }, 'failed'],
    ['an answer that is longer than we keep', { reason: 'provider_protocol', retryable: false }, 'unknown'],
    ['500', { status: 500 }, 'failed'],
    ['529, overloaded', { status: 529 }, 'failed'],
    ['500 that says not to retry', { status: 500, retryable: false }, 'failed'],
    ['408', { status: 408 }, 'failed'],
    ['400', { status: 400, retryable: false }, 'alive'],
    ['401', { status: 401, retryable: false }, 'alive'],
    ['429', { status: 429, retryable: true }, 'alive'],
    ['overloaded, said in the stream', {}, 'failed'],
    ['refused in the stream', { retryable: false }, 'alive'],
    ['no key', { dispatched: false, retryable: false }, 'unknown'],
    ['cancelled', { reason: 'cancelled', retryable: false }, 'unknown'],
  ])('%s', (_what, more, judgement) => expect(classifyFailure(failure(more))).toBe(judgement));
});

describe('a breaker', () => {
  it.each([
    [undefined, 'closed'],
    [{ failures: 4, openUntil: null, probeUntil: null }, 'closed'],
    [{ failures: 5, openUntil: 101, probeUntil: null }, 'open'],
    [{ failures: 5, openUntil: 100, probeUntil: null }, 'due'],
    [{ failures: 5, openUntil: 90, probeUntil: 101 }, 'probing'],
    // Set by a clock that goes ahead of this one, or before this one was put back.
    [{ failures: 5, openUntil: 60_101, probeUntil: null }, 'due'],
    [{ failures: 5, openUntil: 90, probeUntil: 60_101 }, 'due'],
    [{ failures: 5, openUntil: 90, probeUntil: 100 }, 'due'],
  ] as const)('%j is %s', (state, view) => expect(breakerView(state, 100)).toBe(view));
});
