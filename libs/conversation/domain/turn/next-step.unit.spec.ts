import { textCause } from '@antiphon/contracts/causes';
import { describe, expect, it } from '@jest/globals';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { fold } from '@antiphon/kernel';
import { sessionDecider } from '../session/session.decider.js';
import {
  TURN,
  answered,
  begun,
  cancelRequested,
  requested,
  started,
  toolAnswered,
  toolClaimed,
  toolRequested,
  toolReleased,
  toolRestarted,
} from '../session/session.examples.js';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain/circuit-breaker';
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
const after = (
  events: SessionEvent[],
  agent: AgentPolicy | null = policy,
  inFlight: InFlight = NOTHING_IN_FLIGHT,
) => nextStep(fold(evolve, initialState(), [started(), requested(TURN), ...events]), agent, inFlight);

const call = (callId: string) => ({ callId, providerCallId: callId, name: 'echo', input: { a: 1 } });
const unusableEnd = (callId: string): SessionEvent => ({
  type: 'ToolCallFailed',
  schemaVersion: 2,
  data: { turnId: TURN, callId, code: 'TOOL.UNUSABLE_CALL', cause: textCause('not JSON') },
});

describe('nextStep', () => {
  it('is idle without a turn', () =>
    expect(nextStep(fold(evolve, initialState(), [started()]), policy, NOTHING_IN_FLIGHT)).toEqual({
      kind: 'idle',
    }));

  it('starts with the first model call', () =>
    expect(after([])).toMatchObject({
      kind: 'begin_call',
      step: 1,
      tryNumber: 1,
      provider: 'first',
      failures: 0,
    }));

  it('runs its own call, and abandons one whose driver is gone', () => {
    expect(after([begun(TURN, 1)], policy, { attempt: 1, calls: new Set() })).toMatchObject({
      kind: 'run_call',
    });
    expect(after([begun(TURN, 1)])).toMatchObject({ kind: 'abandon_call', call: { attempt: 1 } });
  });

  it('completes after an answer without tool calls', () =>
    expect(after([begun(TURN, 1), answered(TURN, 1)])).toEqual({ kind: 'complete', turnId: TURN }));

  it('requests tools, runs them, and calls the model again', () => {
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

  it('says why an answer ends early', () => {
    const { data, ...rest } = answered(TURN, 1);
    const cut = { ...rest, data: { ...data, finishReason: 'length' as const } };
    expect(after([begun(TURN, 1), cut])).toEqual({ kind: 'complete', turnId: TURN, cutBy: 'length' });
  });

  it('counts the steps whose tool calls cannot be made', () => {
    const steps = (count: number) =>
      Array.from({ length: count }, (_, n) => {
        const unusable = { ...call(`c${n}`), problem: 'not_json' as const };
        return [begun(TURN, n + 1), answered(TURN, n + 1, [unusable]), unusableEnd(`c${n}`)];
      }).flat();
    expect(after(steps(2))).toMatchObject({ kind: 'begin_call', step: 3 });
    expect(after(steps(3))).toMatchObject({ kind: 'fail', code: 'TURN.MAX_ITERATIONS' });
  });

  it('repeats a lost tool call only if its tool is idempotent', () => {
    const lost = (idempotent: boolean) => [
      begun(TURN, 1),
      answered(TURN, 1, [call('c')]),
      toolRequested(TURN, 'c', { idempotent }),
    ];
    expect(after(lost(true))).toMatchObject({ kind: 'restart_tools', calls: [{ callId: 'c' }] });
    expect(after([...lost(false), toolClaimed(TURN, 'c')])).toMatchObject({
      kind: 'abandon_tools',
      calls: [{ callId: 'c' }],
    });
  });

  it('runs an unclaimed tool call, which has reached no tool', () => {
    const before = [begun(TURN, 1), answered(TURN, 1, [call('c')]), toolRequested(TURN, 'c')];
    expect(after(before)).toMatchObject({ kind: 'restart_tools', calls: [{ callId: 'c', claimed: false }] });
    expect(after([...before, toolClaimed(TURN, 'c')], policy, { attempt: 1, calls: new Set(['c']) })).toEqual(
      expect.objectContaining({ kind: 'run_tools' }),
    );
  });

  describe('with calls of lost processes', () => {
    const requests = (...ids: string[]) => [
      begun(TURN, 1),
      answered(TURN, 1, ids.map(call)),
      ...ids.map((id) => toolRequested(TURN, id, { idempotent: true })),
    ];
    const own = (...ids: string[]): InFlight => ({ attempt: null, calls: new Set(ids) });

    it('starts all of them together once, and then one at a time', () => {
      const lostOnce = requests('a', 'b');
      expect(after(lostOnce)).toMatchObject({
        kind: 'restart_tools',
        calls: [{ callId: 'a' }, { callId: 'b' }],
      });
      const lostTwice = [...lostOnce, toolRestarted(TURN, 'a', 1), toolRestarted(TURN, 'b', 1)];
      expect(after(lostTwice)).toMatchObject({ kind: 'restart_tools', calls: [{ callId: 'a' }] });
      const restarted = [...lostTwice, toolRestarted(TURN, 'a', 2)];
      expect(after(restarted, policy, own('a'))).toMatchObject({
        kind: 'run_tools',
        calls: [{ callId: 'a' }],
      });
      const ended = [...restarted, toolAnswered(TURN, 'a', 'x')];
      expect(after(ended, policy, own('a'))).toMatchObject({
        kind: 'restart_tools',
        calls: [{ callId: 'b' }],
      });
    });

    it('fails the one that lost three, and no other', () => {
      const events = [
        ...requests('a', 'b'),
        ...[toolRestarted(TURN, 'a', 1), toolRestarted(TURN, 'b', 1), toolRestarted(TURN, 'a', 2)],
      ];
      expect(after(events)).toMatchObject({ kind: 'fail_tools', calls: [{ callId: 'a' }] });
    });

    it('does not count a process that released the call', () => {
      const stop = (lost: number) => [toolReleased(TURN, 'a'), toolRestarted(TURN, 'a', lost)];
      const stopped = [...requests('a'), ...stop(0), ...stop(0), ...stop(0), toolReleased(TURN, 'a')];
      expect(after(stopped)).toMatchObject({ kind: 'restart_tools', calls: [{ callId: 'a' }] });
      const lost = [...requests('a'), toolRestarted(TURN, 'a', 1), toolRestarted(TURN, 'a', 2)];
      expect(after([...lost, toolReleased(TURN, 'a')])).toMatchObject({ kind: 'restart_tools' });
      expect(after([...lost, ...stop(2)])).toMatchObject({ kind: 'fail_tools' });
    });

    it('does not count a process that released a call before its request', () => {
      const guarded: AgentPolicy = { ...policy, guarded: new Set(['echo']) };
      const asked = [begun(TURN, 1), answered(TURN, 1, [call('a')]), toolRestarted(TURN, 'a', 2)];
      expect(after([...asked, toolReleased(TURN, 'a')], guarded)).toMatchObject({ kind: 'restart_tools' });
      const taken = [...asked, toolReleased(TURN, 'a'), toolRequested(TURN, 'a', { idempotent: true })];
      expect(after(taken)).toMatchObject({ kind: 'fail_tools' });
    });

    it('counts calls that ask for an approval, and not those of the process that got the answer', () => {
      const guarded: AgentPolicy = { ...policy, guarded: new Set(['echo']) };
      const asked = [begun(TURN, 1), answered(TURN, 1, [call('a')])];
      expect(after(asked, guarded, own('a'))).toMatchObject({ kind: 'request_approvals' });
      expect(after(asked, guarded)).toMatchObject({ kind: 'restart_tools' });
      const lost = [...asked, toolRestarted(TURN, 'a', 1), toolRestarted(TURN, 'a', 2)];
      expect(after(lost, guarded)).toMatchObject({ kind: 'fail_tools' });
    });

    it('are cancelled with their turn', () =>
      expect(after([...requests('a'), toolRestarted(TURN, 'a', 2), cancelRequested(TURN)])).toMatchObject({
        kind: 'abandon_tools',
      }));
  });

  it('treats a request without a claims field as claimed', () => {
    const old = toolRequested(TURN, 'c');
    delete old.data.claims;
    expect(after([begun(TURN, 1), answered(TURN, 1, [call('c')]), old])).toMatchObject({
      kind: 'abandon_tools',
    });
  });

  it('fails a turn at the limit of model calls', () => {
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

describe('a cancel', () => {
  it('ends a turn without an open call', () =>
    expect(after([cancelRequested(TURN)])).toEqual({ kind: 'cancel', turnId: TURN }));

  it('waits for the outcome of an open call', () => {
    const events = [begun(TURN, 1), cancelRequested(TURN)];
    expect(after(events, policy, { attempt: 1, calls: new Set() })).toMatchObject({ kind: 'run_call' });
    expect(after(events)).toMatchObject({ kind: 'abandon_call' });
  });

  it('does not repeat a lost tool call, idempotent or not', () =>
    expect(
      after([
        begun(TURN, 1),
        answered(TURN, 1, [call('c')]),
        toolRequested(TURN, 'c', { idempotent: true }),
        cancelRequested(TURN),
      ]),
    ).toMatchObject({ kind: 'abandon_tools' }));

  it('starts no requested tool', () =>
    expect(after([begun(TURN, 1), answered(TURN, 1, [call('c')]), cancelRequested(TURN)])).toMatchObject({
      kind: 'cancel',
    }));
});
