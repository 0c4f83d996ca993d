import { TOOL_CANCEL_SUBJECT, callTool } from '@antiphon/contracts/sandbox';
import type { ToolCancel } from '@antiphon/contracts/sandbox';
import type { z } from 'zod';
import { backoffMs, clipText } from '@antiphon/agent-domain';
import type { ToolOutcome, TurnToolCall } from '@antiphon/agent-domain';
import { isAppError, toStorable, toStorableJson } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import { Stopped, throwIfStopped, unlessStopped, waitFor } from './stop.js';
import type { Work } from './work.js';

type Reply = z.output<typeof callTool.reply>;

/** Sendings of one call at most, and the wait before a repeat, in ms. */
const MAX_SENDINGS = 3;
/** How long a call waits for a sandbox that is not there. */
const PATIENCE_MS = 30_000;
/** An event holds 1 MiB of JSON. */
const MAX_CONTENT_BYTES = 900_000;

const storableContent = (content: string): string => {
  const storable = toStorable(content);
  const bytes = Buffer.byteLength(JSON.stringify(storable));
  if (bytes <= MAX_CONTENT_BYTES) return storable;
  return clipText(storable, Math.floor((storable.length * MAX_CONTENT_BYTES) / bytes));
};

const toOutcome = (turnId: string, callId: string, reply: Reply): ToolOutcome => {
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

const send = async (work: Work, call: TurnToolCall): Promise<Reply> => {
  const { services, lane, signal } = work;
  const { callId, name, input, idempotencyKey, approval } = call;
  const epoch = lane.lease.held()?.epoch ?? 0;
  const { workspace, sessionId } = lane;
  const payload = {
    workspace,
    sessionId,
    callId,
    epoch,
    name,
    input: toStorableJson(input) as typeof input,
    idempotencyKey,
    ...(approval ? { approved: { moduleDigest: approval.moduleDigest, grants: [...approval.grants] } } : {}),
  };
  const reply = services.requests.request(callTool, payload);
  let unwatch: () => void = () => undefined;
  // What was on its way to a process that has died is answered by nobody.
  const gone = new Promise<never>((_, reject) => (unwatch = services.sandbox.onGone(reject)));
  try {
    return await unlessStopped(Promise.race([reply, gone]), signal);
  } finally {
    unwatch();
    reply.catch(() => undefined);
  }
};

/** Every sandbox process hears it; the one that runs the call ends it. */
const cancelSent = ({ services, lane }: Work, callId: string): void => {
  const { workspace, sessionId } = lane;
  if (!services.nats.isConnected()) return;
  const message: ToolCancel = { workspace, sessionId, callId, epoch: lane.lease.held()?.epoch ?? 0 };
  services.nats.connection.publish(TOOL_CANCEL_SUBJECT, JSON.stringify(message));
};

/** Records that a call's tool may have been reached from now on. */
export type Claim = (callId: string) => Promise<void>;

/** What a lost answer means: another sending with the same key where the tool allows it, else the end of knowledge. */
type Next = { readonly again: 'unsent' | 'lost' } | { readonly outcome: ToolOutcome };

const afterError = (turnId: string, call: TurnToolCall, error: AppError): Next => {
  const { callId, idempotent } = call;
  if (isGone(error)) return { again: 'unsent' };
  if (error.kind === 'transient' || error.kind === 'bug')
    return idempotent ? { again: 'lost' } : { outcome: unknownOutcome(turnId, callId, error.message) };
  if (error.code === 'SANDBOX.FENCED') throw new Stopped('lost');
  return { outcome: failed(turnId, callId, error.code, error.message) };
};

const isClaimed = ({ lane }: Work, callId: string): boolean =>
  lane
    .fold()
    .state.open?.steps.some(({ calls }) => calls.some((call) => call.callId === callId && call.claimed)) ??
  false;

/** Throws `Stopped` when a cancel came first. */
const claimFirst = async (work: Work, { callId, idempotent }: TurnToolCall, claim: Claim): Promise<void> => {
  if (idempotent || isClaimed(work, callId)) return;
  await claim(callId);
  if (!isClaimed(work, callId)) throw new Stopped('cancelled');
};

const trySending = async (work: Work, turnId: string, call: TurnToolCall, claim: Claim): Promise<Next> => {
  const { services, lane } = work;
  // Nothing can be sent, so nothing is lost.
  if (!services.nats.isConnected()) return { again: 'unsent' };
  await claimFirst(work, call, claim);
  await services.failpoint('agent.tool.claimed', lane.sessionId);
  await work.confirm();
  throwIfStopped(work.signal);
  try {
    await services.failpoint('agent.tool.dispatched', lane.sessionId);
    const reply = await send(work, call);
    if (reply.outcome === 'failed' && reply.code === 'TOOL.UNAVAILABLE') return { again: 'unsent' };
    return { outcome: toOutcome(turnId, call.callId, reply) };
  } catch (error) {
    if (error instanceof Stopped && error.reason === 'cancelled') {
      cancelSent(work, call.callId);
      return { outcome: unknownOutcome(turnId, call.callId, 'the turn was cancelled while the tool ran') };
    }
    if (!isAppError(error)) throw error;
    return afterError(turnId, call, error);
  }
};

const unavailable = (turnId: string, callId: string): ToolOutcome =>
  failed(turnId, callId, 'TOOL.UNAVAILABLE', 'the sandbox could not be reached; the tool was not run');

/**
 * Makes one tool call and answers its outcome. What provably reached no tool is sent again until the sandbox is
 * there, for half a minute; what may have been run is sent again, with the same key, only if the tool declares
 * that this is safe, and is claimed in the log first if not. Throws `Stopped` when the session is another's or this process ends: the outcome is not ours then.
 */
export const makeToolCall = async (
  work: Work,
  turnId: string,
  call: TurnToolCall,
  claim: Claim,
): Promise<ToolOutcome> => {
  // Claimed before it came here: whoever did so learned no outcome.
  if (call.claimed) return unknownOutcome(turnId, call.callId, 'the answer of the tool was lost');
  const patientUntil = performance.now() + PATIENCE_MS;
  let sendings = 0;
  try {
    for (let round = 1; ; round++) {
      const next = await trySending(work, turnId, call, claim);
      if ('outcome' in next) return next.outcome;
      if (next.again === 'lost' && ++sendings >= MAX_SENDINGS)
        return unknownOutcome(turnId, call.callId, 'the answer of the tool was lost');
      if (performance.now() > patientUntil) return unavailable(turnId, call.callId);
      await waitFor(Math.min(1_000, backoffMs(round, work.services.random()) / 4), work.signal);
    }
  } catch (error) {
    if (!(error instanceof Stopped) || error.reason !== 'cancelled') throw error;
    return failed(turnId, call.callId, 'TOOL.CANCELLED', 'the turn was cancelled before the tool ran');
  }
};
