/** How long and how much one provider call may take. Milliseconds and bytes. */
export interface ProviderLimits {
  /** From the start of the call until a connection stands. */
  readonly connectMs: number;
  /** From the sent request until the first byte of a streamed answer; an answer in one piece has `totalMs`. */
  readonly firstByteMs: number;
  /** Between two pieces of an answer. */
  readonly idleMs: number;
  /** The whole call, whatever trickles in: comments and pings are no progress. */
  readonly totalMs: number;
  /** Once the model has finished, how long the usage and the end of the stream are waited for. */
  readonly afterFinishMs: number;
  /** Of an answer; a longer one breaks off as a protocol failure. */
  readonly maxAnswerBytes: number;
  /** Of an error's body; the rest is not read. */
  readonly maxErrorBytes: number;
}

export const DEFAULT_PROVIDER_LIMITS: ProviderLimits = {
  connectMs: 5_000,
  firstByteMs: 60_000,
  idleMs: 30_000,
  totalMs: 600_000,
  afterFinishMs: 2_000,
  maxAnswerBytes: 16 * 1024 * 1024,
  maxErrorBytes: 64 * 1024,
};
