import { textCause } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { HANDOVER_LOOP, HAND_OVER } from '../session/hand-over.js';
import { promisesHandOver } from '../session/promised-hand-over.js';
import { NOT_RECORDED } from '../session/past-turns.js';
import { isBlockedBy } from '../session/session-state.js';
import type { OpenTurn, SessionState, TurnStep, TurnToolCall } from '../session/session-state.js';
import { nextTry } from './next-try.js';
import { hasLostAllDrivers } from '../session/retry-policy.js';
import type { AgentPolicy, InFlight, Step } from './step.js';
import { failFor } from './turn-failure.js';

/**
 * Returns the step for calls of a lost process. Calls that lost one process start together. Those
 * that lost more start one at a time, so that each is counted for itself.
 */
const restart = (turnId: string, calls: readonly TurnToolCall[]): Step => {
  const failed = calls.filter(hasLostAllDrivers);
  if (failed.length > 0) return { kind: 'fail_tools', turnId, calls: failed };
  const first = calls.filter(({ lostDrivers = 0 }) => lostDrivers === 0);
  return { kind: 'restart_tools', turnId, calls: first.length > 0 ? first : calls.slice(0, 1) };
};

const pendingTools = (turn: OpenTurn, inFlight: InFlight): Step | null => {
  const { turnId } = turn;
  const pending = turn.steps.flatMap((step) => step.calls).filter((call) => call.status === 'requested');
  const isOurs = ({ callId, deferred }: TurnToolCall): boolean => !deferred && inFlight.calls.has(callId);
  const isLost = (call: TurnToolCall): boolean => {
    if (isOurs(call)) return false;
    // The log does not record the dispatch of an idempotent call. To repeat one is harmless; a
    // cancelled turn records its outcome as unknown instead.
    if (turn.cancelRequested) return call.claimed || call.idempotent;
    return call.claimed && !call.deferred;
  };
  const lost = pending.filter(isLost);
  if (lost.length > 0) return { kind: 'abandon_tools', turnId, calls: lost };
  const calls = pending.filter(({ deferred }) => !deferred || turn.cancelRequested);
  if (turn.cancelRequested && calls.length > 0) return { kind: 'run_tools', turnId, calls };
  const own = calls.filter(isOurs);
  if (own.length > 0) return { kind: 'run_tools', turnId, calls: own };
  if (calls.length > 0) return restart(turnId, calls);
  return pending.length > 0 ? { kind: 'await_tools', turnId, calls: pending } : null;
};

/**
 * Returns the step kind for requested calls, which start together, after all approvals they need.
 */
const kindFor = (
  calls: readonly TurnToolCall[],
  { guarded }: AgentPolicy,
): 'request_approvals' | 'await_approvals' | 'request_tools' => {
  if (calls.some(({ name, input, approval }) => approval === null && guarded.has(name, input)))
    return 'request_approvals';
  return calls.some(({ approval }) => approval?.status === 'pending') ? 'await_approvals' : 'request_tools';
};

/** Returns the cause of a failed call; its content without one. */
const causeOf = ({ cause, content }: TurnToolCall): Cause => cause ?? textCause(content);

/**
 * Returns the end of a turn that was handed over: the answer of the other agent, or the failure of
 * a chain that repeats. Null for any other turn.
 */
const endOfHandOver = (turnId: string, calls: readonly TurnToolCall[]): Step | null => {
  const loop = calls.find(({ code }) => code === HANDOVER_LOOP);
  if (loop) return { kind: 'fail', turnId, code: HANDOVER_LOOP, cause: causeOf(loop) };
  const call = calls.find(
    ({ name, status, isError }) => name === HAND_OVER && status === 'completed' && !isError,
  );
  return call ? { kind: 'forward', turnId, call } : null;
};

const isReturned = ({ returned, steps }: OpenTurn): boolean => returned?.afterSteps === steps.length;

