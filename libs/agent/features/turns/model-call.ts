import type { Frame } from '@antiphon/contracts/agent';
import type { ModelAnswer, ModelPrompt, OpenCall, SessionCommand } from '@antiphon/agent-domain';
import { ModelFailure, classifyFailure } from '@antiphon/agent-domain';
import { isAppError, isoTime, toAppError } from '@antiphon/kernel';
import type { Admission, CircuitBreakers } from '../providers/circuit-breaker.js';
import { createDeltaStream } from './delta-stream.js';
import type { DeltaStream, Streamed } from './delta-stream.js';
import { toAnswer, toFailure } from './model-outcome.js';
import type { GrantedReservation } from './reserve-budget.js';
import { observeCall } from './turn-telemetry.js';
import { prepareModelCall } from './prepare-call.js';
import type { PreparedCall, PrepareDeps } from './prepare-call.js';
import { Stopped, orAbandoned, throwIfStopped, unlessStopped } from './stop.js';
import type { StopReason } from './stop.js';
import type { Failpoint, StepContext } from './step-context.js';

export interface ModelCallDeps extends PrepareDeps {
  readonly breakers: CircuitBreakers;
  readonly failpoint: Failpoint;
}

/** How an attempt ended, and how long its provider wants to be left alone. */
export interface CallResult {
  readonly command: Extract<SessionCommand, { type: 'RecordAnswer' | 'RecordFailure' }>;
  readonly retryAfterMs: number;
}

/** Made ready while its start was being committed, or now. */
const readyFor = async (work: StepContext, call: OpenCall): Promise<PreparedCall> => {
  const { services, actor, agent, signal, context } = work;
  const { workspace, sessionId } = actor;
  const onPrompt = (): Promise<void> => services.failpoint('agent.turn.assembled', sessionId);
  const ahead = await unlessStopped(work.readyAhead(call), signal);
  if (ahead) {
    await onPrompt();
    return ahead;
  }
  const epoch = (): number | null => actor.lease.held()?.epoch ?? null;
  const { state } = actor.fold();
  return prepareModelCall({ services, workspace, agent, state, call, context, signal, epoch }, onPrompt);
};

/** A provider that is told to stop says within this what it has used, or nobody waits for it. */
const STOP_GRACE_MS = 500;

/** What stopping an attempt is recorded as; `lost` is recorded by whoever has the session now. */
const STOPPED: Readonly<
  Record<
    Exclude<StopReason, 'lost'>,
    { reason: 'cancelled' | 'driver_lost' | 'provider_timeout'; message: string }
  >
> = {
  cancelled: { reason: 'cancelled', message: 'the turn was cancelled' },
  draining: { reason: 'driver_lost', message: 'the process that drove this turn was stopped' },
  deadline: { reason: 'provider_timeout', message: 'provider timeout' },
};

interface Attempt {
  readonly work: StepContext;
  readonly call: OpenCall;
  /** Whether the provider may have seen the request. */
  dispatched: boolean;
  stream: DeltaStream | null;
  /** Of the provider's circuit breaker, until that has been told how the call went. */
  admission: Admission | null;
}

const failureOf = (attempt: Attempt, error: unknown): CallResult => {
  const { work, call } = attempt;
  if (error instanceof Stopped && error.reason === 'lost') throw error;
  const now = isoTime(work.services.clock);
  const streamed: Streamed | undefined = attempt.stream?.end();
  const result = (failure: Parameters<typeof toFailure>[1], retryAfterMs = 0): CallResult => ({
    command: toFailure(call.attempt, failure, now, streamed),
    retryAfterMs,
  });
  if (work.signal.aborted) {
    const why = work.signal.reason as StopReason;
    if (why === 'lost') throw new Stopped(why);
    const known = error instanceof ModelFailure ? error : { dispatched: attempt.dispatched };
    const usage = error instanceof ModelFailure && error.usage ? { usage: error.usage } : {};
    return result({ ...STOPPED[why], dispatched: known.dispatched, retryable: true, ...usage });
  }
  if (error instanceof ModelFailure) return result(error, error.retryAfterMs);
  if (!isAppError(error)) work.services.logger.error({ err: error }, 'a model call failed unexpectedly');
  const { code, message } = toAppError(error);
  // It was given back, and then its call turned out to be in the log: the next try has a reservation of its own.
  const retryable = code === 'METERING.RESERVATION_ENDED' && !attempt.dispatched;
  return result({ reason: 'dependency_failed', message, dispatched: attempt.dispatched, retryable });
};

const overflowed = (cause: unknown): ModelFailure => {
  const message = 'the answer is longer than can be kept';
  return new ModelFailure(
    { reason: 'provider_protocol', message, dispatched: true, retryable: false },
    { cause },
  );
};

