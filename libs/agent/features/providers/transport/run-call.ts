import { ModelFailure, type ModelAnswer, type ModelRequest } from '@antiphon/agent-domain';
import { codesOf, messageOf, readErrorBody, tidy } from './error-body.js';
import { brokenAnswer, refused, withUsage } from './failure.js';
import { startFlight, type Flight, type HttpRefusal } from './flight.js';
import type { ProviderLimits } from './limits.js';
import type { Redact } from './redact.js';
import { retryAfterMs } from './retry-after.js';

/** What every adapter over HTTP is given. */
export interface CallEnvironment {
  readonly limits: ProviderLimits;
  readonly redact: Redact;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** The vendors' words for what no second try can change, whatever the status says. */
const FINAL_CODES = new Set(['insufficient_quota', 'billing_hard_limit_reached', 'invalid_api_key']);
/** In-stream errors have no status; these are the vendors' words for what a second try may change. */
const PASSING_CODES =
  /overloaded|rate_limit|api_error|server_error|timeout|unavailable|internal|^(?:408|409|425|429|5\d\d)$/;

const isPassingStatus = (status: number): boolean =>
  status >= 500 || status === 408 || status === 409 || status === 425 || status === 429;

const retryableRefusal = (refusal: HttpRefusal, codes: readonly string[]): boolean => {
  const said = refusal.headers['x-should-retry'];
  if (said === 'true' || said === 'false') return said === 'true';
  return isPassingStatus(refusal.status) && !codes.some((code) => FINAL_CODES.has(code));
};

const refusalMessage = (refusal: HttpRefusal, message: string | undefined): string => {
  if (refusal.status >= 300 && refusal.status < 400)
    return `provider error ${refusal.status}: a redirect, which is not followed; set base_url to the final address`;
  return `provider error ${refusal.status}${message === undefined ? '' : `: ${message}`}`;
};

/** The provider's error answer as a failure: its own message, without secrets, bounded. */
export const refusalFailure = (refusal: HttpRefusal, { redact, now }: CallEnvironment): ModelFailure => {
  const { message, codes } = readErrorBody(refusal.body);
  const wait = retryAfterMs(refusal.headers, now());
  return refused(tidy(redact(refusalMessage(refusal, message))), {
    status: refusal.status,
    retryable: retryableRefusal(refusal, codes),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  });
};

/** An error that came as an event of a stream that had begun with 200. */
export const streamedFailure = (body: unknown, { redact }: CallEnvironment): ModelFailure => {
  const codes = codesOf(body);
  const message = messageOf(body) ?? 'without a message';
  const status = codes.map(Number).find((code) => code >= 400 && code <= 599);
  return refused(tidy(redact(`provider error in the stream: ${message}`)), {
    retryable: codes.length === 0 || codes.some((code) => PASSING_CODES.test(code)),
    ...(status === undefined ? {} : { status }),
  });
};

/** Both SDKs throw an APIError without a status for an error event; its `error` is the event's body. */
const streamedErrorOf = (error: unknown): unknown =>
  error instanceof Error && 'error' in error && error.error !== undefined && error.error !== null
    ? error.error
    : undefined;

const toFailure = (error: unknown, flight: Flight, environment: CallEnvironment): ModelFailure => {
  if (flight.failure?.reason === 'cancelled') return flight.failure;
  if (flight.refusal !== null) return refusalFailure(flight.refusal, environment);
  if (flight.failure !== null) return flight.failure;
  if (error instanceof ModelFailure) return error;
  const streamed = streamedErrorOf(error);
  if (streamed !== undefined) return streamedFailure(streamed, environment);
  if (error instanceof SyntaxError)
    return brokenAnswer("the provider's answer is not valid JSON", { cause: new Error(error.name) });
  return brokenAnswer("the provider's answer could not be read", {
    dispatched: flight.dispatched,
    retryable: false,
    // An SDK's own error may quote a header; only its redacted text may travel on.
    cause: new Error(
      error instanceof Error ? tidy(environment.redact(`${error.name}: ${error.message}`)) : 'unknown',
    ),
  });
};

/** What an adapter knows while its call runs. */
export interface RunningCall {
  /** Done before the clocks start: what the process needs once, such as loading the vendor's SDK. */
  readonly prepare?: () => Promise<unknown>;
  readonly answer: (flight: Flight) => Promise<ModelAnswer>;
  /** What the provider has said of its usage, should the call break. */
  readonly usage: () => ModelAnswer['usage'];
}

const prepare = async ({ prepare: ready }: RunningCall): Promise<void> => {
  try {
    await ready?.();
  } catch (cause) {
    throw brokenAnswer("the provider's SDK could not be loaded", {
      dispatched: false,
      retryable: false,
      cause,
    });
  }
};

/** Runs one call under its clocks; every failure leaves as a ModelFailure, and the connection is let go. */
export const runCall = async (
  request: ModelRequest,
  environment: CallEnvironment,
  call: RunningCall,
): Promise<ModelAnswer> => {
  await prepare(call);
  const flight = startFlight(request.streaming, environment.limits, request.signal);
  try {
    return await call.answer(flight);
  } catch (error) {
    throw withUsage(toFailure(error, flight, environment), call.usage());
  } finally {
    flight.end();
  }
};
