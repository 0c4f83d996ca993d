import { TOOL_CANCEL_SUBJECT, callTool } from '@antiphon/contracts/sandbox';
import type { ToolCancel, ToolReply } from '@antiphon/contracts/sandbox';
import { clipText, retryPolicyOf, retryDelay } from '@antiphon/agent-domain';
import type { DeferralReason, ToolDeferral, ToolOutcome, TurnToolCall } from '@antiphon/agent-domain';
import { isAppError, isoTime, toStorable, toStorableJson } from '@antiphon/kernel';
import type { AppError, Clock } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import { detectLostCall } from './lost-call.js';
import type { LostCallDeps } from './lost-call.js';
import { Stopped, throwIfStopped } from './stop.js';
import type { Failpoint, StepContext } from './step-context.js';

/** An event holds 1 MiB of JSON. */
const MAX_CONTENT_BYTES = 900_000;

const storableContent = (content: string): string => {
  const storable = toStorable(content);
  const bytes = Buffer.byteLength(JSON.stringify(storable));
  if (bytes <= MAX_CONTENT_BYTES) return storable;
  return clipText(storable, Math.floor((storable.length * MAX_CONTENT_BYTES) / bytes));
};

const toOutcome = (turnId: string, callId: string, reply: ToolReply): ToolOutcome => {
  if (reply.outcome === 'failed') return failed(turnId, callId, reply.code, reply.message);
  const { content, isError, moduleDigest, durationMs } = reply;
  return {
    type: 'ToolCallCompleted',
    data: { turnId, callId, content: storableContent(content), isError, moduleDigest, durationMs },
  };
};

const failed = (turnId: string, callId: string, code: string, message: string): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code, message: storableContent(message) },
});

/** Nobody can know whether the tool acted. */
export const unknownOutcome = (turnId: string, callId: string, why: string): ToolOutcome => ({
  type: 'ToolCallUnknown',
  data: { turnId, callId, message: `${why}; whether the tool acted is unknown, and it was not run again` },
});

const codeOf = (error: unknown): string => (isAppError(error) ? error.code : '');
const isGone = (error: unknown): boolean => codeOf(error) === 'MESSAGING.NO_RESPONDERS';

export interface ToolCallDeps extends LostCallDeps {
  readonly nats: NatsLink;
  readonly clock: Clock;
  /** In [0, 1): jitter. */
  readonly random: () => number;
  readonly failpoint: Failpoint;
}

/** What a try needs: of its driver, or of whoever tries again. */
export interface ToolCallContext extends Pick<StepContext, 'actor' | 'signal' | 'confirm'> {
  readonly services: ToolCallDeps;
  /** Of the session's lease: the sandbox refuses one that is lower than it has seen. */
  readonly epoch: () => number;
}

/** For the calls that a driver makes itself. */
export const asToolCallContext = (work: StepContext): ToolCallContext => ({
  ...work,
  epoch: () => work.actor.lease.held()?.epoch ?? 0,
});

const send = async (work: ToolCallContext, call: TurnToolCall): Promise<ToolReply> => {
  const { services, actor, signal } = work;
  const { callId, name, input, idempotencyKey, timeoutMs, approval } = call;
  const epoch = work.epoch();
  const { workspace, sessionId } = actor;
  const payload = {
    workspace,
    sessionId,
    callId,
    epoch,
    name,
    input: toStorableJson(input) as typeof input,
    idempotencyKey,
    ...(timeoutMs ? { timeoutMs } : {}),
    ...(approval ? { approved: { moduleDigest: approval.moduleDigest, grants: [...approval.grants] } } : {}),
  };
  const reply = services.requests.request(callTool, payload);
  return detectLostCall(services, { workspace, sessionId, callId }, reply, signal);
};

/** Every sandbox process hears it; the one that runs the call ends it. */
export const cancelSent = (
  { services, actor }: Pick<ToolCallContext, 'services' | 'actor'>,
  callId: string,
): void => {
  const { workspace, sessionId } = actor;
  if (!services.nats.isConnected()) return;
  const message: ToolCancel = { workspace, sessionId, callId, epoch: actor.lease.held()?.epoch ?? 0 };
  services.nats.connection.publish(TOOL_CANCEL_SUBJECT, JSON.stringify(message));
};

/** Records that a call's tool may have been reached from now on. */
export type Claim = (callId: string) => Promise<void>;

/** How a try ended: with the call's outcome, or so that there may be another one, else with that outcome. */
type Tried =
  { readonly outcome: ToolOutcome } | { readonly again: DeferralReason; readonly otherwise: ToolOutcome };

const lostAnswer = (turnId: string, { callId, idempotent }: TurnToolCall, why: string): Tried =>
  idempotent
    ? { again: 'lost', otherwise: unknownOutcome(turnId, callId, 'the answer of the tool was lost') }
    : { outcome: unknownOutcome(turnId, callId, why) };

