import { storableCause } from '@antiphon/agent-log';
import { causeOf, textCause } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { CALLER_CLOCK_SUBJECT, TOOL_CANCEL_SUBJECT, callTool } from '@antiphon/contracts/sandbox';
import type { CallerTime, ToolCancel, ToolReply } from '@antiphon/contracts/sandbox';
import { retryDelay, retryPolicyOf } from '@antiphon/conversation-domain';
import type { DeferralReason, ToolDeferral, ToolOutcome, TurnToolCall } from '@antiphon/conversation-domain';
import { clipToJsonBytes, isAppError, isoTime, toStorable, toStorableJson } from '@antiphon/kernel';
import type { AppError, Clock } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { PolicyAgents } from '@antiphon/agents-features';
import { Stopped } from '../sessions/stopped.js';
import type { CallPermit, CallPermits } from './call-permits.js';
import { detectLostCall, sendAgainAtStart, steadyNow } from './lost-call.js';
import type { SandboxWatch } from './lost-call.js';
import type { Failpoint, StepContext } from './step-context.js';
import { createToken } from '@antiphon/service-host';

/** Returns numbers in [0, 1) for jitter. */
export const RANDOM = createToken<() => number>('RANDOM');

export interface ToolCallDeps {
  readonly agents: Pick<PolicyAgents, 'load'>;
  readonly sandbox: SandboxWatch;
  readonly nats: NatsLink;
  readonly clock: Clock;
  /** Returns a number in [0, 1) for jitter. */
  readonly random: () => number;
  readonly failpoint: Failpoint;
  readonly permits: CallPermits;
  /** This process, unique for its incarnation. */
  readonly owner: string;
}

/** Context of one attempt of a tool call: of its turn's driver, or of a later retry. */
export interface ToolCallContext extends Pick<StepContext, 'actor' | 'signal'> {
  /**
   * Proves that the call is still this attempt's, right before its request is sent. Throws
   * `Stopped`.
   */
  readonly confirmClaim: (callId: string) => Promise<void>;
  /**
   * Returns the epoch of the session's lease. The sandbox refuses one that is lower than it has
   * seen.
   */
  readonly epoch: () => number;
  /** False while the request of the call is being committed: a tool with a capability is not run. */
  readonly isRequestCommitted?: boolean;
}

/** Records that a call's tool may be reached from now on. */
export type Claim = (callId: string) => Promise<void>;

/**
 * Result of an attempt: the call's outcome, or the reason to retry with the outcome if no retry is
 * left.
 */
type Attempted =
  { readonly outcome: ToolOutcome } | { readonly retry: DeferralReason; readonly otherwise: ToolOutcome };

/**
 * Time after the proof of a claim within which the sandbox may start the call, ms. It ends before a
 * call can be recorded as lost (`LOST_MS`), also when a request is delayed.
 */
const START_WITHIN_MS = 3_000;

/** Maximum size of a result, bytes of JSON. An event holds 1 MiB. */
const MAX_CONTENT_BYTES = 900_000;

const storableContent = (content: string): string => clipToJsonBytes(toStorable(content), MAX_CONTENT_BYTES);

const failed = (turnId: string, callId: string, code: string, cause: Cause): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code, cause: storableCause(cause, storableContent) },
});

/**
 * Returns the outcome of a reply. A call that is not idempotent has an unknown outcome if its tool
 * failed after it had reached the outside.
 */
const toOutcome = (turnId: string, { callId, idempotent }: TurnToolCall, reply: ToolReply): ToolOutcome => {
  if (reply.outcome === 'failed') {
    const why = reply.cause ?? textCause(reply.message);
    return reply.mayHaveActed && !idempotent
      ? unknownOutcome(turnId, callId, { kind: 'failed_with', code: reply.code, why })
      : failed(turnId, callId, reply.code, why);
  }
  const { content, isError, moduleDigest, durationMs, large } = reply;
  const stored = large && { stored: { digest: large.digest, size: large.size } };
  return {
    type: 'ToolCallCompleted',
    data: { turnId, callId, content: storableContent(content), isError, ...stored, moduleDigest, durationMs },
  };
};

/** Returns the outcome of a call whose tool may or may not have acted. */
export const unknownOutcome = (turnId: string, callId: string, why: Cause): ToolOutcome => ({
  type: 'ToolCallUnknown',
  data: {
    ...{ turnId, callId },
    cause: { kind: 'tool_outcome_unknown', why: storableCause(why, storableContent) },
  },
});

/** Returns the outcome of a call that has lost too many processes. */
export const lostOutcome = (turnId: string, callId: string): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code: 'TOOL.DRIVER_LOST', cause: { kind: 'tool_callers_lost' } },
});

