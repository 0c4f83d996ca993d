import { createToken } from '@antiphon/service-host';

/** Times that control how this process drives sessions, ms. */
export interface DriveTimes {
  /** Life of a lease that is not renewed. */
  readonly leaseMs: number;
  /** Time that an idle session stays with this process. */
  readonly idleMs: number;
  /** Time between two polls for events that other processes appended to our sessions. */
  readonly pollMs: number;
  /** Hard deadline of one model attempt. */
  readonly attemptMs: number;
  /** Time between two sweeps for turns without a driver. */
  readonly sweepMs: number;
  /**
   * Time that running turns have to end when the process stops. A supervisor allows 15 s in all.
   */
  readonly drainMs: number;
}

export const defaultDriveTimes: DriveTimes = {
  leaseMs: 5_000,
  idleMs: 60_000,
  pollMs: 500,
  attemptMs: 600_000,
  sweepMs: 1_000,
  drainMs: 8_000,
};

export const DRIVE_TIMES = createToken<DriveTimes>('DRIVE_TIMES');
