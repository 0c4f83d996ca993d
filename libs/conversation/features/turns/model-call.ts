import { causeOf } from '@antiphon/contracts/causes';
import type { Frame } from '@antiphon/contracts/agent';
import type { ModelAnswer, ModelPort, ModelPrompt } from '@antiphon/providers-domain';
import { DEFAULT_TRIES } from '@antiphon/conversation-domain';
import type { OpenCall, SessionCommand } from '@antiphon/conversation-domain';
import { ModelFailure, classifyFailure } from '@antiphon/providers-domain';
import { abortable, abortableWithGrace, isAppError, isoTime, toAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { recordTurnStage } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { SpeakingAgents } from '@antiphon/agents-features';
import type { Admission, CircuitBreakers } from '@antiphon/providers-features';
import { Stopped, stopReasonOf } from '../sessions/stopped.js';
import type { StopReason } from '../sessions/stopped.js';
import { agentLimitsOf, requestOf } from './agent-limits.js';
import { DeltaStream } from './delta-stream.js';
import { shapeOf, toAnswer, toFailure } from './model-outcome.js';
import type { CallPreparer, PreparedCall } from './prepare-call.js';
import type { GrantedReservation } from './reserve-budget.js';
import { Speech } from './speech.js';
import type { StepContext } from './step-context.js';
import { observeCall } from './turn-telemetry.js';
import type { CallProbe } from './turn-telemetry.js';

export interface ModelCallDeps {
  readonly preparer: CallPreparer;
  readonly models: ModelPort;
  readonly breakers: CircuitBreakers;
  readonly speaking: Pick<SpeakingAgents, 'announce'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Outcome of an attempt, and the minimum delay before the next one that its provider asked for. */
export interface CallResult {
  readonly command: Extract<SessionCommand, { type: 'RecordAnswer' | 'RecordFailure' }>;
  readonly retryAfterMs: number;
}

type Failure = Parameters<typeof toFailure>[1];

/** Time that a provider has after an abort to report its usage, ms. */
const STOP_GRACE_MS = 500;

/**
 * Failure that is recorded for each stop reason. After `lost`, the session's new driver records it.
 */
const STOPPED: Readonly<Record<Exclude<StopReason, 'lost'>, Pick<Failure, 'reason' | 'cause' | 'released'>>> =
  {
    cancelled: { reason: 'cancelled', cause: { kind: 'turn_cancelled' } },
    draining: {
      reason: 'driver_lost',
      cause: { kind: 'driver_stopped' },
      released: true,
    },
    deadline: { reason: 'provider_timeout', cause: { kind: 'provider_timeout' } },
  };

/** Codes of a reservation that cannot be used for the call. */
const OTHER_RESERVATION = new Set(['METERING.RESERVATION_ENDED', 'METERING.RESERVATION_CONFLICT']);

const TOO_LONG = { kind: 'answer_too_long' } as const;

type Reported = Pick<Partial<ModelFailure>, 'usage' | 'reportedInput' | 'generationId'>;

const tooLong = ({ usage, reportedInput, generationId }: Reported, cause?: unknown): ModelFailure =>
  new ModelFailure(
    {
      reason: 'provider_protocol',
      why: TOO_LONG,
      dispatched: true,
      retryable: false,
      ...{ usage, reportedInput, generationId },
    },
    { cause },
  );

/** Runs one started model call: context, budget, circuit breaker, provider. */
class ModelCall {
  /** True once the provider may have received the request. */
  private isDispatched = false;
  /** Output limit of the call, once it is granted. */
  private maxOutputTokens: number | undefined;
  private stream: DeltaStream | null = null;
  /** Permission of the provider's circuit breaker, until the call's outcome is recorded with it. */
  private admission: Admission | null = null;
  /** End of the last measured stage on the monotonic clock, ms. */
  private stageAt = performance.now();
  private hasText = false;
  private readonly speech: Speech;

  constructor(
    private readonly deps: ModelCallDeps,
    private readonly context: StepContext,
    private readonly call: OpenCall,
  ) {
    this.speech = new Speech(deps.clock, (at) => this.announceSpeech(at));
  }

  /** Returns the outcome to record, also of a failure. Throws only `Stopped('lost')`. */
  async run(): Promise<CallResult> {
    try {
      return await this.attempt();
    } catch (error) {
      return this.fail(error);
    }
  }

  private async attempt(): Promise<CallResult> {
    const { context } = this;
    const { prompt, reservation } = await this.prepare();
    this.stageAt = recordTurnStage('reservation_awaited', this.stageAt);
    await context.failpoint('agent.turn.reserved');
    if (!reservation.granted) {
      const { cause } = reservation;
      return this.toResult({ reason: 'budget_refused', cause, dispatched: false, retryable: false });
    }
    const refusal = await this.admit();
    if (refusal) return refusal;
    // Last, because this process may have been suspended while another one took the session over.
    await context.confirmLease();
    context.signal.throwIfAborted();
    this.isDispatched = true;
    return this.callProvider(prompt, reservation);
  }

  /** Returns the call that was prefetched, or prepares it now. */
  private async prepare(): Promise<PreparedCall> {
    const { deps, call } = this;
    const { actor, agent, signal, context, takePrefetched, failpoint } = this.context;
    const { workspace } = actor;
    const onPrompt = (): Promise<void> => failpoint('agent.turn.assembled');
    const prefetched = await abortable(takePrefetched(call), signal);
    if (prefetched) {
      await onPrompt();
      return prefetched;
    }
    const epoch = (): number | null => actor.lease.held()?.epoch ?? null;
    const { state } = actor.fold();
    return deps.preparer.prepare({ workspace, agent, state, call, context, signal, epoch }, onPrompt);
  }

  /**
   * Asks the circuit breaker for permission. Returns the failure if the circuit opened since the
   * call was started.
   */
  private async admit(): Promise<CallResult | null> {
    const { actor, signal } = this.context;
    const key = { workspace: actor.workspace, provider: this.call.provider };
    const admission = await this.deps.breakers.admit(key, signal);
    if (admission.admitted) {
      this.admission = admission;
      return null;
    }
    const { cause } = admission;
    return this.toResult({ reason: 'provider_paused', cause, dispatched: false, retryable: true });
  }

  /**
   * Calls the provider. A failure is a result here, so that the call's span and metrics include it.
   */
  private callProvider(prompt: ModelPrompt, granted: GrantedReservation): Promise<CallResult> {
    const { call, deps, context } = this;
    const { maxOutputTokens } = granted;
    this.maxOutputTokens = maxOutputTokens;
    const kind = deps.models.kindOf(call.provider, context.actor.workspace);
    const observed = { call, maxOutputTokens, kind, agentId: context.agent?.id ?? '' };
    return observeCall(observed, async (probe) => {
      try {
        const answer = await this.complete(prompt, maxOutputTokens, probe);
        return await this.succeed(answer, prompt, granted, probe);
      } catch (error) {
        return this.fail(error);
      }
    });
  }

  private async complete(
    prompt: ModelPrompt,
    maxOutputTokens: number,
    { onFirst }: CallProbe,
  ): Promise<ModelAnswer> {
    const { models } = this.deps;
    const { actor, signal, failpoint } = this.context;
    const overflow = new AbortController();
    const publish = (frames: readonly Frame[]): void => {
      if (!this.hasText) this.stageAt = recordTurnStage('first_text_received', this.stageAt);
      this.hasText = true;
      onFirst();
      actor.sendAhead(frames);
      this.speech.observe(frames);
      void failpoint('agent.turn.streamed');
    };
    const { cursor } = actor.fold();
    const stream = new DeltaStream(cursor, this.call.turnId, publish, () => overflow.abort());
    this.stream = stream;
    const either = AbortSignal.any([signal, overflow.signal]);
    const { workspace } = actor;
    const own = requestOf(this.context.agent);
    const request = { ...prompt, ...own, maxOutputTokens, signal: either, streaming: true, workspace };
    this.stageAt = recordTurnStage('call_sent', this.stageAt);
    const toFailure = (error: unknown): unknown => {
      if (!overflow.signal.aborted) return error;
      return tooLong(error instanceof ModelFailure ? error : {}, error);
    };
    const [answer] = await Promise.all([
      abortableWithGrace(models.complete(request, stream), either, STOP_GRACE_MS),
      failpoint('agent.turn.dispatched'),
    ]).catch((error: unknown) => {
      throw toFailure(error);
    });
    // It may end within the time to report its usage, although a part of its text was dropped.
    if (overflow.signal.aborted) throw tooLong({ ...answer, usage: answer.usage ?? undefined });
    return answer;
  }

  private async succeed(
    answer: ModelAnswer,
    prompt: ModelPrompt,
    granted: GrantedReservation,
    probe: CallProbe,
  ): Promise<CallResult> {
    const { breakers, clock } = this.deps;
    const { actor, failpoint } = this.context;
    const { sessionId } = actor;
    await failpoint('agent.turn.answered');
    this.stageAt = recordTurnStage('answer_received', this.stageAt);
    probe.answeredBy(answer.model);
    const streamed = (this.stream as DeltaStream).end(answer);
    if (this.admission) breakers.recordSuccess(this.admission);
    this.admission = null;
    const { firstTextAt } = this.speech;
    const spoken = firstTextAt === undefined ? streamed : { ...streamed, firstTextAt };
    const prompted = { ...spoken, prompt: shapeOf(prompt) };
    const command = toAnswer(answer, prompted, this.call, granted, sessionId, isoTime(clock));
    return { command, retryAfterMs: 0 };
  }

  private announceSpeech(at: string): void {
    const { agent, actor } = this.context;
    const { turnId, attempt } = this.call;
    const { workspace, sessionId } = actor;
    if (agent) this.deps.speaking.announce({ workspace, agentId: agent.id, sessionId, turnId, attempt, at });
  }

  /**
   * Converts every error of the call to the failure to record, and reports it to the circuit
   * breaker.
   */
  private async fail(error: unknown): Promise<CallResult> {
    await this.reportFailure(error);
    const stopReason = stopReasonOf(this.context.signal);
    if (stopReason === 'lost') throw new Stopped('lost');
    if (error instanceof Stopped && error.reason === 'lost') throw error;
    const isModelFailure = error instanceof ModelFailure;
    if (stopReason) {
      const dispatched = isModelFailure ? error.dispatched : this.isDispatched;
      const { usage, reportedInput, refused, generationId } = isModelFailure
        ? error
        : ({} as Partial<ModelFailure>);
      const reported = { usage, reportedInput, generationId };
      const stopped = { ...STOPPED[stopReason], ...reported, dispatched, refused };
      return this.toResult({ ...stopped, retryable: true });
    }
    if (isModelFailure) return this.toResult({ ...error, cause: error.why }, error.retryAfterMs);
    if (!isAppError(error)) this.deps.logger.error({ err: error }, 'model call failed unexpectedly');
    const known = toAppError(error);
    // The reservation was released before its call reached the log, or is smaller than the prompt:
    // the next attempt has another one.
    const retryable = OTHER_RESERVATION.has(known.code) && !this.isDispatched;
    const dispatched = this.isDispatched;
    return this.toResult({ reason: 'dependency_failed', cause: causeOf(known), dispatched, retryable });
  }

  /** Reports a failed call to the provider's circuit breaker, once. */
  private async reportFailure(error: unknown): Promise<void> {
    const { admission } = this;
    if (!admission) return;
    this.admission = null;
    const { signal } = this.context;
    // A call that was stopped says nothing about its provider, unless it exceeded its deadline.
    const stopClass = stopReasonOf(signal) === 'deadline' ? 'failed' : 'unknown';
    const errorClass = error instanceof ModelFailure ? classifyFailure(error) : 'unknown';
    await this.deps.breakers.recordFailure(admission, signal.aborted ? stopClass : errorClass);
  }

  private toResult(failure: Failure, retryAfterMs = 0): CallResult {
    const now = isoTime(this.deps.clock);
    const { maxOutputTokens } = this;
    const { tries } = this.deps.models.limitsOf(this.call, agentLimitsOf(this.context.agent));
    const recorded = { ...failure, maxOutputTokens, ...(tries === DEFAULT_TRIES ? {} : { tries }) };
    return { command: toFailure(this.call.attempt, recorded, now, this.stream?.end()), retryAfterMs };
  }
}

/** Runs started model calls. */
export class ModelCalls {
  constructor(private readonly deps: ModelCallDeps) {}

  /** Returns the outcome to record, also of a failure. Throws only `Stopped('lost')`. */
  run(context: StepContext, call: OpenCall): Promise<CallResult> {
    return new ModelCall(this.deps, context, call).run();
  }
}
