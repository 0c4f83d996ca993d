import { proxyActivities } from '@temporalio/workflow';

/** Activities that schedules run in the background. Each is safe to repeat, and to skip. */
export interface SweepActivities {
  /** Starts missing Temporal workflows of open runs. Returns the number of open runs. */
  reconcileRuns(): Promise<number>;
  /** Takes over turns whose driver is gone. */
  sweepTurns(): Promise<void>;
  /** Expires overdue reservations in metering. Returns their number. */
  expireReservations(): Promise<number>;
  /** Asks vendors for the usage of calls with an estimated charge. Returns the corrected charges. */
  learnVendorFigures(): Promise<number>;
  /** Finalises ended budget periods in metering. Returns the number of ended reservations. */
  rollBudgetPeriods(): Promise<number>;
  /**
   * Archives the oldest expired event streams to one file. Returns the number of events; 0 when
   * done.
   */
  archiveOldEvents(): Promise<number>;
  /** Deletes expired operational rows. Returns their number. */
  deleteOldRows(): Promise<number>;
}
export type SweepName = keyof SweepActivities;
export interface SweepInput {
  readonly what: SweepName;
}

// The next firing of the schedule is the next retry.
const retry = { initialInterval: '1s', maximumAttempts: 3 } as const;

const activities = proxyActivities<SweepActivities>({ startToCloseTimeout: '30s', retry });
// A file of many events takes minutes; missing heartbeats reveal a dead process.
const { archiveOldEvents } = proxyActivities<Pick<SweepActivities, 'archiveOldEvents'>>({
  startToCloseTimeout: '30m',
  heartbeatTimeout: '10s',
  retry,
});

/** Maximum number of files of one firing; the next firing continues. */
const MAX_FILES = 50;

/** Runs the activity of one schedule firing. */
export async function sweep({ what }: SweepInput): Promise<void> {
  if (what !== 'archiveOldEvents') return void (await activities[what]());
  for (let files = 0; files < MAX_FILES; files++) if ((await archiveOldEvents()) === 0) return;
}
