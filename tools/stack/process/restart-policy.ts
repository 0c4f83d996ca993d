export interface RestartPolicy {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** A process that was ready this long is healthy: its next exit counts as the first. */
  readonly healthyAfterMs: number;
}

export const DEFAULT_RESTART_POLICY: RestartPolicy = {
  firstDelayMs: 250,
  maxDelayMs: 10_000,
  healthyAfterMs: 2_000,
};

/** Counts consecutive failures. `readyForMs` is null for a process that never became ready. */
export const countFailure = (policy: RestartPolicy, before: number, readyForMs: number | null): number =>
  readyForMs !== null && readyForMs >= policy.healthyAfterMs ? 1 : before + 1;

/** Returns the backoff: none after the first exit, because sessions wait, then doubling delays. */
export const restartDelay = (policy: RestartPolicy, failures: number): number =>
  failures <= 1 ? 0 : Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (failures - 2));
