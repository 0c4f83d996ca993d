import { backoffMs, beginCommand } from '@antiphon/agent-domain';
import type { BeginCall, SessionCommand, Step } from '@antiphon/agent-domain';
import { isAppError, isoTime } from '@antiphon/kernel';
import { askApprovals, requestApproved } from './approvals-in-turn.js';
import type { AskDeps } from './approvals-in-turn.js';
import { callModel } from './model-call.js';
import type { CallResult, ModelCallDeps } from './model-call.js';
import { cancelSent, unknownOutcome } from './tool-call.js';
import type { ToolCallDeps } from './tool-call.js';
import { followUpContext } from './turn-policy.js';
import type { PolicyDeps } from './turn-policy.js';
import { toFailure } from './model-outcome.js';
import { runTools } from './run-tools.js';
import type { RecordedToolsDeps } from './recorded-tools.js';
import type { ToolEnd, ToolRecords } from './run-tools.js';
import type { SessionActor } from '../sessions/session-actor.js';
import { waitFor } from './stop.js';
import type { ToolRetries, ToolRetryRef } from './tool-retries.js';
import type { StepContext } from './step-context.js';

/** Dependencies of the steps of a turn: each step's own, and how calls are retried. */
export interface StepDeps extends ModelCallDeps, ToolCallDeps, AskDeps, RecordedToolsDeps, PolicyDeps {
  readonly retries: ToolRetries;
}

const LOST = 'the process that drove this turn was lost';

/** Records a command and what follows from it; keeps at it while the log is away. */
export type Record = (command: SessionCommand | null) => Promise<void>;

type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;

const lostCall = ({ services }: StepContext, attempt: number): SessionCommand =>
  toFailure(
    attempt,
    { reason: 'driver_lost', message: LOST, dispatched: true, retryable: true },
    isoTime(services.clock),
  );

/** What the log refuses to keep is no answer: asking for it again would bring the same. */
const recordResult = async (
  { services }: StepContext,
  { command }: CallResult,
  record: Record,
): Promise<void> => {
  try {
    await record(command);
  } catch (error) {
    if (!isAppError(error) || error.code !== 'LOG.INVALID') throw error;
    services.logger.error({ err: error }, 'the outcome of a model call cannot be stored');
    const message = 'the answer of the provider cannot be stored';
    const failure = { reason: 'provider_protocol' as const, message, dispatched: true, retryable: false };
    // What was streamed is kept: readers have it.
    const { attempt, text, thought, frames } = command.data;
    await record(toFailure(attempt, failure, command.now, { text, thought, frames }));
  }
};

const answerCall = async (
  work: StepContext,
  { call }: StepOf<'run_call'>,
  record: Record,
): Promise<number> => {
  const result = await callModel(work, call);
  await recordResult(work, result, record);
  await work.services.failpoint('agent.turn.recorded', work.actor.sessionId);
  return result.retryAfterMs;
};

const beginCall = async (
  work: StepContext,
  step: BeginCall,
  retryAfterMs: number,
  record: Record,
): Promise<void> => {
  const { services, actor, signal } = work;
  if (step.failures > 0) await waitFor(backoffMs(step.failures, services.random(), retryAfterMs), signal);
  const { state } = actor.fold();
  await record(beginCommand(step, state, followUpContext(services, actor, state)));
};

const recordOutcomes =
  ({ services }: StepContext, record: Record) =>
  (outcomes: readonly ToolEnd[]): Promise<void> =>
    record({ type: 'RecordToolOutcomes', data: { outcomes }, now: isoTime(services.clock) });

const recordsOf = (work: StepContext, turnId: string, record: Record): ToolRecords => ({
  claim: (callIds) =>
    record({ type: 'ClaimTools', data: { turnId, callIds }, now: isoTime(work.services.clock) }),
  outcomes: recordOutcomes(work, record),
});

const runCalls = async (work: StepContext, step: StepOf<'run_tools'>, record: Record): Promise<void> => {
  const { failpoint } = work.services;
  await failpoint('agent.tool.requested', work.actor.sessionId);
  await runTools(work, step.turnId, step.calls, recordsOf(work, step.turnId, record));
  await failpoint('agent.tool.recorded', work.actor.sessionId);
};

const retryRef = ({ workspace, sessionId, fold }: SessionActor, callId: string): ToolRetryRef => ({
  workspace,
  sessionId,
  callId,
  agentId: fold().state.started?.agentId ?? '',
});

/** Where it was another process that made the call, and it is still at it, the sandbox is told. */
const giveUp = (
  work: StepContext,
  { turnId, calls }: StepOf<'abandon_tools'>,
  record: Record,
): Promise<void> => {
  for (const { callId, deferred } of calls) if (deferred) cancelSent(work, callId);
  return recordOutcomes(work, record)(calls.map(({ callId }) => unknownOutcome(turnId, callId, LOST)));
};

type SureStep = Exclude<Step, { kind: 'idle' | 'await_approvals' | 'run_call' }>;

const perform = (work: StepContext, step: SureStep, retryAfterMs: number, record: Record): Promise<void> => {
  switch (step.kind) {
    case 'begin_call':
      return beginCall(work, step, retryAfterMs, record);
    case 'abandon_call':
      return record(lostCall(work, step.call.attempt));
    case 'run_tools':
      return runCalls(work, step, record);
    case 'abandon_tools':
      return giveUp(work, step, record);
    case 'await_tools':
      for (const { callId } of step.calls) work.services.retries.begin(retryRef(work.actor, callId));
      return Promise.resolve();
    case 'request_approvals':
      return askApprovals(work, step, record);
    case 'request_tools':
      return requestApproved(work, step, record);
    case 'complete':
    case 'cancel':
    case 'fail':
      return record(null);
  }
};

/**
 * Carries out one step of a turn and records its outcome. Answers how long the provider wants to be left alone, in ms.
 * Throws `Stopped` where the work was stopped before there was anything to record.
 */
export const performStep = async (
  work: StepContext,
  step: Exclude<Step, { kind: 'idle' | 'await_approvals' }>,
  retryAfterMs: number,
  record: Record,
): Promise<number> => {
  if (step.kind === 'run_call') return answerCall(work, step, record);
  await perform(work, step, retryAfterMs, record);
  return 0;
};
