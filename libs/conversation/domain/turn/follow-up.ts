import type { SessionEvent, TurnPolicy } from '@antiphon/contracts/agent';
import type { ToolRetry } from '@antiphon/contracts/sandbox';
import type { SessionCommand } from '../session/session-command.js';
import type { SessionDecider } from '../session/session.decider.js';
import type { SessionState, TurnToolCall } from '../session/session-state.js';
import { recipientOf } from '../session/hand-over.js';
import { nextStep } from './next-step.js';
import { SUSPECT_AFTER } from '../session/retry-policy.js';
import { NOTHING_IN_FLIGHT } from './step.js';
import type { AgentPolicy, BeginCall, ModelChoice, Step } from './step.js';

/** Inputs of a decision from its driver: time, derived ids and tool declarations. */
export interface FollowUpContext {
  readonly decider: SessionDecider;
  readonly policy: AgentPolicy | null;
  readonly now: string;
  /** Model calls that may start. A draining process allows running turns only; at its end, none. */
  readonly begins: 'any' | 'running_turns' | 'none';
  readonly reservationId: (attempt: number) => string;
  readonly toolRequest: (call: TurnToolCall) => {
    readonly callId: string;
    readonly digest: string;
    readonly idempotencyKey: string;
    readonly idempotent: boolean;
    readonly retry?: ToolRetry;
    readonly timeoutMs?: number;
  };
}

const isSame = (a: ModelChoice | null, b: ModelChoice | null): boolean =>
  a?.provider === b?.provider && a?.model === b?.model;

/**
 * Returns the policy that a call records, or nothing if the session recorded the same one before.
 */
const changedPolicy = (
  policy: AgentPolicy | null,
  { policy: last }: SessionState,
): { policy?: TurnPolicy } => {
  if (!policy) return {};
  const { provider, model, fallback, maxIterations } = policy;
  const known =
    last !== null &&
    isSame(last, policy) &&
    isSame(last.fallback, fallback) &&
    last.maxIterations === maxIterations;
  const own = fallback && { provider: fallback.provider, model: fallback.model };
  return known ? {} : { policy: { provider, model, fallback: own, maxIterations } };
};

/** Returns the command that starts a call, with the id of its budget reservation. */
export const beginCommand = (
  { provider, model, turnId, step, tryNumber }: BeginCall,
  state: SessionState,
  { reservationId, now, policy }: Pick<FollowUpContext, 'reservationId' | 'now' | 'policy'>,
): SessionCommand => ({
  type: 'BeginModelCall',
  data: {
    ...{ turnId, step, tryNumber, provider, model, reservationId: reservationId(state.attempt + 1) },
    ...changedPolicy(policy, state),
  },
  now,
});

/** Returns true if a process with this allowance may start the call. */
export const canBegin = ({ step, tryNumber }: BeginCall, begins: FollowUpContext['begins']): boolean =>
  begins === 'any' || (begins === 'running_turns' && (step > 1 || tryNumber > 1));

type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;

const requestCommand = (
  { turnId, calls }: StepOf<'request_tools'>,
  { now, toolRequest }: FollowUpContext,
): SessionCommand => ({ type: 'RequestTools', data: { turnId, calls: calls.map(toolRequest) }, now });

const endCommand = (step: StepOf<'complete' | 'cancel' | 'fail'>, now: string): SessionCommand => {
  const { turnId } = step;
  if (step.kind === 'complete') {
    const cut = step.cutBy ? { cutBy: step.cutBy } : {};
    return { type: 'EndTurn', data: { turnId, ending: 'completed', ...cut }, now };
  }
  if (step.kind === 'cancel') return { type: 'EndTurn', data: { turnId, ending: 'cancelled' }, now };
  const { code, cause } = step;
  return { type: 'EndTurn', data: { turnId, ending: 'failed', code, cause }, now };
};

const forwardCommand = ({ turnId, call }: StepOf<'forward'>, now: string): SessionCommand => {
  const { callId, content: text } = call;
  return { type: 'ForwardAnswer', data: { turnId, callId, agentId: recipientOf(call.input), text }, now };
};

/** Returns the command of a step that needs no I/O; null for all other steps. */
export const commandFor = (
  step: Step,
  state: SessionState,
  context: FollowUpContext,
): SessionCommand | null => {
  const { now } = context;
  switch (step.kind) {
    case 'begin_call':
      // The driver starts a call after a failure or after lost processes when it is due.
      return step.failures === 0 && step.lostDrivers < SUSPECT_AFTER && canBegin(step, context.begins)
        ? beginCommand(step, state, context)
        : null;
    case 'request_tools':
      return requestCommand(step, context);
    case 'block': {
      const { turnIds, code, cause, until } = step;
      return { type: 'BlockTurns', data: { turnIds, code, cause, until }, now };
    }
    case 'return_answer':
      return { type: 'ReturnAnswer', data: { turnId: step.turnId, cause: step.cause }, now };
    case 'forward':
      return forwardCommand(step, now);
    case 'complete':
    case 'cancel':
    case 'fail':
      return endCommand(step, now);
    default:
      return null;
  }
};

/** Returns true if approvals must be compared with the current tools first, which needs I/O. */
const needsToolCheck = (step: Step): boolean =>
  step.kind === 'request_tools' && step.calls.some(({ approval }) => approval !== null);

/**
 * Returns all events that follow from a state without waiting or I/O: tool requests, the end of a
 * turn, the start of the next call. The driver appends them together with their cause, so that a
 * plain step costs one commit.
 */
export const followUps = (state: SessionState, context: FollowUpContext): SessionEvent[] => {
  const events: SessionEvent[] = [];
  let next = state;
  for (;;) {
    const step = nextStep(next, context.policy, NOTHING_IN_FLIGHT);
    const command = needsToolCheck(step) ? null : commandFor(step, next, context);
    const added = command ? context.decider.decide(command, next) : [];
    if (added.length === 0) return events;
    events.push(...added);
    next = added.reduce(context.decider.evolve, next);
  }
};
