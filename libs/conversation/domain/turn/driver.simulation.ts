import type { SessionEvent } from '@antiphon/contracts/agent';
import type { SessionCommand, ToolDeferral, ToolOutcome } from '../session/session-command.js';
import { sessionDecider } from '../session/session.decider.js';
import { NOW, started } from '../session/session.examples.js';
import type { SessionState, TurnToolCall } from '../session/session-state.js';
import { simulateApprovals } from './approvals.simulation.js';
import { modelCause, refusedOutcome } from './causes.simulation.js';
import { beginCommand, followUps } from './follow-up.js';
import type { FollowUpContext } from './follow-up.js';
import { nextStep } from './next-step.js';
import { retryDelay } from '../session/retry-policy.js';
import { NOTHING_IN_FLIGHT } from './step.js';
import type { AgentPolicy, InFlight, Step } from './step.js';

const STARTS_CALL = new Set(['ToolCallRequested', 'ToolCallClaimed', 'ToolCallRestarted']);

/** Returns a number below `bound`: the only source of chance in a simulation. */
export type Choose = (bound: number) => number;

type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;

const FAILURES = ['provider_unreachable', 'provider_timeout', 'provider_error', 'provider_protocol'] as const;
const usage = { inputTokens: 3, outputTokens: 2, estimated: false };

const unknownOutcome = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallUnknown',
  data: { turnId, callId, cause: { kind: 'tool_outcome_unknown', why: { kind: 'driver_lost' } } },
});

const lostOutcome = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code: 'TOOL.DRIVER_LOST', cause: { kind: 'tool_callers_lost' } },
});

const cancelledOutcome = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code: 'TOOL.CANCELLED', cause: { kind: 'tool_cancelled' } },
});

/**
 * Drives a session over a log in memory. `choose` decides all that can happen between two appends.
 */
export class DriverSimulation {
  readonly events: SessionEvent[] = [];
  /** Number of times that each tool call was sent, by call id. */
  readonly dispatched = new Map<string, number>();
  private readonly decider = sessionDecider({ turns: 3, chars: 4_000 });
  private readonly context: FollowUpContext;
  private readonly approvals: ReturnType<typeof simulateApprovals>;
  private readonly sending = new Set<string>();
  private current = this.decider.initialState();
  private inFlight: InFlight = NOTHING_IN_FLIGHT;
  private ids = 0;

  constructor(
    private readonly choose: Choose,
    private readonly policy: AgentPolicy,
  ) {
    this.approvals = simulateApprovals(choose, policy);
    this.context = {
      ...{ decider: this.decider, policy, now: NOW, begins: 'any' },
      reservationId: (attempt) => `r-${attempt}`,
      toolRequest: ({ callId, name }) => ({
        callId,
        digest: 'd',
        idempotencyKey: callId,
        idempotent: name === 'safe',
      }),
    };
    this.append([started()]);
  }

  get state(): SessionState {
    return this.current;
  }

  submit(content: string): void {
    this.decide({ type: 'RequestTurn', data: { turnId: `t-${this.ids++}`, content }, now: NOW });
  }

  cancel(turnId?: string): void {
    this.decide({ type: 'CancelTurns', data: turnId ? { turnId } : {}, now: NOW });
  }

  /** Loses the driver's memory. The next driver continues from the log alone. */
  crash(): void {
    this.inFlight = NOTHING_IN_FLIGHT;
    this.sending.clear();
  }

  /** Executes the next step. Returns false if there is none. */
  drive(): boolean {
    const step = nextStep(this.current, this.policy, this.inFlight);
    this.execute(step);
    return step.kind !== 'idle';
  }

