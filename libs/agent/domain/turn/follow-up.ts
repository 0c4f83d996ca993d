import type { SessionEvent, TurnPolicy } from '@antiphon/contracts/agent';
import type { ToolRetry } from '@antiphon/contracts/sandbox';
import type { SessionCommand } from '../session/session-command.js';
import type { SessionDecider } from '../session/session.decider.js';
import type { SessionState, TurnToolCall } from '../session/session-state.js';
import { nextStep } from './next-step.js';
import { NOTHING_IN_FLIGHT } from './step.js';
import type { AgentPolicy, BeginCall, ModelChoice, Step } from './step.js';

/** What the driver knows that a decision needs: time, names made from what is being named, and what tools declare. */
export interface FollowUpContext {
  readonly decider: SessionDecider;
  readonly policy: AgentPolicy | null;
  readonly now: string;
  /** Which model calls may begin: while a process drains, those of turns that are running; at its end, none. */
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

/** What a call records of the policy that it was begun by: nothing where the session has it already. */
const newPolicy = (policy: AgentPolicy | null, { policy: last }: SessionState): { policy?: TurnPolicy } => {
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

/** The call that a step begins, cited with the reservation that it will spend from. */
export const beginCommand = (
  { provider, model, turnId, step, tryNumber }: BeginCall,
  state: SessionState,
  { reservationId, now, policy }: Pick<FollowUpContext, 'reservationId' | 'now' | 'policy'>,
): SessionCommand => ({
  type: 'BeginModelCall',
  data: {
    ...{ turnId, step, tryNumber, provider, model, reservationId: reservationId(state.attempt + 1) },
    ...newPolicy(policy, state),
  },
  now,
});

/** Whether a process that is in this state of life may begin a call. */
export const canBegin = ({ step, tryNumber }: BeginCall, begins: FollowUpContext['begins']): boolean =>
  begins === 'any' || (begins === 'running_turns' && (step > 1 || tryNumber > 1));

type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;

const requestCommand = (
  { turnId, calls }: StepOf<'request_tools'>,
  { now, toolRequest }: FollowUpContext,
): SessionCommand => ({ type: 'RequestTools', data: { turnId, calls: calls.map(toolRequest) }, now });

const endCommand = (step: StepOf<'complete' | 'cancel' | 'fail'>, now: string): SessionCommand => {
  const { turnId } = step;
  if (step.kind === 'complete') return { type: 'EndTurn', data: { turnId, ending: 'completed' }, now };
  if (step.kind === 'cancel') return { type: 'EndTurn', data: { turnId, ending: 'cancelled' }, now };
  const { code, message } = step;
  return { type: 'EndTurn', data: { turnId, ending: 'failed', code, message }, now };
};

/** What a step decides without the outside world; null for the steps that need it. */
export const commandFor = (
  step: Step,
  state: SessionState,
  context: FollowUpContext,
): SessionCommand | null => {
  const { now } = context;
  switch (step.kind) {
    case 'begin_call':
      // With a wait before it, the driver begins it when its time has come.
      return step.failures === 0 && canBegin(step, context.begins)
        ? beginCommand(step, state, context)
        : null;
    case 'request_tools':
      return requestCommand(step, context);
    case 'complete':
    case 'cancel':
    case 'fail':
      return endCommand(step, now);
    default:
      return null;
  }
};

/** What was agreed to is compared first with what would run, which takes a look outside. */
const mustLook = (step: Step): boolean =>
  step.kind === 'request_tools' && step.calls.some(({ approval }) => approval !== null);

/**
 * Everything that follows from a state without waiting and without the outside world: tool requests, the end of a
 * turn, the start of the next call. Appended together with what it follows from, so that a plain step costs one commit.
 */
export const followUps = (state: SessionState, context: FollowUpContext): SessionEvent[] => {
  const events: SessionEvent[] = [];
  let next = state;
  for (;;) {
    const step = nextStep(next, context.policy, NOTHING_IN_FLIGHT);
    const command = mustLook(step) ? null : commandFor(step, next, context);
    const added = command ? context.decider.decide(command, next) : [];
    if (added.length === 0) return events;
    events.push(...added);
    next = added.reduce(context.decider.evolve, next);
  }
};
