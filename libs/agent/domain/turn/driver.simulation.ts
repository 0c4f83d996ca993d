import type { SessionEvent } from '@antiphon/contracts/agent';
import type { ToolDeferral, ToolOutcome } from '../session/session-command.js';
import type { SessionCommand } from '../session/session-command.js';
import { sessionDecider } from '../session/session.decider.js';
import { NOW, started } from '../session/session.examples.js';
import type { SessionState, TurnToolCall } from '../session/session-state.js';
import { beginCommand, followUps } from './follow-up.js';
import type { FollowUpContext } from './follow-up.js';
import { nextStep } from './next-step.js';
import { simulateApprovals } from './approvals.simulation.js';
import { NOTHING_IN_FLIGHT } from './step.js';
import type { AgentPolicy, BeginCall, InFlight, Step } from './step.js';
import { retryDelay } from './retry-policy.js';

/** Answers each question with a number below `bound`: the source of all chance in a simulation. */
export type Choose = (bound: number) => number;

export interface Simulation {
  readonly events: SessionEvent[];
  /** How often each tool call was made, by call id. */
  readonly dispatched: Map<string, number>;
  state(): SessionState;
  /** Takes one step of driving; false when there is nothing to do. */
  drive(): boolean;
  submit(content: string): void;
  cancel(turnId?: string): void;
  /** The driver dies; whoever drives on knows the log alone. */
  crash(): void;
}

const FAILURES = ['provider_unreachable', 'provider_timeout', 'provider_error', 'provider_protocol'] as const;
const usage = { inputTokens: 3, outputTokens: 2, estimated: false };

type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;
type StepTable = { readonly [K in Step['kind']]: (step: StepOf<K>) => void };
interface Acts {
  readonly begin: StepTable['begin_call'];
  readonly answerCall: (call: StepOf<'run_call'>['call']) => void;
  readonly abandonCall: (call: StepOf<'abandon_call'>['call']) => void;
  readonly runTools: StepTable['run_tools'];
  readonly giveUp: StepTable['abandon_tools'];
  readonly ask: StepTable['request_approvals'];
  readonly answerAsked: StepTable['await_approvals'];
  readonly retry: StepTable['await_tools'];
  readonly request: StepTable['request_tools'];
  /** What needs nothing from outside follows from an append; after a foreign one it is caught up on here. */
  readonly catchUp: () => void;
}

const stepTable = ({ request, catchUp, ...acts }: Acts): StepTable => ({
  idle: () => undefined,
  begin_call: acts.begin,
  run_call: ({ call }) => acts.answerCall(call),
  abandon_call: ({ call }) => acts.abandonCall(call),
  run_tools: acts.runTools,
  abandon_tools: acts.giveUp,
  request_approvals: acts.ask,
  await_approvals: acts.answerAsked,
  await_tools: acts.retry,
  request_tools: (step) => (step.calls.some(({ approval }) => approval !== null) ? request(step) : catchUp()),
  complete: catchUp,
  cancel: catchUp,
  fail: catchUp,
});

const unknown = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallUnknown',
  data: { turnId, callId, message: 'nobody knows' },
});

const cancelled = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code: 'TOOL.CANCELLED', message: 'cancelled before it ran' },
});