/** Returns the outcome of a call whose result the log refuses. */
export const unstorableOutcome = (turnId: string, callId: string): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code: 'TOOL.RESULT_NOT_STORABLE', cause: { kind: 'fact_not_storable' } },
});

const unsent = (turnId: string, { callId }: TurnToolCall): Attempted => ({
  retry: 'unsent',
  otherwise: failed(turnId, callId, 'TOOL.UNAVAILABLE', { kind: 'tool_unsent' }),
});

const ANSWER_LOST = { kind: 'tool_answer_lost' } as const;

/** Without its permission, a call that is not idempotent cannot have acted. */
const afterLostResponse = (
  turnId: string,
  call: TurnToolCall,
  why: Cause,
  permit: CallPermit | null,
): Attempted => {
  const { callId } = call;
  if (permit === null) return { retry: 'lost', otherwise: unknownOutcome(turnId, callId, ANSWER_LOST) };
  return permit.withdraw() ? { outcome: unknownOutcome(turnId, callId, why) } : unsent(turnId, call);
};

const afterError = (
  turnId: string,
  call: TurnToolCall,
  error: AppError,
  permit: CallPermit | null,
): Attempted => {
  if (error.code === 'MESSAGING.NO_RESPONDERS') return unsent(turnId, call);
  if (error.kind === 'transient' || error.kind === 'bug')
    return afterLostResponse(turnId, call, causeOf(error), permit);
  if (error.code === 'SANDBOX.FENCED') throw new Stopped('lost');
  return { outcome: failed(turnId, call.callId, error.code, causeOf(error)) };
};

const afterReply = (turnId: string, call: TurnToolCall, reply: ToolReply): Attempted => {
  const code = reply.outcome === 'failed' ? reply.code : '';
  if (code === 'TOOL.UNAVAILABLE') return unsent(turnId, call);
  const outcome = toOutcome(turnId, call, reply);
  // A program that is lost may have acted: only an idempotent tool is called again.
  if (code === 'TOOL.WORKER_LOST' && call.idempotent) return { retry: 'lost', otherwise: outcome };
  return code === 'TOOL.TIMEOUT' && call.idempotent && retryPolicyOf(call).onTimeout
    ? { retry: 'timed_out', otherwise: outcome }
    : { outcome };
};

const isClaimed = ({ actor }: ToolCallContext, callId: string): boolean =>
  actor
    .fold()
    .state.open?.steps.some(({ calls }) => calls.some((call) => call.callId === callId && call.claimed)) ??
  false;

const claimCall = async (
  context: ToolCallContext,
  { callId, idempotent }: TurnToolCall,
  claim: Claim,
): Promise<void> => {
  if (idempotent || isClaimed(context, callId)) return;
  await claim(callId);
  // A cancel was recorded first.
  if (!isClaimed(context, callId)) throw new Stopped('cancelled');
};

const toDeferral = (
  now: number,
  turnId: string,
  callId: string,
  reason: DeferralReason,
  delayMs: number,
): ToolDeferral => {
  const at = (time: number): string => isoTime({ now: () => time });
  return {
    type: 'ToolCallDeferred',
    data: { turnId, callId, reason, deferredAt: at(now), dueAt: at(now + delayMs) },
  };
};

/** Publishes this process's clock to the sandbox, which measures delayed requests with it. */
export const publishClock = async ({ nats, owner }: Pick<ToolCallDeps, 'nats' | 'owner'>): Promise<void> => {
  if (!nats.isConnected()) return;
  const message: CallerTime = { caller: owner, at: steadyNow() };
  nats.connection.publish(CALLER_CLOCK_SUBJECT, JSON.stringify(message));
};

/** Calls tools in the sandbox. */
export class ToolCaller {
  constructor(private readonly deps: ToolCallDeps) {}

  /**
   * Makes one attempt of a tool call, claimed in the log first unless the tool is idempotent.
   * Returns its outcome, or a deferral if the tool was certainly not reached or its policy allows a
   * retry. Throws `Stopped` when another process holds the session or this one shuts down: the
   * outcome is not ours to record then.
   */
  async call(
    context: ToolCallContext,
    turnId: string,
    call: TurnToolCall,
    claim: Claim,
  ): Promise<ToolOutcome | ToolDeferral> {
    const { clock, random } = this.deps;
    // Claimed by an earlier attempt whose outcome is not known.
    if (call.claimed) return unknownOutcome(turnId, call.callId, ANSWER_LOST);
    const attempted = await this.attempt(context, turnId, call, claim);
    if ('outcome' in attempted) return attempted.outcome;
    const { retry: reason, otherwise } = attempted;
    const waitedMs = call.deferred ? clock.now() - Date.parse(call.deferred.since) : 0;
    const delayMs = retryDelay(call, { reason, waitedMs, random: random() });
    if (delayMs === null) return otherwise;
    return toDeferral(clock.now(), turnId, call.callId, reason, Math.round(delayMs));
  }

