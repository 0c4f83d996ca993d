/** Tries of one step at one provider, each a model attempt of its own. */
export const MAX_TRIES_PER_PROVIDER = 3;
/** A step whose drivers are lost this often is what kills them; it fails instead of going round for ever. */
export const MAX_LOST_DRIVERS = 5;
/** Turns that may wait behind the open one. */
export const MAX_QUEUED_TURNS = 100;
/** Tool calls of one step; a model that asks for more has not answered sensibly. */
export const MAX_CALLS_PER_STEP = 64;

const BACKOFF_BASE_MS = 500;
/** No wait between tries is longer, whatever a `retry-after` asks for. */
export const MAX_BACKOFF_MS = 60_000;

/**
 * Time to wait before the next try at the same provider, in ms: exponential with jitter (`random` in [0, 1)),
 * at least what the provider asked for, at most a minute.
 */
export const backoffMs = (failures: number, random: number, retryAfterMs = 0): number => {
  const exponential = BACKOFF_BASE_MS * 2 ** Math.max(0, failures - 1);
  return Math.min(MAX_BACKOFF_MS, Math.max(retryAfterMs, exponential * (0.5 + random / 2)));
};
