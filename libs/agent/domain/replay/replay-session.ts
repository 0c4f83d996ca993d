import type { SessionEvent, TurnPolicy } from '@antiphon/contracts/agent';
import type { ToolRetry } from '@antiphon/contracts/sandbox';
import { sessionDecider } from '../session/session.decider.js';
import type { SessionState } from '../session/session-state.js';
import { beginCommand, commandFor } from '../turn/follow-up.js';
import type { FollowUpContext } from '../turn/follow-up.js';
import { nextStep } from '../turn/next-step.js';
import type { InFlight } from '../turn/step.js';
import { inferPolicy, pausesAt, policyAt } from './replay-environment.js';
import { inputOf } from './replay-input.js';
import type { ReplayNames } from './replay-names.js';

/** What a session decided, or recorded of what came from outside, and what its rules make of the same now. */
export interface ReplayedEvent {
  readonly recorded: SessionEvent;
  /** Null where the rules add no event here. */
  readonly produced: SessionEvent | null;
  /** `input`: what somebody asked for, a model or a tool answered. `decision`: what followed from it. */
  readonly kind: 'input' | 'decision';
}

/** Rules that take the place of the recorded ones. */
export type ReplayOverrides = Partial<Pick<TurnPolicy, 'maxIterations'>>;

/** Who was asked, and what was answered, is an input: nothing is asked anew. */
const ASKED: ReadonlySet<string> = new Set();
/** No decision looks at turns that are over. */
const WINDOW = { turns: 1, chars: 1_000 };

/** The driver that made the record held everything that it had begun: a lost one's traces are outcomes, and inputs. */
const fullHands = ({ open }: SessionState): InFlight => ({
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
  const times = ['startedAt', 'completedAt', 'failedAt', 'cancelledAt'].flatMap((name) => data[name] ?? []);
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

/** What the session decides in this state, under this policy and these pauses. */
const decideNext = (state: SessionState, context: FollowUpContext): readonly SessionEvent[] => {
  const step = nextStep(state, context.policy, fullHands(state));
  const command =
    step.kind === 'begin_call' ? beginCommand(step, state, context) : commandFor(step, state, context);
  return command ? context.decider.decide(command, state) : [];
};

/**
 * The policy that a call recorded is what it was driven by: an input, and no decision. What a version did not record
 * yet is not asked of it.
 */
const asRecorded = (recorded: SessionEvent, produced: SessionEvent): SessionEvent => {
  if (recorded.type === 'ModelCallStarted' && produced.type === 'ModelCallStarted') {
    const { policy: _, ...data } = produced.data;
    const { policy } = recorded.data;
    return { ...produced, data: policy ? { ...data, policy } : data };
  }
  if (produced.type !== 'ToolCallRequested' || recorded.type !== 'ToolCallRequested') return produced;
  const { claims: _, ...data } = produced.data;
  return recorded.data.claims === undefined ? { ...produced, data } : produced;
};

/** A recorded decision, the state that it was made in, and its place among those that were made in it together. */
interface Decided {
  readonly recorded: SessionEvent;
  readonly state: SessionState;
  readonly place: number;
}

/** The event that the rules give at this place, under whichever pauses of providers give what was recorded. */
const decisionFor = (
  { recorded, state, place }: Decided,
  decider: Decider,
  policy: TurnPolicy | null,
  names: ReplayNames,
): SessionEvent | null => {
  const policies = policy
    ? pausesAt(recorded, policy).map((openCircuits) => ({ ...policy, openCircuits, guarded: ASKED }))
    : [null];
  const produced = policies.map((under) => {
    const event = decideNext(state, contextOf(recorded, decider, under, names))[place];
    return event ? asRecorded(recorded, event) : null;
  });
  return produced.find((event) => event && names.isSame(event, recorded)) ?? produced[0] ?? null;
};

/**
 * Drives the rules of a session by its own record, and gives for each recorded event what they make of the same
 * inputs. Nothing is asked of a provider, a tool or a clock: answers, outcomes, times and ids come from the record.
 * What follows an event is decided in the state after the recorded one, so that each difference is its own.
 */
export function* replaySession(
  events: readonly SessionEvent[],
  names: ReplayNames,
  rules: ReplayOverrides = {},
): Generator<ReplayedEvent> {
  const decider = sessionDecider(WINDOW);
  const inferred = inferPolicy(events);
  let state = decider.initialState();
  /** Tool calls of one step are requested together: all of them are decided in the state before the first. */
  let asking: Decided | null = null;
  for (const recorded of events) {
    const input = inputOf(recorded, state.started?.sessionId ?? '', names);
    const isNext = asking !== null && recorded.type === 'ToolCallRequested';
    const at: Decided =
      isNext && asking ? { ...asking, recorded, place: asking.place + 1 } : { recorded, state, place: 0 };
    const policy = policyAt(recorded, at.state, inferred);
    const produced = input
      ? (decider.decide(input, state)[0] ?? null)
      : decisionFor(at, decider, policy && { ...policy, ...rules }, names);
    yield { recorded, produced, kind: input ? 'input' : 'decision' };
    asking = recorded.type === 'ToolCallRequested' ? at : null;
    state = decider.evolve(state, recorded);
  }
}
