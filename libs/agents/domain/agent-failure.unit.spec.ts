import { describe, expect, it } from '@jest/globals';
import type { AgentEvent } from '@antiphon/contracts/agent';
import { specFor } from '@antiphon/testing';
import { agentDecider, failuresWith, holdMs } from './agent.decider.js';
import type { AgentCommand } from './agent-commands.js';

const given = specFor(agentDecider);

const T0 = '2026-11-27T12:00:00.000Z';
const RETRY_AT = '2026-11-27T12:00:05.000Z';
const LATER = '2026-11-27T12:00:15.000Z';
const SESSION = '00000000-0000-7000-8000-000000000001';
const [FIRST, SECOND, THIRD] = [1, 2, 3].map((n) => `00000000-0000-7000-8000-00000000010${n}`) as [
  string,
  string,
  string,
];
const CODE = 'TURN.DRIVER_LOST';
const change = { agentId: 'ann', actor: 'runtime', reason: null, at: T0 };
const common = { agentId: 'ann', actor: 'runtime', reason: null, now: T0 };

const ready: AgentEvent[] = [
  {
    type: 'AgentSpawned',
    schemaVersion: 1,
    data: {
      ...change,
      ...{ origin: 'request', parentId: null, rootId: 'ann', depth: 0 },
      definition: {
        ...{ name: 'Ann', role: null, provider: 'p', model: 'm', systemPrompt: null, capabilities: [] },
        ...{ tools: [], project: null, position: null, maxIterations: 4, fallback: null, identity: null },
        ...{ base: 'main', budget: null },
      },
    },
  },
  { type: 'AgentReady', schemaVersion: 1, data: change },
];
const failed = (turnId: string, failures: number, retryAt = RETRY_AT): AgentEvent => ({
  type: 'AgentFailed',
  schemaVersion: 1,
  data: { ...change, code: CODE, sessionId: SESSION, turnId, retryAt, failures },
});
const trial = (turnId: string): AgentEvent => ({
  type: 'AgentTrialStarted',
  schemaVersion: 1,
  data: { ...change, sessionId: SESSION, turnId },
});
const resumed: AgentEvent = { type: 'AgentResumed', schemaVersion: 1, data: change };
const paused: AgentEvent = { type: 'AgentPaused', schemaVersion: 1, data: change };
const fail = (turnId: string, retryAt = RETRY_AT): AgentCommand => ({
  ...common,
  type: 'Fail',
  data: { code: CODE, sessionId: SESSION, turnId, retryAt },
});
const tryTurn = (turnId: string, now: string): AgentCommand => ({
  ...{ ...common, now },
  type: 'StartTrial',
  data: { sessionId: SESSION, turnId },
});
const at = (event: AgentEvent, time: string): AgentEvent =>
  ({ ...event, data: { ...event.data, at: time } }) as AgentEvent;

describe('an agent whose turn lost too many processes', () => {
  it('fails with the turn, the number of failures and the time of the next try', () =>
    given(ready)
      .when(fail(FIRST))
      .then([failed(FIRST, 1)]));

  it('stays as it is when another turn of it fails', () =>
    given([...ready, failed(FIRST, 1)])
      .when(fail(SECOND))
      .then([]));

  it('stays paused when it is paused: the end of an error would start it', () =>
    given([...ready, paused])
      .when(fail(FIRST))
      .then([]));

  it('tries no turn before its time', () =>
    given([...ready, failed(FIRST, 1)])
      .when(tryTurn(SECOND, T0))
      .then([]));

  it('tries one waiting turn from then on', () =>
    given([...ready, failed(FIRST, 1)])
      .when(tryTurn(SECOND, LATER))
      .then([at(trial(SECOND), LATER)]));

  it('tries no second turn next to it', () =>
    given([...ready, failed(FIRST, 1), trial(SECOND)])
      .when(tryTurn(THIRD, LATER))
      .then([]));

  it('fails for longer when the trial fails', () =>
    given([...ready, failed(FIRST, 1), trial(SECOND)])
      .when(fail(SECOND, LATER))
      .then([failed(SECOND, 2, LATER)]));

  it('keeps its trial when another turn fails next to it', () =>
    given([...ready, failed(FIRST, 1), trial(SECOND)])
      .when(fail(THIRD))
      .then([]));

  it('is as before the error after a resume', () =>
    given([...ready, failed(FIRST, 1), trial(SECOND), failed(SECOND, 2), resumed])
      .when(fail(THIRD))
      .then([failed(THIRD, 1)]));

  it('can be resumed by a person at any time', () =>
    given([...ready, failed(FIRST, 1)])
      .when({ ...common, type: 'Resume', data: {} })
      .then([resumed]));

  it('shows no trial after its end', () => {
    const agent = [...ready, failed(FIRST, 1), trial(SECOND), resumed].reduce(
      agentDecider.evolve,
      agentDecider.initialState(),
    );
    expect(agent).toMatchObject({ status: 'ready' });
    expect('failure' in agent).toBe(false);
    expect(failuresWith(agent, SECOND)).toBe(1);
  });
});

it('is held for 5 s first, for twice as long after each failure, and for ten minutes at most', () => {
  expect([1, 2, 3, 4, 7, 8, 60].map(holdMs)).toEqual([
    5_000, 10_000, 20_000, 40_000, 320_000, 600_000, 600_000,
  ]);
});
