import type {
  ModelAnswer,
  ModelFailure,
  ModelPrompt,
  ModelRequest,
  ModelSink,
  ModelUsage,
  ReportedInput,
} from '@antiphon/providers-domain';
import type { ProviderKind } from '@antiphon/config';
import type { Redact } from '@antiphon/observability';
import { cancelled, timedOut, toModelFailure, withGeneration, withUsage } from './failures.js';

/** Limits of one provider call that have a setting. Times are ms. */
const SETTINGS = {
  connectMs: 'connect_s',
  firstByteMs: 'first_byte_s',
  idleMs: 'between_bytes_s',
  totalMs: 'attempt_s',
} as const;
type TimeLimit = keyof typeof SETTINGS;

/** Limits of one provider call: times in ms, sizes in bytes. */
export interface ProviderLimits {
  /** From the start of the call until the connection is established. */
  readonly connectMs: number;
  /**
   * From the sent request until the first byte of a streamed response. A whole response has
   * `totalMs`.
   */
  readonly firstByteMs: number;
  /** Between two pieces of a response. */
  readonly idleMs: number;
  /** The whole call. Comments and pings do not extend it. */
  readonly totalMs: number;
  /** After the model has finished: the wait for the usage and the end of the stream. */
  readonly afterFinishMs: number;
  /** Size of a response. A longer one fails with `provider_protocol`. */
  readonly maxAnswerBytes: number;
  /** Size of an error's body. The rest is not read. */
  readonly maxErrorBytes: number;
  /** False if a wait for an answer that ended without it is not tried again. */
  readonly retryTimeouts: boolean;
  /** Place of the setting of a limit, such as `provider x`. */
  readonly ownerOf: (limit: TimeLimit) => string;
}

/** Limits that no setting changes. */
export const FIXED_PROVIDER_LIMITS = {
  afterFinishMs: 2_000,
  maxAnswerBytes: 16 * 1024 * 1024,
  maxErrorBytes: 64 * 1024,
};

/** One configured provider. `ModelPort` finds it by its name. */
export interface ProviderAdapter {
  readonly kind: ProviderKind;
  complete(request: ModelRequest, sink: ModelSink): Promise<ModelAnswer>;
  /** Returns the prompt's size in tokens, never fewer than the provider counts. */
  inputBound(prompt: ModelPrompt): number;
  /**
   * Returns the usage of an earlier call as the vendor counted it; null while the vendor does not
   * know it. Absent where the vendor tells none.
   */
  findUsage?(generation: Generation): Promise<ModelUsage | null>;
}

/** A call that a provider made, by the id that the provider gave it. */
export interface Generation {
  readonly id: string;
  readonly provider: string;
  readonly model: string;
  readonly signal: AbortSignal;
}

/** Dependencies of every adapter. */
export interface CallEnvironment {
  readonly limitsOf: (request: Pick<ModelRequest, 'provider' | 'model' | 'agent'>) => ProviderLimits;
  readonly redact: Redact;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

type Phase = 'connecting' | 'waiting' | 'receiving' | 'finishing' | 'over';

/** Limit of a phase, and the event that it waits for. */
const PHASES: Readonly<Record<'connecting' | 'waiting' | 'receiving', readonly [TimeLimit, string]>> = {
  connecting: ['connectMs', 'connection'],
  waiting: ['firstByteMs', 'first_byte'],
  receiving: ['idleMs', 'next_byte'],
};

/**
 * One call to a provider: its timeouts, its cancellation and its first failure. The transport
 * reports progress to it; the adapter reads the result.
 */
export class ProviderCall {
  private phase: Phase = 'connecting';
  private phaseTimer: NodeJS.Timeout | undefined;
  private readonly totalTimer: NodeJS.Timeout;
  private stopListeners: (() => void)[] = [];
  private firstFailure: ModelFailure | null = null;
  private isDispatched = false;

  /** @param signal aborting it fails the call with `cancelled` and closes its connection at once */
  constructor(
    readonly isStreaming: boolean,
    readonly limits: ProviderLimits,
    private readonly signal: AbortSignal,
  ) {
    this.enter('connecting');
    this.totalTimer = setTimeout(this.onTotalTimeout, limits.totalMs);
    if (signal.aborted) this.onAbort();
    else signal.addEventListener('abort', this.onAbort, { once: true });
  }