/** Returns the step after an answer; null for one that was returned to the agent. */
const afterAnswer = (turn: OpenTurn, last: TurnStep, policy: AgentPolicy): Step | null => {
  const { turnId } = turn;
  if (isReturned(turn)) return null;
  const mayReturn = policy.canHandOver === true && !turn.returned && turn.steps.length < policy.maxIterations;
  // A forwarded answer has no model.
  const isOwn = last.model !== '';
  return mayReturn && isOwn && promisesHandOver(last.text)
    ? { kind: 'return_answer', turnId, cause: { kind: 'hand_over_not_made' } }
    : { kind: 'complete', turnId, ...(last.cutBy ? { cutBy: last.cutBy } : {}) };
};

/**
 * Returns the step before approvals are requested, if another process got the answer. A call whose
 * preparation ends its process is counted as well. Null without a loss.
 */
const afterLostPreparation = (
  turnId: string,
  calls: readonly TurnToolCall[],
  inFlight: InFlight,
): Step | null => {
  const left = calls.filter(({ callId, approval }) => approval === null && !inFlight.calls.has(callId));
  return left.length > 0 ? restart(turnId, left) : null;
};

const afterStep = (turn: OpenTurn, policy: AgentPolicy, inFlight: InFlight): Step | null => {
  const { turnId } = turn;
  const last = turn.steps.at(-1);
  if (!last) return null;
  if (last.calls.length === 0) return afterAnswer(turn, last, policy);
  const unrecorded = last.calls.find(({ code }) => code === NOT_RECORDED);
  // A what-if cannot continue from an outcome that the origin does not have.
  if (unrecorded) return { kind: 'fail', turnId, code: NOT_RECORDED, cause: causeOf(unrecorded) };
  const ended = endOfHandOver(turn.turnId, last.calls);
  if (ended) return ended;
  const calls = last.calls.filter((call) => call.status === 'asked');
  if (turn.steps.length < policy.maxIterations) {
    if (calls.length === 0) return null;
    const kind = kindFor(calls, policy);
    const lost = kind === 'request_approvals' ? afterLostPreparation(turnId, calls, inFlight) : null;
    return lost ?? { kind, turnId, calls };
  }
  return failFor(turnId, { kind: 'max_iterations', limit: policy.maxIterations });
};

/** Returns the step of a turn whose agent ended or is not known here; null for any other. */
const whenHalted = (turn: OpenTurn, { halt }: AgentPolicy): Step | null => {
  const { turnId } = turn;
  if (halt === 'unknown') return { kind: 'await_resume', turnId };
  const isAnswered = turn.steps.at(-1)?.calls.length === 0 && !isReturned(turn);
  if (halt !== 'terminated' || isAnswered) return null;
  return failFor(turnId, { kind: 'agent_ended' });
};

/** Starts the next model call, which is a step boundary: the turns of a held agent wait here. */
const startNext = (turn: OpenTurn, queue: readonly OpenTurn[], policy: AgentPolicy): Step => {
  const { halt, blocked, trialTurnId } = policy;
  const { turnId } = turn;
  if (halt !== 'paused' || trialTurnId === turnId) return nextTry(turn, policy);
  const unaware = blocked ? [turn, ...queue].filter((waiting) => !isBlockedBy(waiting, blocked)) : [];
  return blocked && unaware.length > 0
    ? { kind: 'block', turnId, turnIds: unaware.map((waiting) => waiting.turnId), ...blocked }
    : { kind: 'await_resume', turnId };
};

/**
 * Returns the next action of a session's driver. A pure function of the folded state: a driver
 * after a crash decides the same from the same log. The `policy` is null if the session's agent is
 * no longer configured.
 */
export const nextStep = (state: SessionState, policy: AgentPolicy | null, inFlight: InFlight): Step => {
  const turn = state.open;
  if (!turn) return { kind: 'idle' };
  const { turnId, call } = turn;
  if (call) return { kind: call.attempt === inFlight.attempt ? 'run_call' : 'abandon_call', call };
  const tools = pendingTools(turn, inFlight);
  if (tools) return tools;
  if (turn.cancelRequested) return { kind: 'cancel', turnId };
  if (!policy) return failFor(turnId, { kind: 'agent_unknown', agentId: state.started?.agentId ?? '' });
  return (
    whenHalted(turn, policy) ?? afterStep(turn, policy, inFlight) ?? startNext(turn, state.queue, policy)
  );
};
