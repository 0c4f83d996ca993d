import { textCause } from '@antiphon/contracts/causes';
import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { fold } from '@antiphon/kernel';
import { sessionDecider } from '../session/session.decider.js';
import {
  TURN,
  aborted,
  answered,
  begun,
  requested,
  started,
  toolAnswered,
  toolRequested,
} from '../session/session.examples.js';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain/circuit-breaker';
import type { OpenCircuit } from '@antiphon/providers-domain/circuit-breaker';
import { nextStep } from './next-step.js';
import { NOTHING_IN_FLIGHT } from './step.js';
import type { AgentPolicy, InFlight } from './step.js';

const { evolve, initialState } = sessionDecider({ turns: 5, chars: 10_000 });
const policy: AgentPolicy = {
  provider: 'first',
  model: 'm',
  fallback: null,
  maxIterations: 3,
  openCircuits: NO_OPEN_CIRCUITS,
  guarded: new Set(),
};
const withFallback: AgentPolicy = { ...policy, fallback: { provider: 'second', model: 'n' } };
const after = (
  events: SessionEvent[],
  agent: AgentPolicy | null = policy,
  inFlight: InFlight = NOTHING_IN_FLIGHT,
) => nextStep(fold(evolve, initialState(), [started(), requested(TURN), ...events]), agent, inFlight);

const call = (callId: string) => ({ callId, providerCallId: callId, name: 'echo', input: { a: 1 } });
const unreachable = (attempt: number) =>
  aborted(TURN, attempt, 'provider_unreachable', { dispatched: false });

describe('nextTry', () => {
  it('retries a provider three times, then fails with its message', () => {
    expect(after([begun(TURN, 1), unreachable(1)])).toMatchObject({
      kind: 'begin_call',
      tryNumber: 2,
      failures: 1,
    });
    expect(after([1, 2].flatMap((n) => [begun(TURN, n), unreachable(n)]))).toMatchObject({ failures: 2 });
    expect(after([1, 2, 3].flatMap((n) => [begun(TURN, n), unreachable(n)]))).toEqual({
      kind: 'fail',
      turnId: TURN,
      code: 'PROVIDER.UNREACHABLE',
      cause: textCause('provider unreachable'),
    });
  });

  it('tries the fallback three times after the primary provider', () => {
    const first = [1, 2, 3].flatMap((n) => [begun(TURN, n), unreachable(n)]);
    expect(after(first, withFallback)).toMatchObject({
      kind: 'begin_call',
      tryNumber: 4,
      provider: 'second',
      model: 'n',
      failures: 0,
    });
    const second = [4, 5, 6].flatMap((n) => [
      begun(TURN, n),
      aborted(TURN, n, 'provider_timeout', { provider: 'second', model: 'n' }),
    ]);
    expect(after([...first, ...second.slice(0, 2)], withFallback)).toMatchObject({
      provider: 'second',
      failures: 1,
    });
    expect(after([...first, ...second], withFallback)).toMatchObject({
      kind: 'fail',
      code: 'PROVIDER.TIMEOUT',
    });
  });

  it.each([1, 2, 5])('makes as many tries as a failed one allows (%i)', (tries) => {
    const failed = (n: number) =>
      Array.from({ length: n }, (_, index) => [
        begun(TURN, index + 1),
        aborted(TURN, index + 1, 'provider_timeout', { tries }),
      ]).flat();
    for (let n = 1; n < tries; n += 1)
      expect(after(failed(n))).toMatchObject({ kind: 'begin_call', tryNumber: n + 1, failures: n });
    expect(after(failed(tries))).toMatchObject({ kind: 'fail', code: 'PROVIDER.TIMEOUT' });
    expect(after(failed(tries), withFallback)).toMatchObject({ kind: 'begin_call', provider: 'second' });
  });

  it('does not retry a provider that refused the request', () => {
    const refused = [
      begun(TURN, 1),
      aborted(TURN, 1, 'provider_error', { retryable: false, cause: textCause('no such model') }),
    ];
    expect(after(refused)).toMatchObject({
      kind: 'fail',
      code: 'PROVIDER.ERROR',
      cause: textCause('no such model'),
    });
    expect(after(refused, withFallback)).toMatchObject({ kind: 'begin_call', provider: 'second' });
  });

  it('stays with the fallback for the rest of the turn', () => {
    const answeredByFallback = answered(TURN, 2, [call('c')]);
    const events = [
      begun(TURN, 1),
      aborted(TURN, 1, 'provider_error', { retryable: false }),
      begun(TURN, 2, { tryNumber: 2, provider: 'second', model: 'n' }),
      { ...answeredByFallback, data: { ...answeredByFallback.data, provider: 'second', model: 'n' } },
      toolRequested(TURN, 'c'),
      toolAnswered(TURN, 'c', 'x'),
    ];
    expect(after(events, withFallback)).toMatchObject({ kind: 'begin_call', step: 2, provider: 'second' });
  });

  it('does not use the fallback after a refused budget', () =>
    expect(
      after(
        [
          begun(TURN, 1),
          aborted(TURN, 1, 'budget_refused', {
            dispatched: false,
            retryable: false,
            cause: textCause('token budget exceeded'),
          }),
        ],
        withFallback,
      ),
    ).toMatchObject({
      kind: 'fail',
      code: 'BUDGET.EXCEEDED',
      cause: textCause('token budget exceeded'),
    }));

  it('does not count lost drivers against the provider, up to a limit', () => {
    const lost = (count: number) =>
      Array.from({ length: count }, (_, n) => [
        begun(TURN, n + 1),
        aborted(TURN, n + 1, 'driver_lost'),
      ]).flat();
    expect(after([...lost(2), begun(TURN, 3), unreachable(3)])).toMatchObject({
      kind: 'begin_call',
      failures: 1,
    });
    expect(after(lost(4))).toMatchObject({ kind: 'begin_call', tryNumber: 5, failures: 0 });
    expect(after(lost(5))).toMatchObject({ kind: 'fail', code: 'TURN.DRIVER_LOST' });
  });

  it('does not count drivers that stopped in order', () => {
    const tries = (count: number, released: boolean, first = 1) =>
      Array.from({ length: count }, (_, n) => [
        begun(TURN, first + n),
        aborted(TURN, first + n, 'driver_lost', released ? { released } : {}),
      ]).flat();
    expect(after(tries(9, true))).toMatchObject({ kind: 'begin_call', failures: 0, lostDrivers: 0 });
    const both = [...tries(4, false), ...tries(5, true, 5)];
    expect(after(both)).toMatchObject({ kind: 'begin_call', lostDrivers: 4 });
    expect(after([...both, ...tries(1, false, 10)])).toMatchObject({ kind: 'fail' });
  });
});

