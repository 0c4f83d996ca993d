import { describe, expect, it } from '@jest/globals';
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { fold } from '@antiphon/kernel';
import { specFor } from '@antiphon/testing';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain/circuit-breaker';
import { sessionDecider } from '../session/session.decider.js';
import { NOW, TURN, begun, requested, started } from '../session/session.examples.js';
import type { BlockedBy } from '../session/session-state.js';
import { followUps } from './follow-up.js';
import { nextStep } from './next-step.js';
import type { AgentPolicy } from './step.js';

const decider = sessionDecider({ turns: 5, chars: 10_000 });
const given = specFor(decider);
const NEXT = 't-2';
const PAUSED: BlockedBy = {
  ...{ code: 'AGENT.PAUSED', cause: { kind: 'agent_held', agentId: 'main', reason: null }, until: null },
};
const inError = (until: string): BlockedBy => ({
  code: 'AGENT.ERROR',
  cause: { kind: 'agent_in_error', agentId: 'main', code: 'TURN.DRIVER_LOST', failures: 1, until },
  until,
});
const blocked = (turnId: string, by: BlockedBy): SessionEventOf<'TurnBlocked'> => ({
  type: 'TurnBlocked',
  schemaVersion: 1,
  data: { turnId, ...by, blockedAt: NOW },
});
const policyOf = (blockedBy: BlockedBy, trialTurnId?: string): AgentPolicy => ({
  ...{ provider: 'first', model: 'm', fallback: null, maxIterations: 3 },
  openCircuits: NO_OPEN_CIRCUITS,
  guarded: new Set(),
  halt: 'paused',
  blocked: blockedBy,
  ...(trialTurnId ? { trialTurnId } : {}),
});
const stepOf = (policy: AgentPolicy, ...events: SessionEvent[]) =>
  nextStep(fold(decider.evolve, decider.initialState(), [started(), requested(TURN), ...events]), policy, {
    attempt: null,
    calls: new Set(),
  });

describe('a turn of an agent that is held', () => {
  it('records once why it waits, and waits', () => {
    expect(stepOf(policyOf(PAUSED))).toEqual({ kind: 'block', turnId: TURN, turnIds: [TURN], ...PAUSED });
    expect(stepOf(policyOf(PAUSED), blocked(TURN, PAUSED))).toEqual({ kind: 'await_resume', turnId: TURN });
  });

  it('records a later time of the next try', () => {
    const later = policyOf(inError('2026-11-27T12:10:00.000Z'));
    expect(stepOf(later, blocked(TURN, inError(NOW)))).toMatchObject({ kind: 'block' });
  });

  it('records the wait of each turn behind it', () =>
    expect(stepOf(policyOf(PAUSED), requested(NEXT))).toMatchObject({ turnIds: [TURN, NEXT] }));

  it('is tried alone, once it is chosen', () => {
    expect(stepOf(policyOf(inError(NOW), TURN), blocked(TURN, inError(NOW)))).toMatchObject({
      kind: 'begin_call',
      turnId: TURN,
    });
    expect(stepOf(policyOf(inError(NOW), NEXT), blocked(TURN, inError(NOW)))).toMatchObject({
      kind: 'await_resume',
    });
  });

  it('records the wait in the commit of its request', () => {
    const state = fold(decider.evolve, decider.initialState(), [started(), requested(TURN)]);
    const context = { decider, policy: policyOf(PAUSED), now: NOW, begins: 'any' as const };
    const unused = { reservationId: () => '', toolRequest: () => ({}) as never };
    expect(followUps(state, { ...context, ...unused })).toEqual([blocked(TURN, PAUSED)]);
  });
});

describe('a request behind a turn that waits', () => {
  it('waits for the same reason', () =>
    given([started(), requested(TURN), blocked(TURN, PAUSED)])
      .when({ type: 'RequestTurn', data: { turnId: NEXT, content: 'hello' }, now: NOW })
      .then([requested(NEXT), blocked(NEXT, PAUSED)]));

  it('has no reason once that turn runs', () =>
    given([started(), requested(TURN), blocked(TURN, PAUSED), begun(TURN, 1)])
      .when({ type: 'RequestTurn', data: { turnId: NEXT, content: 'hello' }, now: NOW })
      .then([requested(NEXT)]));
});