  /**
   * Publishes the cancellation of a call to all sandbox processes. The one that runs it stops it.
   */
  cancel({ actor }: Pick<ToolCallContext, 'actor'>, callId: string): void {
    const { nats } = this.deps;
    const { workspace, sessionId } = actor;
    if (!nats.isConnected()) return;
    const message: ToolCancel = { workspace, sessionId, callId, epoch: actor.lease.held()?.epoch ?? 0 };
    nats.connection.publish(TOOL_CANCEL_SUBJECT, JSON.stringify(message));
  }

  private async attempt(
    context: ToolCallContext,
    turnId: string,
    call: TurnToolCall,
    claim: Claim,
  ): Promise<Attempted> {
    const { nats, failpoint, owner } = this.deps;
    const { actor, signal } = context;
    try {
      signal.throwIfAborted();
      // Without a connection nothing is sent, so no response can be lost.
      if (!nats.isConnected()) return unsent(turnId, call);
      await claimCall(context, call, claim);
      await failpoint('agent.tool.claimed', actor.sessionId);
      // Before the proof, so that the deadline counts a pause of this process after it.
      const sentAt = { caller: owner, at: steadyNow() };
      await context.confirmClaim(call.callId);
      signal.throwIfAborted();
      return await this.dispatch(context, turnId, call, sentAt);
    } catch (error) {
      if (!(error instanceof Stopped) || error.reason !== 'cancelled') throw error;
      return { outcome: failed(turnId, call.callId, 'TOOL.CANCELLED', { kind: 'tool_cancelled' }) };
    }
  }

  private async dispatch(
    context: ToolCallContext,
    turnId: string,
    call: TurnToolCall,
    sentAt: CallerTime,
  ): Promise<Attempted> {
    const permit = call.idempotent ? null : this.deps.permits.open();
    try {
      await this.deps.failpoint('agent.tool.dispatched', context.actor.sessionId);
      const reply = await this.send(context, call, sentAt, permit);
      const { workspace } = context.actor;
      await this.deps.sandbox.results.keep({ workspace, callId: call.callId }, reply, context.signal);
      return afterReply(turnId, call, reply);
    } catch (error) {
      if (error instanceof Stopped && error.reason === 'cancelled') {
        this.cancel(context, call.callId);
        return { outcome: unknownOutcome(turnId, call.callId, { kind: 'tool_running_at_cancel' }) };
      }
      if (!isAppError(error)) throw error;
      return afterError(turnId, call, error, permit);
    } finally {
      permit?.withdraw();
    }
  }

  private async send(
    context: ToolCallContext,
    call: TurnToolCall,
    sentAt: CallerTime,
    permit: CallPermit | null,
  ): Promise<ToolReply> {
    const { workspace, sessionId } = context.actor;
    const { callId, name, input, idempotent, idempotencyKey, timeoutMs, approval } = call;
    const own = context.actor.fold().state.started?.agentId;
    // The sandbox knows the approval rules of configured agents: those of the base apply.
    const agentId = own && ((await this.deps.agents.load(workspace, own))?.base ?? own);
    const payload = {
      workspace,
      sessionId,
      callId,
      epoch: context.epoch(),
      ...(agentId === undefined ? {} : { agentId }),
      sentAt,
      notAfter: sentAt.at + START_WITHIN_MS,
      name,
      input: toStorableJson(input) as typeof input,
      idempotencyKey,
      ...(timeoutMs ? { timeoutMs } : {}),
      ...(permit ? { attemptId: permit.attemptId } : {}),
      ...(context.isRequestCommitted === false ? { onlyWithoutGrants: true as const } : {}),
      ...(approval
        ? { approved: { moduleDigest: approval.moduleDigest, grants: [...approval.grants] } }
        : {}),
    };
    const reply = sendAgainAtStart(
      this.deps.nats,
      (options) => this.deps.sandbox.requests.request(callTool, payload, options),
      { idempotent, signal: context.signal },
    );
    const pending = { workspace, sessionId, callId, mayHaveActed: () => permit?.withdraw() ?? false };
    return detectLostCall(this.deps.sandbox, pending, reply, context.signal);
  }
}
