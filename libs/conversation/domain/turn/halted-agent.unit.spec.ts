import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { fold } from '@antiphon/kernel';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain/circuit-breaker';
import { sessionDecider } from '../session/session.decider.js';
import {
  TURN,
  answered,
  begun,
  cancelRequested,
  requested,
  started,
  toolAnswered,
  toolRequested,
} from '../session/session.examples.js';
import { nextStep } from './next-step.js';
import type { AgentHalt } from './step.js';

const { evolve, initialState } = sessionDecider({ turns: 5, chars: 10_000 });
const call = { callId: 'c-1', providerCallId: 'c-1', name: 'echo', input: { a: 1 } };
const stepOf = (halt: AgentHalt, events: SessionEvent[], attempt: number | null = null) =>
  nextStep(
    fold(evolve, initialState(), [started(), requested(TURN), ...events]),
    {
      ...{ provider: 'first', model: 'm', fallback: null, maxIterations: 3 },
      openCircuits: NO_OPEN_CIRCUITS,
      guarded: new Set(),
      halt,
    },
    { attempt, calls: new Set() },
  );

describe('a turn of a paused agent', () => {
  it('waits before its first model call', () =>
    expect(stepOf('paused', [])).toEqual({ kind: 'await_resume', turnId: TURN }));

  it('finishes its step with the tools and waits before the next model call', () => {
    expect(stepOf('paused', [begun(TURN, 1)], 1)).toMatchObject({ kind: 'run_call' });
    const asked = [begun(TURN, 1), answered(TURN, 1, [call])];
    expect(stepOf('paused', asked)).toMatchObject({ kind: 'request_tools' });
    const done = [...asked, toolRequested(TURN, 'c-1'), toolAnswered(TURN, 'c-1', 'a')];
    expect(stepOf('paused', done)).toEqual({ kind: 'await_resume', turnId: TURN });
  });

  it('completes with its last answer', () =>
    expect(stepOf('paused', [begun(TURN, 1), answered(TURN, 1)])).toMatchObject({ kind: 'complete' }));

  it('ends at once when it is cancelled', () =>
    expect(stepOf('paused', [cancelRequested(TURN)])).toMatchObject({ kind: 'cancel' }));
});

describe('a turn of a terminated agent', () => {
  it('fails with AGENT.TERMINATED before another call', () => {
    expect(stepOf('terminated', [])).toMatchObject({ kind: 'fail', code: 'AGENT.TERMINATED' });
    const asked = [begun(TURN, 1), answered(TURN, 1, [call])];
    expect(stepOf('terminated', asked)).toMatchObject({ kind: 'fail', code: 'AGENT.TERMINATED' });
  });

  it('completes with an answer that was finished before', () =>
    expect(stepOf('terminated', [begun(TURN, 1), answered(TURN, 1)])).toMatchObject({ kind: 'complete' }));
});

describe('a turn of an agent whose facts are not read yet', () => {
  it('waits for them', () =>
    expect(stepOf('unknown', [begun(TURN, 1), answered(TURN, 1, [call])])).toMatchObject({
      kind: 'await_resume',
    }));
});