  /** The first failure; later ones are its consequences. */
  get failure(): ModelFailure | null {
    return this.firstFailure;
  }

  /** True once a byte of the request may have reached the provider. */
  get dispatched(): boolean {
    return this.isDispatched;
  }

  /**
   * True once the model has finished; only the usage and the end of the stream are still expected.
   */
  get isFinishing(): boolean {
    return this.phase === 'finishing';
  }

  get isOver(): boolean {
    return this.phase === 'over';
  }

  /** Reports that the connection is established and the request is being sent. */
  connected(): void {
    this.isDispatched = true;
    this.enter('waiting');
  }

  /** Reports a piece of the response. */
  received(): void {
    if (this.phase === 'receiving') this.phaseTimer?.refresh();
    else if (this.phase === 'waiting') this.enter('receiving');
  }

  /** Reports that the model has finished. */
  finishing(): void {
    if (this.phase !== 'finishing') this.enter('finishing');
  }

  fail(failure: ModelFailure): void {
    if (this.phase === 'over') return;
    this.firstFailure ??= failure;
    this.stop();
  }

  /** Registers a listener for the end of the call: its failure, the last timeout, or `end`. */
  onStop(listener: () => void): void {
    if (this.phase === 'over') listener();
    else this.stopListeners.push(listener);
  }

  /** Clears all timers. A connection that is still in use is closed. */
  end(): void {
    this.signal.removeEventListener('abort', this.onAbort);
    this.stop();
  }

  private enter(phase: Phase): void {
    if (this.phase === 'over') return;
    this.phase = phase;
    clearTimeout(this.phaseTimer);
    if (phase === 'over') return;
    if (phase === 'finishing') {
      this.phaseTimer = setTimeout(() => this.stop(), this.limits.afterFinishMs);
      return;
    }
    // A whole response has no first byte before its end.
    if (phase === 'waiting' && !this.isStreaming) return;
    const [limit, awaited] = PHASES[phase];
    this.phaseTimer = setTimeout(() => this.timeOut(limit, awaited), this.limits[limit]);
  }

  private timeOut(limit: TimeLimit, awaited: string): void {
    const { retryTimeouts, ownerOf } = this.limits;
    const setting = `${SETTINGS[limit]} of ${ownerOf(limit)}`;
    const wait = { awaited, ms: this.limits[limit], setting };
    this.fail(timedOut(wait, this.isDispatched, retryTimeouts || !this.isDispatched));
  }

  private readonly onTotalTimeout = (): void => {
    if (this.phase === 'finishing') this.stop();
    else this.timeOut('totalMs', 'whole_answer');
  };

  private readonly onAbort = (): void => this.fail(cancelled(this.isDispatched));

  private stop(): void {
    clearTimeout(this.phaseTimer);
    clearTimeout(this.totalTimer);
    this.phase = 'over';
    const listeners = this.stopListeners;
    this.stopListeners = [];
    for (const listener of listeners) listener();
  }
}

/** An adapter's part of a call. */
export interface CallSteps {
  readonly complete: (call: ProviderCall) => Promise<ModelAnswer>;
  /** Returns the usage that the provider has reported so far, for a call that breaks. */
  readonly usage: () => ModelAnswer['usage'];
  /** Returns the input that the provider has reported so far, if it reports it ahead of the output. */
  readonly reportedInput?: () => ReportedInput | null;
  /** Returns the id by which the provider tells the usage later. */
  readonly generationId?: () => string | null;
}

/** Runs one call under its timeouts. Every failure is thrown as a `ModelFailure`. */
export const runCall = async (
  request: ModelRequest,
  { limitsOf, redact }: CallEnvironment,
  { complete, usage, reportedInput, generationId }: CallSteps,
): Promise<ModelAnswer> => {
  const call = new ProviderCall(request.streaming, limitsOf(request), request.signal);
  try {
    return await complete(call);
  } catch (error) {
    const failure = withUsage(toModelFailure(error, call, redact), usage(), reportedInput?.() ?? null);
    throw withGeneration(failure, generationId?.() ?? null);
  } finally {
    call.end();
  }
};
