import type { SessionEvent, TurnPolicy } from '@antiphon/contracts/agent';
import { textCause } from '@antiphon/contracts/causes';
import type { ToolRetry } from '@antiphon/contracts/sandbox';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain';
import { sessionDecider } from '../session/session.decider.js';
import type { SessionState } from '../session/session-state.js';
import { beginCommand, commandFor } from '../turn/follow-up.js';
import type { FollowUpContext } from '../turn/follow-up.js';
import { nextStep } from '../turn/next-step.js';
import type { InFlight } from '../turn/step.js';
import { inferPolicy, policyAt, possibleCircuits } from './replay-environment.js';
import { recordedCause } from './recorded-cause.js';
import { toCommand } from './replay-input.js';
import type { ReplayNames } from './replay-input.js';

/** Recorded event, and the event that the rules of this version produce in its place. */
export interface ReplayedEvent {
  readonly recorded: SessionEvent;
  /** Null if the rules produce no event here. */
  readonly produced: SessionEvent | null;
  /** Inputs come from a client, a model, a tool or an approver; decisions from the session. */
  readonly kind: 'input' | 'decision';
}

/** Rules that replace the recorded ones. */
export type ReplayOverrides = Partial<Pick<TurnPolicy, 'maxIterations'>>;

/** Approvals are inputs of a replay, so no tool requires one here. */
const NO_GUARDED_TOOLS: ReadonlySet<string> = new Set();
/** Minimal window: no decision reads ended turns. */
const WINDOW = { turns: 1, chars: 1_000 };

/**
 * Returns all open calls as in flight. The loss of a driver shows in the log as outcomes, which are
 * inputs.
 */
const allInFlight = ({ open }: SessionState): InFlight => ({
  attempt: open?.call?.attempt ?? null,
  calls: new Set(open?.steps.flatMap(({ calls }) => calls.map(({ callId }) => callId)) ?? []),
});

type Decider = ReturnType<typeof sessionDecider>;

const contextOf = (
  recorded: SessionEvent,
  decider: Decider,
  policy: FollowUpContext['policy'],
  names: ReplayNames,
): FollowUpContext => {
  const data = recorded.data as Readonly<Record<string, unknown>>;
  const times = ['startedAt', 'completedAt', 'failedAt', 'cancelledAt', 'forwardedAt'].flatMap(
    (name) => data[name] ?? [],
  );
  return {
    ...{ decider, policy, begins: 'any', now: String(times[0] ?? '') },
    reservationId: () => String(data['reservationId']),
    toolRequest: ({ callId, name, input }) => {
      const digest = names.toolDigestOf(name, input);
      const declared = data['callId'] === callId ? data : {};
      const retry = declared['retry'] as ToolRetry | undefined;
      const timeoutMs = declared['timeoutMs'] as number | undefined;
      const policy = { ...(retry ? { retry } : {}), ...(timeoutMs ? { timeoutMs } : {}) };
      const idempotent = declared['idempotent'] === true;
      return { callId, digest, idempotencyKey: callId, idempotent, ...policy };
    },
  };
};

/** Returns the decision in this state, under this policy and these open circuits. */
const decideNext = (state: SessionState, context: FollowUpContext): readonly SessionEvent[] => {
  const step = nextStep(state, context.policy, allInFlight(state));
  const command =
    step.kind === 'begin_call' ? beginCommand(step, state, context) : commandFor(step, state, context);
  return command ? context.decider.decide(command, state) : [];
};

/** Returns the fields of a cause in one order. An older log has the last error as a text. */
const sortFields = (value: unknown): unknown =>
  value === null || typeof value !== 'object'
    ? value
    : Object.entries(value)
        .map(([name, field]: [string, unknown]) => [
          name,
          sortFields(name === 'lastError' && typeof field === 'string' ? textCause(field) : field),
        ])
        .sort();

const isSameCause = (a: unknown, b: unknown): boolean =>
  JSON.stringify(sortFields(a)) === JSON.stringify(sortFields(b));

/**
 * Adjusts the cause of a produced event to the recorded one. An event from before causes has a
 * text in its place, which may have been reworded since.
 */
const alignCause = (recorded: SessionEvent, produced: SessionEvent | null): SessionEvent | null => {
  if (!produced || recorded.type !== produced.type || !('cause' in recorded.data)) return produced;
  const { cause } = recorded.data;
  const isSame =
    recorded.type === 'TurnFailed' && 'cause' in produced.data
      ? isSameCause(recordedCause(recorded), produced.data.cause)
      : cause.kind === 'text';
  return isSame ? ({ ...produced, data: { ...produced.data, cause } } as SessionEvent) : produced;
};