  private execute(step: Step): void {
    switch (step.kind) {
      case 'idle':
        return;
      case 'begin_call':
        return this.commit(beginCommand(step, this.current, this.context));
      case 'run_call':
        return this.commit(this.chooseCallOutcome(step.call.attempt));
      case 'abandon_call':
        return this.commit(this.failure(step.call.attempt, true));
      case 'run_tools':
        return this.runTools(step);
      case 'abandon_tools':
        return this.recordOutcomes(step.calls.map((call) => unknownOutcome(step.turnId, call)));
      case 'restart_tools':
        return this.commit({
          ...{ type: 'RestartTools', now: NOW },
          data: { turnId: step.turnId, callIds: step.calls.map(({ callId }) => callId) },
        });
      case 'fail_tools':
        return this.failTools(step);
      case 'request_approvals':
        return this.commit(this.approvals.request(step));
      case 'await_approvals':
        return this.decide(this.approvals.answer(step));
      case 'await_tools':
        return this.retryTool(step);
      case 'request_tools':
        return step.calls.some(({ approval }) => approval !== null)
          ? this.commit(this.approvals.requestTools(step, this.context.toolRequest))
          : this.catchUp();
      // The others end the turn; the simulated agent is never paused.
      default:
        return this.catchUp();
    }
  }

  private append(added: readonly SessionEvent[]): void {
    this.events.push(...added);
    this.current = added.reduce(this.decider.evolve, this.current);
  }

  /** Appends a decision of another process, without its follow-ups. */
  private decide(command: SessionCommand): void {
    this.append(this.decider.decide(command, this.current));
  }

  /** Appends the follow-ups that another process's append left to the driver. */
  private catchUp(): void {
    this.append(followUps(this.current, this.context));
  }

  /** Appends a decision with its follow-ups, and tracks the calls that it started. */
  private commit(command: SessionCommand): void {
    const { decider } = this;
    const decided = decider.decide(command, this.current);
    const added = [...decided, ...followUps(decided.reduce(decider.evolve, this.current), this.context)];
    this.append(added);
    const calls = new Set(this.inFlight.calls);
    let { attempt } = this.inFlight;
    for (const event of added) {
      if (event.type === 'ModelCallStarted') attempt = event.data.attempt;
      if (event.type === 'ModelCallCompleted')
        for (const { callId } of event.data.toolCalls) calls.add(callId);
      if (STARTS_CALL.has(event.type) && 'callId' in event.data) calls.add(event.data.callId);
    }
    this.inFlight = { attempt, calls };
  }

  private chooseCallOutcome(attempt: number): SessionCommand {
    return this.choose(3) === 0 ? this.failure(attempt, false) : this.answer(attempt);
  }

  private answer(attempt: number): SessionCommand {
    const { choose } = this;
    return {
      type: 'RecordAnswer',
      data: {
        attempt,
        text: 'x'.repeat(choose(4)),
        thought: '',
        frames: [],
        toolCalls: Array.from({ length: choose(3) }, () => ({
          callId: `00000000-0000-4000-8000-${String(this.ids++).padStart(12, '0')}`,
          providerCallId: ['', 'call', 'not a portable id!'][choose(3)] as string,
          name: choose(2) === 0 ? 'safe' : 'unsafe',
          input: {},
        })),
        finishReason: 'stop',
        usage,
        costMicroUsd: null,
      },
      now: NOW,
    };
  }

  private failure(attempt: number, lost: boolean): SessionCommand {
    const { choose } = this;
    const reason = FAILURES[choose(FAILURES.length)] as (typeof FAILURES)[number];
    const cancelled = !lost && this.current.open?.cancelRequested === true;
    return {
      type: 'RecordFailure',
      data: {
        attempt,
        reason: lost ? 'driver_lost' : cancelled ? 'cancelled' : choose(8) === 0 ? 'budget_refused' : reason,
        cause: lost ? { kind: 'driver_lost' } : modelCause(choose),
        dispatched: true,
        retryable: choose(4) > 0,
        text: 'partial'.slice(0, choose(8)),
        thought: '',
        frames: [],
        usage: null,
      },
      now: NOW,
    };
  }

