import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { fold } from '@antiphon/kernel';
import { sessionDecider } from '../session/session.decider.js';
import {
  TURN,
  aborted,
  answered,
  begun,
  cancelAsked,
  requested,
  started,
  toolAnswered,
  toolClaimed,
  toolRequested,
} from '../session/session.examples.js';
import { NO_OPEN_CIRCUITS } from '../circuit-breaker.js';
import type { OpenCircuit } from '../circuit-breaker.js';
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
  hands: InFlight = NOTHING_IN_FLIGHT,
) => nextStep(fold(evolve, initialState(), [started(), requested(TURN), ...events]), agent, hands);

const call = (callId: string) => ({ callId, providerCallId: callId, name: 'echo', input: { a: 1 } });
const unreachable = (attempt: number) =>
  aborted(TURN, attempt, 'provider_unreachable', { dispatched: false });

describe('nextStep', () => {
  it('has nothing to do without a turn', () =>
    expect(nextStep(fold(evolve, initialState(), [started()]), policy, NOTHING_IN_FLIGHT)).toEqual({
      kind: 'idle',
    }));

  it('begins with the first model call', () =>
    expect(after([])).toMatchObject({
      kind: 'begin_call',
      step: 1,
      tryNumber: 1,
      provider: 'first',
      failures: 0,
    }));

  it('carries out its own call, and gives up one whose driver is gone', () => {
    expect(after([begun(TURN, 1)], policy, { attempt: 1, calls: new Set() })).toMatchObject({
      kind: 'run_call',
    });
    expect(after([begun(TURN, 1)])).toMatchObject({ kind: 'abandon_call', call: { attempt: 1 } });
  });

  it('comes to the end with an answer that asks for no tool', () =>
    expect(after([begun(TURN, 1), answered(TURN, 1)])).toEqual({ kind: 'complete', turnId: TURN }));

  it('requests tools, runs them, and asks the model again', () => {
    const asked = [begun(TURN, 1), answered(TURN, 1, [call('c')])];
    expect(after(asked)).toMatchObject({ kind: 'request_tools', calls: [{ callId: 'c' }] });
    const own: InFlight = { attempt: null, calls: new Set(['c']) };
    expect(after([...asked, toolRequested(TURN, 'c')], policy, own)).toMatchObject({ kind: 'run_tools' });
    expect(after([...asked, toolRequested(TURN, 'c'), toolAnswered(TURN, 'c', 'x')])).toMatchObject({
      kind: 'begin_call',
      step: 2,
      tryNumber: 1,
    });
  });

  it('makes a lost tool call again only if that is safe', () => {
    const lost = (idempotent: boolean) => [
      begun(TURN, 1),
      answered(TURN, 1, [call('c')]),
      toolRequested(TURN, 'c', { idempotent }),
    ];
    expect(after(lost(true))).toMatchObject({ kind: 'run_tools', calls: [{ callId: 'c' }] });
    expect(after([...lost(false), toolClaimed(TURN, 'c')])).toMatchObject({
      kind: 'abandon_tools',
      calls: [{ callId: 'c' }],
    });
  });

  it('makes a tool call that nobody has claimed: it has reached no tool', () => {
    const before = [begun(TURN, 1), answered(TURN, 1, [call('c')]), toolRequested(TURN, 'c')];
    expect(after(before)).toMatchObject({ kind: 'run_tools', calls: [{ callId: 'c', claimed: false }] });
    expect(after([...before, toolClaimed(TURN, 'c')], policy, { attempt: 1, calls: new Set(['c']) })).toEqual(
      expect.objectContaining({ kind: 'run_tools' }),
    );
  });

  it('takes the request for the claim where it was written before there were claims', () => {
    const old = toolRequested(TURN, 'c');
    delete old.data.claims;
    expect(after([begun(TURN, 1), answered(TURN, 1, [call('c')]), old])).toMatchObject({
      kind: 'abandon_tools',
    });
  });

  it('stops at the most model calls of a turn', () => {
    const steps = [1, 2, 3].flatMap((attempt): SessionEvent[] => [
      begun(TURN, attempt, { step: attempt }),
      answered(TURN, attempt, [call(`c${attempt}`)]),
      ...(attempt < 3 ? [toolRequested(TURN, `c${attempt}`), toolAnswered(TURN, `c${attempt}`, 'x')] : []),
    ]);
    expect(after(steps)).toMatchObject({ kind: 'fail', code: 'TURN.MAX_ITERATIONS' });
  });

  it('fails a turn whose agent is no longer configured', () =>
    expect(after([], null)).toMatchObject({ kind: 'fail', code: 'AGENT.NOT_FOUND' }));
});