const unsent = (turnId: string, { callId }: TurnToolCall): Tried => {
  const message = 'the sandbox could not be reached; the tool was not run';
  return { again: 'unsent', otherwise: failed(turnId, callId, 'TOOL.UNAVAILABLE', message) };
};

const afterError = (turnId: string, call: TurnToolCall, error: AppError): Tried => {
  if (isGone(error)) return unsent(turnId, call);
  if (error.kind === 'transient' || error.kind === 'bug') return lostAnswer(turnId, call, error.message);
  if (error.code === 'SANDBOX.FENCED') throw new Stopped('lost');
  return { outcome: failed(turnId, call.callId, error.code, error.message) };
};

const afterReply = (turnId: string, call: TurnToolCall, reply: ToolReply): Tried => {
  const code = reply.outcome === 'failed' ? reply.code : '';
  if (code === 'TOOL.UNAVAILABLE') return unsent(turnId, call);
  const outcome = toOutcome(turnId, call.callId, reply);
  return code === 'TOOL.TIMEOUT' && call.idempotent && retryPolicyOf(call).onTimeout
    ? { again: 'timed_out', otherwise: outcome }
    : { outcome };
};

const isClaimed = ({ actor }: ToolCallContext, callId: string): boolean =>
  actor
    .fold()
    .state.open?.steps.some(({ calls }) => calls.some((call) => call.callId === callId && call.claimed)) ??
  false;

/** Throws `Stopped` when a cancel came first. */
const claimFirst = async (
  work: ToolCallContext,
  { callId, idempotent }: TurnToolCall,
  claim: Claim,
): Promise<void> => {
  if (idempotent || isClaimed(work, callId)) return;
  await claim(callId);
  if (!isClaimed(work, callId)) throw new Stopped('cancelled');
};

const cancelledBefore = (turnId: string, callId: string): ToolOutcome =>
  failed(turnId, callId, 'TOOL.CANCELLED', 'the turn was cancelled before the tool ran');

const trySending = async (work: ToolCallContext, turnId: string, call: TurnToolCall): Promise<Tried> => {
  try {
    await work.services.failpoint('agent.tool.dispatched', work.actor.sessionId);
    return afterReply(turnId, call, await send(work, call));
  } catch (error) {
    if (error instanceof Stopped && error.reason === 'cancelled') {
      cancelSent(work, call.callId);
      return { outcome: unknownOutcome(turnId, call.callId, 'the turn was cancelled while the tool ran') };
    }
    if (!isAppError(error)) throw error;
    return afterError(turnId, call, error);
  }
};

const makeTry = async (
  work: ToolCallContext,
  turnId: string,
  call: TurnToolCall,
  claim: Claim,
): Promise<Tried> => {
  const { services, actor, signal } = work;
  try {
    throwIfStopped(signal);
    // Nothing can be sent, so nothing is lost.
    if (!services.nats.isConnected()) return unsent(turnId, call);
    await claimFirst(work, call, claim);
    await services.failpoint('agent.tool.claimed', actor.sessionId);
    await work.confirm();
    throwIfStopped(signal);
  } catch (error) {
    if (!(error instanceof Stopped) || error.reason !== 'cancelled') throw error;
    return { outcome: cancelledBefore(turnId, call.callId) };
  }
  return trySending(work, turnId, call);
};

const deferral = (
  { clock }: Pick<ToolCallDeps, 'clock'>,
  turnId: string,
  { callId }: TurnToolCall,
  reason: DeferralReason,
  waitMs: number,
): ToolDeferral => {
  const deferredAt = clock.now();
  const at = (now: number): string => isoTime({ now: () => now });
  return {
    type: 'ToolCallDeferred',
    data: { turnId, callId, reason, deferredAt: at(deferredAt), dueAt: at(deferredAt + waitMs) },
  };
};

/**
 * Makes one try of a tool call, claimed in the log first unless the tool is idempotent, and answers its outcome; or that
 * there is to be another try, if the tool was certainly not reached or its policy allows one. Throws `Stopped` when the
 * session is another's or this process ends: the outcome is not ours then.
 */
export const makeToolCall = async (
  work: ToolCallContext,
  turnId: string,
  call: TurnToolCall,
  claim: Claim,
): Promise<ToolOutcome | ToolDeferral> => {
  const { clock, random } = work.services;
  // Claimed before it came here: whoever did so learned no outcome.
  if (call.claimed) return unknownOutcome(turnId, call.callId, 'the answer of the tool was lost');
  const tried = await makeTry(work, turnId, call, claim);
  if ('outcome' in tried) return tried.outcome;
  const waitedMs = call.deferred ? clock.now() - Date.parse(call.deferred.since) : 0;
  const waitMs = retryDelay(call, { reason: tried.again, waitedMs, random: random() });
  return waitMs === null
    ? tried.otherwise
    : deferral(work.services, turnId, call, tried.again, Math.round(waitMs));
};