describe('an open circuit', () => {
  const withCircuits = (states: Record<string, OpenCircuit['state']>): AgentPolicy => ({
    ...withFallback,
    openCircuits: new Map(
      Object.entries(states).map(([name, state]) => [name, { state, until: '2026-11-22T10:00:00.000Z' }]),
    ),
  });
  const withoutFallback = (state: OpenCircuit['state']): AgentPolicy => ({
    ...withCircuits({ first: state }),
    fallback: null,
  });
  const failed = (attempt: number) => [begun(TURN, attempt), aborted(TURN, attempt, 'provider_error')];

  it('switches to the fallback at once', () => {
    expect(after([], withCircuits({ first: 'open' }))).toMatchObject({
      kind: 'begin_call',
      provider: 'second',
      failures: 0,
    });
    expect(after(failed(1), withCircuits({ first: 'open' }))).toMatchObject({
      kind: 'begin_call',
      provider: 'second',
    });
  });

  it('fails the turn without a fallback, with the time of the next probe', () => {
    expect(after([], withoutFallback('open'))).toMatchObject({
      kind: 'fail',
      code: 'PROVIDER.PAUSED',
      cause: {
        kind: 'provider_paused',
        provider: 'first',
        until: '2026-11-22T10:00:00.000Z',
        lastError: null,
      },
    });
    expect(after(failed(1), withoutFallback('open'))).toMatchObject({
      code: 'PROVIDER.PAUSED',
      cause: { lastError: { kind: 'text' } },
    });
    expect(after([], withCircuits({ first: 'open', second: 'open' }))).toMatchObject({
      code: 'PROVIDER.PAUSED',
    });
  });

  it('keeps the error of a failure that is not retryable', () =>
    expect(
      after(
        [begun(TURN, 1), aborted(TURN, 1, 'provider_error', { retryable: false })],
        withoutFallback('open'),
      ),
    ).toMatchObject({ kind: 'fail', code: 'PROVIDER.ERROR' }));

  it('waits for a probe in flight, unless a fallback is available', () => {
    expect(after([], withoutFallback('probing'))).toMatchObject({ kind: 'begin_call', provider: 'first' });
    expect(after(failed(1), withoutFallback('probing'))).toMatchObject({
      kind: 'begin_call',
      provider: 'first',
    });
    expect(after([], withCircuits({ first: 'probing' }))).toMatchObject({ provider: 'second' });
    expect(after([], withCircuits({ first: 'probing', second: 'open' }))).toMatchObject({
      provider: 'first',
    });
  });

  it('changes nothing for a turn on another provider', () =>
    expect(after([], withCircuits({ second: 'open' }))).toMatchObject({ provider: 'first' }));
});