describe('tries', () => {
  it('three times at one provider, each after a longer wait, then the turn fails with its words', () => {
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
      message: 'provider unreachable',
    });
  });

  it('then at the fallback, at once, three times', () => {
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

  it('never again at a provider that refused the request itself', () => {
    const refused = [
      begun(TURN, 1),
      aborted(TURN, 1, 'provider_error', { retryable: false, message: 'no such model' }),
    ];
    expect(after(refused)).toMatchObject({ kind: 'fail', code: 'PROVIDER.ERROR', message: 'no such model' });
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

  it('does not look for another provider when the budget says no', () =>
    expect(
      after(
        [
          begun(TURN, 1),
          aborted(TURN, 1, 'budget_refused', {
            dispatched: false,
            retryable: false,
            message: 'token budget exceeded (session: 9500/10000)',
          }),
        ],
        withFallback,
      ),
    ).toMatchObject({
      kind: 'fail',
      code: 'BUDGET.EXCEEDED',
      message: 'token budget exceeded (session: 9500/10000)',
    }));

  it('does not hold a lost driver against the provider, up to a cap', () => {
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
});

describe('cancel', () => {
  it('ends a turn that nothing is open in', () =>
    expect(after([cancelAsked(TURN)])).toEqual({ kind: 'cancel', turnId: TURN }));

  it('waits for the outcome of what is open', () => {
    const events = [begun(TURN, 1), cancelAsked(TURN)];
    expect(after(events, policy, { attempt: 1, calls: new Set() })).toMatchObject({ kind: 'run_call' });
    expect(after(events)).toMatchObject({ kind: 'abandon_call' });
  });

  it('does not make a lost tool call again, safe or not', () =>
    expect(
      after([
        begun(TURN, 1),
        answered(TURN, 1, [call('c')]),
        toolRequested(TURN, 'c', { idempotent: true }),
        cancelAsked(TURN),
      ]),
    ).toMatchObject({ kind: 'abandon_tools' }));

  it('starts no tool that was asked for', () =>
    expect(after([begun(TURN, 1), answered(TURN, 1, [call('c')]), cancelAsked(TURN)])).toMatchObject({
      kind: 'cancel',
    }));
});

describe('a provider that is paused', () => {
  const paused = (states: Record<string, OpenCircuit['state']>): AgentPolicy => ({
    ...withFallback,
    openCircuits: new Map(
      Object.entries(states).map(([name, state]) => [name, { state, until: '2026-11-22T10:00:00.000Z' }]),
    ),
  });
  const alone = (state: OpenCircuit['state']): AgentPolicy => ({
    ...paused({ first: state }),
    fallback: null,
  });
  const failed = (attempt: number) => [begun(TURN, attempt), aborted(TURN, attempt, 'provider_error')];

  it('gives way to the fallback at once', () => {
    expect(after([], paused({ first: 'open' }))).toMatchObject({
      kind: 'begin_call',
      provider: 'second',
      failures: 0,
    });
    expect(after(failed(1), paused({ first: 'open' }))).toMatchObject({
      kind: 'begin_call',
      provider: 'second',
    });
  });

  it('fails the turn where there is no other, and says until when', () => {
    expect(after([], alone('open'))).toMatchObject({
      kind: 'fail',
      code: 'PROVIDER.PAUSED',
      message: 'provider first is paused until 2026-11-22T10:00:00.000Z after failures in a row',
    });
    expect(after(failed(1), alone('open'))).toMatchObject({
      code: 'PROVIDER.PAUSED',
      message: expect.stringContaining('; it last failed with: '),
    });
    expect(after([], paused({ first: 'open', second: 'open' }))).toMatchObject({ code: 'PROVIDER.PAUSED' });
  });

  it('keeps the reason of what no repeat would have mended', () =>
    expect(
      after([begun(TURN, 1), aborted(TURN, 1, 'provider_error', { retryable: false })], alone('open')),
    ).toMatchObject({ kind: 'fail', code: 'PROVIDER.ERROR' }));

  it('is waited for while a trial call is on its way, unless there is another to ask', () => {
    expect(after([], alone('probing'))).toMatchObject({ kind: 'begin_call', provider: 'first' });
    expect(after(failed(1), alone('probing'))).toMatchObject({ kind: 'begin_call', provider: 'first' });
    expect(after([], paused({ first: 'probing' }))).toMatchObject({ provider: 'second' });
    expect(after([], paused({ first: 'probing', second: 'open' }))).toMatchObject({ provider: 'first' });
  });

  it('changes nothing for a turn on another provider', () =>
    expect(after([], paused({ second: 'open' }))).toMatchObject({ provider: 'first' }));
});