  private runTools({ turnId, calls }: StepOf<'run_tools'>): void {
    const { choose } = this;
    const toClaim = calls.filter(({ idempotent, claimed }) => !idempotent && !claimed);
    if (toClaim.length > 0) {
      const callIds = toClaim.map(({ callId }) => callId);
      this.commit({ type: 'ClaimTools', data: { turnId, callIds }, now: NOW });
      if (choose(6) === 0) return this.crash(); // between claim and dispatch
    }
    const sent = this.sendable(calls);
    for (const { callId } of sent.filter((call) => !this.sending.has(call.callId))) {
      this.countDispatch(callId, 1);
      this.sending.add(callId);
    }
    if (choose(6) === 0) return this.crash(); // between dispatch and outcome
    const outcomes = calls
      .slice(0, 1 + choose(calls.length))
      .map((call) => (sent.includes(call) ? this.tryTool(turnId, call) : cancelledOutcome(turnId, call)));
    this.recordOutcomes(outcomes);
  }

  private failTools({ turnId, calls }: StepOf<'fail_tools'>): void {
    if (calls.every(({ status }) => status === 'requested'))
      return this.recordOutcomes(calls.map((call) => lostOutcome(turnId, call)));
    const failure = { code: 'TURN.DRIVER_LOST', cause: { kind: 'preparers_lost' } } as const;
    const data = { turnId, ending: 'failed', ...failure } as const;
    this.commit({ type: 'EndTurn', data, now: NOW });
  }

  private recordOutcomes(outcomes: readonly (ToolOutcome | ToolDeferral)[]): void {
    this.commit({ type: 'RecordToolOutcomes', data: { outcomes }, now: NOW });
  }

  /**
   * Returns the calls that may be sent. A call of a cancelled turn has no claim, and is not sent.
   */
  private sendable(calls: readonly TurnToolCall[]): readonly TurnToolCall[] {
    const claimed = new Set(
      this.current.open?.steps
        .flatMap((step) => step.calls.filter((call) => call.claimed))
        .map(({ callId }) => callId),
    );
    return calls.filter(({ callId, idempotent }) => idempotent || claimed.has(callId));
  }

  private countDispatch(callId: string, change: 1 | -1): void {
    this.dispatched.set(callId, (this.dispatched.get(callId) ?? 0) + change);
  }

  /** Returns an outcome, or a deferral where the call's retry policy allows one. */
  private tryTool(turnId: string, call: TurnToolCall): ToolOutcome | ToolDeferral {
    const { choose } = this;
    const { callId, idempotent } = call;
    if (choose(4) > 0) return this.toolResult(turnId, call);
    const reason = idempotent && choose(2) === 0 ? 'lost' : 'unsent';
    // An unsent call reached no tool.
    if (reason === 'unsent') this.dispatched.set(callId, (this.dispatched.get(callId) ?? 1) - 1);
    const delay = retryDelay(call, { reason, waitedMs: choose(60_000), random: 0 });
    if (delay === null)
      return reason === 'lost' ? unknownOutcome(turnId, call) : cancelledOutcome(turnId, call);
    this.sending.delete(callId);
    return { type: 'ToolCallDeferred', data: { turnId, callId, reason, deferredAt: NOW, dueAt: NOW } };
  }

  private toolResult(turnId: string, call: TurnToolCall): ToolOutcome {
    if (this.choose(4) === 0) return unknownOutcome(turnId, call);
    if (this.choose(4) === 0) return refusedOutcome(turnId, call, this.choose);
    const content = 'r'.repeat(this.choose(2_000));
    const data = { turnId, callId: call.callId, content, isError: false, moduleDigest: 'd', durationMs: 1 };
    return { type: 'ToolCallCompleted', data };
  }

  /** Runs the scheduled retry of the first call, as its Temporal workflow does in any process. */
  private retryTool({ turnId, calls: [call] }: StepOf<'await_tools'>): void {
    if (!call) return;
    const { callId, idempotent, claimed } = call;
    if (claimed) return this.recordOutcomes([unknownOutcome(turnId, call)]);
    if (!idempotent) this.commit({ type: 'ClaimTools', data: { turnId, callIds: [callId] }, now: NOW });
    if (this.choose(4) === 0) return; // the process dies between claim and dispatch
    this.countDispatch(callId, 1);
    if (this.choose(4) === 0) return; // the process dies between dispatch and outcome
    this.recordOutcomes([this.tryTool(turnId, call)]);
  }
}
