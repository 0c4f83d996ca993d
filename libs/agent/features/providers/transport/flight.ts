import type { Readable } from 'node:stream';
import type { ModelFailure } from '@antiphon/agent-domain';
import { cancelled, timedOut } from './failure.js';
import type { ProviderLimits } from './limits.js';

/** An answer that was not a 2xx, as far as it was read. */
export interface HttpRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

type Phase = 'connecting' | 'waiting' | 'receiving' | 'finishing' | 'over';

/**
 * One provider call in the air: its clocks, its cancellation, and why it failed. The transport writes it and the
 * adapter reads it, past the vendor's SDK, which would wrap a failure until its kind can no longer be told.
 */
export interface Flight {
  readonly limits: ProviderLimits;
  readonly streaming: boolean;
  /** The first failure; later ones are its consequences. */
  readonly failure: ModelFailure | null;
  /** Whether a byte of the request can have reached the provider. */
  readonly dispatched: boolean;
  /** Set by the transport when the provider answered with something else than a 2xx. */
  refusal: HttpRefusal | null;
  /** Set by the transport: the body of a streamed 2xx, which the adapter reads past the SDK. */
  answer: Readable | null;
  /** True once the model has finished, so that nothing but the usage and the end is still to come. */
  readonly finished: boolean;
  connected(): void;
  /** A piece of the answer came in. */
  received(): void;
  /** The step is whole: the connection may be kept for the next call, and its end is not waited for much longer. */
  finishing(): void;
  fail(failure: ModelFailure): void;
  /** Called once, when the flight fails (`failure` is set) or its answer's end is no longer waited for. */
  onStop(stop: () => void): void;
  /** Ends every clock; what is still open is stopped, unless the model had finished. */
  end(): void;
}

interface FlightState {
  phase: Phase;
  failure: ModelFailure | null;
  dispatched: boolean;
  timer: NodeJS.Timeout | undefined;
  deadline: NodeJS.Timeout | undefined;
  stops: (() => void)[];
}

/** Milliseconds that a phase may last without a sign of life, and what it waits for. */
const patienceOf = (phase: Phase, streaming: boolean, limits: ProviderLimits): [number, string] => {
  if (phase === 'connecting') return [limits.connectMs, 'a connection'];
  if (phase === 'waiting') return [streaming ? limits.firstByteMs : limits.totalMs, 'the first byte'];
  if (phase === 'receiving') return [limits.idleMs, 'the next byte'];
  return [limits.afterFinishMs, 'the end of the answer'];
};

const stopAll = (state: FlightState): void => {
  clearTimeout(state.timer);
  clearTimeout(state.deadline);
  state.phase = 'over';
  for (const stop of state.stops.splice(0)) stop();
};

const enter = (state: FlightState, phase: Phase, streaming: boolean, limits: ProviderLimits): void => {
  if (state.phase === 'over') return;
  state.phase = phase;
  clearTimeout(state.timer);
  const [ms, waitedFor] = patienceOf(phase, streaming, limits);
  state.timer = setTimeout(() => {
    if (phase !== 'finishing') state.failure ??= timedOut(state.dispatched, `${waitedFor}, ${ms} ms`);
    stopAll(state);
  }, ms);
};

/**
 * Starts the clocks of one call.
 *
 * @param signal aborting it fails the flight with `cancelled` and stops the connection at once
 */
export const startFlight = (streaming: boolean, limits: ProviderLimits, signal: AbortSignal): Flight => {
  const state: FlightState = {
    phase: 'connecting',
    failure: null,
    dispatched: false,
    timer: undefined,
    deadline: undefined,
    stops: [],
  };
  const fail = (failure: ModelFailure): void => {
    if (state.phase === 'over') return;
    state.failure ??= failure;
    stopAll(state);
  };
  const abort = (): void => fail(cancelled(state.dispatched));
  enter(state, 'connecting', streaming, limits);
  state.deadline = setTimeout(() => {
    if (state.phase === 'finishing') stopAll(state);
    else fail(timedOut(state.dispatched, `the whole answer, ${limits.totalMs} ms`));
  }, limits.totalMs);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });

  return {
    limits,
    streaming,
    refusal: null,
    answer: null,
    get failure() {
      return state.failure;
    },
    get dispatched() {
      return state.dispatched;
    },
    get finished() {
      return state.phase === 'finishing';
    },
    connected: () => {
      state.dispatched = true;
      enter(state, 'waiting', streaming, limits);
    },
    received: () => {
      if (state.phase === 'receiving') state.timer?.refresh();
      else if (state.phase === 'waiting') enter(state, 'receiving', streaming, limits);
    },
    finishing: () => {
      if (state.phase !== 'finishing') enter(state, 'finishing', streaming, limits);
    },
    fail,
    onStop: (stop) => {
      if (state.phase === 'over') stop();
      else state.stops.push(stop);
    },
    end: () => {
      signal.removeEventListener('abort', abort);
      if (state.phase === 'finishing') state.stops = [];
      stopAll(state);
    },
  };
};