const ask = async (
  attempt: Attempt,
  prompt: ModelPrompt,
  maxOutputTokens: number,
  onFirst: () => void,
): Promise<ModelAnswer> => {
  const { services, actor, signal } = attempt.work;
  const overflow = new AbortController();
  const { turnId } = attempt.call;
  const publish = (frames: readonly Frame[]): void => {
    onFirst();
    actor.sendAhead(frames);
    void services.failpoint('agent.turn.streamed', actor.sessionId);
  };
  const stream = createDeltaStream(actor.fold().cursor, turnId, publish, () => overflow.abort());
  attempt.stream = stream;
  const either = AbortSignal.any([signal, overflow.signal]);
  const request = { ...prompt, maxOutputTokens, signal: either, streaming: true };
  try {
    const [answer] = await Promise.all([
      orAbandoned(services.models.complete(request, stream), either, STOP_GRACE_MS),
      services.failpoint('agent.turn.dispatched', actor.sessionId),
    ]);
    return answer;
  } catch (error) {
    throw overflow.signal.aborted ? overflowed(error) : error;
  }
};

/** Tells the provider's circuit breaker, once, how the call went that it had given leave for. */
const tellBreaker = async (attempt: Attempt, error: unknown): Promise<void> => {
  const { admission, work } = attempt;
  if (!admission) return;
  attempt.admission = null;
  const { signal, services } = work;
  const judged = error instanceof ModelFailure ? classifyFailure(error) : 'unknown';
  // A call that we stopped says nothing about its provider, unless it had all the time that there is.
  const own = signal.aborted && (signal.reason as StopReason) === 'deadline' ? 'failed' : 'unknown';
  await services.breakers.recordFailure(admission, signal.aborted ? own : judged);
};

/** Asks the provider's circuit breaker for leave; answers the attempt's end where that says no, though it did not when the call began. */
const admitted = async (attempt: Attempt): Promise<CallResult | null> => {
  const { work, call } = attempt;
  const { services, actor, signal } = work;
  const admission = await services.breakers.admit(
    { workspace: actor.workspace, provider: call.provider },
    signal,
  );
  if (admission.admitted) {
    attempt.admission = admission;
    return null;
  }
  const { message } = admission;
  const paused = { reason: 'provider_paused' as const, message, dispatched: false, retryable: true };
  return { command: toFailure(call.attempt, paused, isoTime(services.clock)), retryAfterMs: 0 };
};

const attemptCall = async (attempt: Attempt): Promise<CallResult> => {
  const { work, call } = attempt;
  const { services, actor } = work;
  const { failpoint, clock } = services;
  const { prompt, reservation } = await readyFor(work, call);
  await failpoint('agent.turn.reserved', actor.sessionId);
  if (!reservation.granted) {
    const { message } = reservation;
    const refusal = { reason: 'budget_refused' as const, message, dispatched: false, retryable: false };
    return { command: toFailure(call.attempt, refusal, isoTime(clock)), retryAfterMs: 0 };
  }
  const refused = await admitted(attempt);
  if (refused) return refused;
  // Last: what has waited since may have slept while another process took the session over.
  await work.confirm();
  throwIfStopped(work.signal);
  attempt.dispatched = true;
  return callProvider(attempt, prompt, reservation);
};

/** Asks the provider; whatever comes of it is a result here, so that the call's span and measurements say it. */
const callProvider = (
  attempt: Attempt,
  prompt: ModelPrompt,
  granted: GrantedReservation,
): Promise<CallResult> => {
  const { work, call } = attempt;
  const { services, actor, agent } = work;
  const { maxOutputTokens } = granted;
  const observed = {
    call,
    maxOutputTokens,
    kind: services.models.kindOf(call.provider),
    agentId: agent?.id ?? '',
  };
  return observeCall(observed, async ({ onFirst, answeredBy }) => {
    try {
      const answer = await ask(attempt, prompt, maxOutputTokens, onFirst);
      await services.failpoint('agent.turn.answered', actor.sessionId);
      answeredBy(answer.model);
      const streamed = (attempt.stream as DeltaStream).end(answer);
      if (attempt.admission) services.breakers.recordSuccess(attempt.admission);
      attempt.admission = null;
      const now = isoTime(services.clock);
      return { command: toAnswer(answer, streamed, call, granted, actor.sessionId, now), retryAfterMs: 0 };
    } catch (error) {
      await tellBreaker(attempt, error);
      return failureOf(attempt, error);
    }
  });
};

/**
 * Carries out one started model call: context, budget, provider. Answers what is to be recorded of it, whatever
 * happened; throws `Stopped('lost')` alone, when the session is another process's by now.
 */
export const callModel = async (work: StepContext, call: OpenCall): Promise<CallResult> => {
  const attempt: Attempt = { work, call, dispatched: false, stream: null, admission: null };
  try {
    return await attemptCall(attempt);
  } catch (error) {
    await tellBreaker(attempt, error);
    return failureOf(attempt, error);
  }
};