/**
 * Adjusts a produced event to the recorded one. A recorded policy is an input. Fields that the
 * recording version did not write are removed.
 */
const alignToRecorded = (recorded: SessionEvent, produced: SessionEvent): SessionEvent => {
  if (recorded.type === 'ModelCallStarted' && produced.type === 'ModelCallStarted') {
    const { policy: _, ...data } = produced.data;
    const { policy } = recorded.data;
    return { ...produced, data: policy ? { ...data, policy } : data };
  }
  if (produced.type !== 'ToolCallRequested' || recorded.type !== 'ToolCallRequested') return produced;
  const { claims: _, ...data } = produced.data;
  return recorded.data.claims === undefined ? { ...produced, data } : produced;
};

/** A recorded decision, the state before it, and its index among the decisions in that state. */
interface RecordedDecision {
  readonly recorded: SessionEvent;
  readonly state: SessionState;
  readonly place: number;
}

/** The end of an agent is an input of its turns. */
const isEndOfAgent = ({ type, data }: SessionEvent): boolean =>
  type === 'TurnFailed' && data.code === 'AGENT.TERMINATED';

/** The loss of the processes that prepared a call for its approval is an input of its turn. */
const isLostPreparation = ({ type, data }: SessionEvent, { open }: SessionState): boolean =>
  type === 'TurnFailed' &&
  data.code === 'TURN.DRIVER_LOST' &&
  open?.steps.at(-1)?.calls.some(({ status, lostDrivers = 0 }) => status === 'asked' && lostDrivers > 0) ===
    true;

const ENDED_AGENT = {
  ...{ provider: '', model: '', fallback: null, maxIterations: 1 },
  openCircuits: NO_OPEN_CIRCUITS,
  guarded: NO_GUARDED_TOOLS,
  halt: 'terminated' as const,
};

/** Returns the event that the rules produce here, under the open circuits that match the record. */
const decisionFor = (
  { recorded, state, place }: RecordedDecision,
  decider: Decider,
  policy: TurnPolicy | null,
  names: ReplayNames,
): SessionEvent | null => {
  if (isLostPreparation(recorded, state)) return recorded;
  const policies = isEndOfAgent(recorded)
    ? [ENDED_AGENT]
    : policy
      ? possibleCircuits(recorded, policy).map((openCircuits) => ({
          ...policy,
          openCircuits,
          guarded: NO_GUARDED_TOOLS,
        }))
      : [null];
  const produced = policies.map((under) => {
    const event = decideNext(state, contextOf(recorded, decider, under, names))[place];
    return event ? alignCause(recorded, alignToRecorded(recorded, event)) : null;
  });
  return produced.find((event) => event && names.isSame(event, recorded)) ?? produced[0] ?? null;
};

/**
 * Replays a session's log by the rules of this version. Yields, for each recorded event, the event
 * that the rules produce from the same inputs. Calls no provider, tool or clock: responses,
 * outcomes, times and ids come from the log. Each decision starts from the recorded state, so that
 * a difference does not cause further ones.
 */
export function* replaySession(
  events: readonly SessionEvent[],
  names: ReplayNames,
  rules: ReplayOverrides = {},
): Generator<ReplayedEvent> {
  const decider = sessionDecider(WINDOW);
  const inferred = inferPolicy(events);
  let state = decider.initialState();
  /** Tool calls of one step are requested together, in the state before the first of them. */
  let lastRequest: RecordedDecision | null = null;
  for (const recorded of events) {
    const input = toCommand(recorded, state.started?.sessionId ?? '', names);
    const isNext = lastRequest !== null && recorded.type === 'ToolCallRequested';
    const at: RecordedDecision =
      isNext && lastRequest
        ? { ...lastRequest, recorded, place: lastRequest.place + 1 }
        : { recorded, state, place: 0 };
    const policy = policyAt(recorded, at.state, inferred);
    const produced = input
      ? alignCause(recorded, decider.decide(input, state)[0] ?? null)
      : decisionFor(at, decider, policy && { ...policy, ...rules }, names);
    yield { recorded, produced, kind: input ? 'input' : 'decision' };
    lastRequest = recorded.type === 'ToolCallRequested' ? at : null;
    state = decider.evolve(state, recorded);
  }
}
