import { bool, int } from './key-hints.js';

/** Longest wait that a limit may allow, s: a reservation lives for two of them and a day at most. */
export const MAX_WAIT_S = 21_600;

const wait = (what: string, key: string, example: number, max = MAX_WAIT_S) =>
  int(1, max, `seconds that a model call waits for ${what}`, `${key} = ${example}`).optional();

/**
 * Keys of the limits of a model call, in `[[providers]]` and in `[[agents]]`. An absent key gets
 * its default by kind, address and model (call-limits.ts).
 */
export const callLimitKeys = {
  connect_s: wait('a connection', 'connect_s', 10, 600),
  first_byte_s: wait('the first byte of its answer', 'first_byte_s', 60),
  between_bytes_s: wait('the next byte of its answer', 'between_bytes_s', 60),
  attempt_s: wait('its whole answer, and as long for a free place before', 'attempt_s', 600),
  tries: int(1, 10, 'tries of a model call at a provider', 'tries = 3').optional(),
  retry_timeouts: bool(
    'whether a model call is tried again after one of these waits',
    'retry_timeouts = true',
  ).optional(),
  max_output_tokens: int(
    1,
    1_000_000,
    'maximum number of tokens of an answer',
    'max_output_tokens = 16384',
  ).optional(),
  concurrent_calls: int(
    1,
    10_000,
    'model calls at the same time in one process, where others wait for a free place',
    'concurrent_calls = 4',
  ).optional(),
};
