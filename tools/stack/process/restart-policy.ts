export interface RestartPolicy {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Having been ready for so long, a process counts as healthy: its next death is a first one again. */
  readonly healthyAfterMs: number;
}

export const DEFAULT_RESTART_POLICY: RestartPolicy = {
  firstDelayMs: 250,
  maxDelayMs: 10_000,
  healthyAfterMs: 2_000,
};

/**
 * How many deaths in a row this one makes. `readyForMs` is null for a process that never became ready.
 */
export const countFailure = (policy: RestartPolicy, before: number, readyForMs: number | null): number =>
  readyForMs !== null && readyForMs >= policy.healthyAfterMs ? 1 : before + 1;

/** The first death is answered at once, since its sessions wait; then the pauses double. */
export const restartDelay = (policy: RestartPolicy, failures: number): number =>
  failures <= 1 ? 0 : Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (failures - 2));