/** A driver over a log in memory, in which everything that can happen between two appends happens by choice. */
export const simulateDriver = (choose: Choose, policy: AgentPolicy): Simulation => {
  const decider = sessionDecider({ turns: 3, chars: 4_000 });
  const events: SessionEvent[] = [];
  const dispatched = new Map<string, number>();
  let state = decider.initialState();
  let hands: InFlight = NOTHING_IN_FLIGHT;
  const inFlight = new Set<string>();
  let ids = 0;

  const context: FollowUpContext = {
    ...{ decider, policy, now: NOW, begins: 'any' },
    reservationId: (attempt) => `r-${attempt}`,
    toolRequest: ({ callId, name }) => ({
      callId,
      digest: 'd',
      idempotencyKey: callId,
      idempotent: name === 'safe',
    }),
  };
  const append = (added: readonly SessionEvent[]): void => {
    events.push(...added);
    state = added.reduce(decider.evolve, state);
  };
  /** One append: a decision and all that follows from it; what it began is in this driver's hands. */
  const commit = (command: SessionCommand): void => {
    const decided = decider.decide(command, state);
    const added = [...decided, ...followUps(decided.reduce(decider.evolve, state), context)];
    append(added);
    const calls = new Set(hands.calls);
    for (const event of added) {
      if (event.type === 'ModelCallStarted') hands = { ...hands, attempt: event.data.attempt };
      if (event.type === 'ToolCallRequested' || event.type === 'ToolCallClaimed')
        calls.add(event.data.callId);
    }
    hands = { ...hands, calls };
  };
  const answer = (attempt: number): SessionCommand => ({
    type: 'RecordAnswer',
    data: {
      attempt,
      text: 'x'.repeat(choose(4)),
      thought: '',
      frames: [],
      toolCalls: Array.from({ length: choose(3) }, () => ({
        callId: `00000000-0000-4000-8000-${String(ids++).padStart(12, '0')}`,
        providerCallId: ['', 'call', 'not a portable id!'][choose(3)] as string,
        name: choose(2) === 0 ? 'safe' : 'unsafe',
        input: {},
      })),
      finishReason: 'stop',
      usage,
      costMicroUsd: null,
    },
    now: NOW,
  });
  const failure = (attempt: number, lost: boolean): SessionCommand => {
    const reason = FAILURES[choose(FAILURES.length)] as (typeof FAILURES)[number];
    const cancelled = !lost && state.open?.cancelRequested === true;
    return {
      type: 'RecordFailure',
      data: {
        attempt,
        reason: lost ? 'driver_lost' : cancelled ? 'cancelled' : choose(8) === 0 ? 'budget_refused' : reason,
        message: 'it failed',
        dispatched: true,
        retryable: choose(4) > 0,
        text: 'partial'.slice(0, choose(8)),
        thought: '',
        frames: [],
        usage: null,
      },
      now: NOW,
    };
  };
  const result = (turnId: string, call: TurnToolCall): ToolOutcome =>
    choose(4) === 0
      ? unknown(turnId, call)
      : {
          type: 'ToolCallCompleted',
          data: {
            turnId,
            callId: call.callId,
            content: 'r'.repeat(choose(2_000)),
            isError: false,
            moduleDigest: 'd',
            durationMs: 1,
          },
        };
  /** What was asked for in a turn that is cancelled by now has no claim, and is not sent. */
  const mayBeSent = (calls: readonly TurnToolCall[]): readonly TurnToolCall[] => {
    const claimed = new Set(
      state.open?.steps.flatMap((step) => step.calls.filter((call) => call.claimed)).map((c) => c.callId),
    );
    return calls.filter(({ callId, idempotent }) => idempotent || claimed.has(callId));
  };
  /** A try that may be repeated sometimes is, as often as the call's policy says. */
  const tried = (turnId: string, call: TurnToolCall): ToolOutcome | ToolDeferral => {
    const { callId, idempotent } = call;
    if (choose(4) > 0) return result(turnId, call);
    const reason = idempotent && choose(2) === 0 ? 'lost' : 'unsent';
    // What certainly reached nobody was not made.
    if (reason === 'unsent') dispatched.set(callId, (dispatched.get(callId) ?? 1) - 1);
    const waitMs = retryDelay(call, { reason, waitedMs: choose(60_000), random: 0 });
    if (waitMs === null) return reason === 'lost' ? unknown(turnId, call) : cancelled(turnId, call);
    inFlight.delete(callId);
    return { type: 'ToolCallDeferred', data: { turnId, callId, reason, deferredAt: NOW, dueAt: NOW } };
  };
  /** What the Temporal workflow of a call does when it is due, in whichever process, which may die on the way. */
  const retry = (turnId: string, [call]: readonly TurnToolCall[]): void => {
    if (!call) return;
    const { callId, idempotent, claimed } = call;
    const record = (outcome: ToolOutcome | ToolDeferral): void =>
      commit({ type: 'RecordToolOutcomes', data: { outcomes: [outcome] }, now: NOW });
    if (claimed) return record(unknown(turnId, call));
    if (!idempotent) commit({ type: 'ClaimTools', data: { turnId, callIds: [callId] }, now: NOW });
    if (choose(4) === 0) return; // between claim and dispatch
    dispatched.set(callId, (dispatched.get(callId) ?? 0) + 1);
    if (choose(4) === 0) return; // between dispatch and outcome
    record(tried(turnId, call));
  };
  const runTools = ({ turnId, calls }: Extract<Step, { kind: 'run_tools' }>): void => {
    const toClaim = calls.filter(({ idempotent, claimed }) => !idempotent && !claimed);
    if (toClaim.length > 0) {
      const callIds = toClaim.map(({ callId }) => callId);
      commit({ type: 'ClaimTools', data: { turnId, callIds }, now: NOW });
      if (choose(6) === 0) return crash(); // between claim and dispatch
    }
    const sent = mayBeSent(calls);
    for (const { callId } of sent.filter((call) => !inFlight.has(call.callId))) {
      dispatched.set(callId, (dispatched.get(callId) ?? 0) + 1);
      inFlight.add(callId);
    }
    if (choose(6) === 0) return crash(); // between dispatch and outcome
    const outcomes = calls
      .slice(0, 1 + choose(calls.length))
      .map((call) => (sent.includes(call) ? tried(turnId, call) : cancelled(turnId, call)));
    commit({ type: 'RecordToolOutcomes', data: { outcomes }, now: NOW });
  };
  const giveUp = ({ turnId, calls }: Extract<Step, { kind: 'abandon_tools' }>): void =>
    commit({
      type: 'RecordToolOutcomes',
      data: { outcomes: calls.map((call) => unknown(turnId, call)) },
      now: NOW,
    });
  const crash = (): void => {
    hands = NOTHING_IN_FLIGHT;
    inFlight.clear();
  };
  const begin = (step: BeginCall): void => commit(beginCommand(step, state, context));

  const acts = (): Acts => ({
    begin,
    answerCall: ({ attempt }) => commit(choose(3) === 0 ? failure(attempt, false) : answer(attempt)),
    abandonCall: ({ attempt }) => commit(failure(attempt, true)),
    runTools,
    giveUp,
    retry: ({ turnId, calls }) => retry(turnId, calls),
    ask: (step) => commit(simulateApprovals(choose, policy).ask(step)),
    answerAsked: (step) => append(decider.decide(simulateApprovals(choose, policy).answer(step), state)),
    request: (step) => commit(simulateApprovals(choose, policy).request(step, context.toolRequest)),
    catchUp: () => append(followUps(state, context)),
  });
  const drive = (): boolean => {
    const step = nextStep(state, policy, hands);
    (stepTable(acts())[step.kind] as (taken: Step) => void)(step);
    return step.kind !== 'idle';
  };

  append([started()]);
  return {
    events,
    dispatched,
    state: () => state,
    drive,
    submit: (content) =>
      append(
        decider.decide({ type: 'RequestTurn', data: { turnId: `t-${ids++}`, content }, now: NOW }, state),
      ),
    cancel: (turnId) =>
      append(decider.decide({ type: 'CancelTurns', data: turnId ? { turnId } : {}, now: NOW }, state)),
    crash,
  };
};
