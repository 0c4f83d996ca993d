import { proxyActivities } from '@temporalio/workflow';

/** What schedules have done in the background; each call is safe to repeat, and to miss. */
export interface SweepActivities {
  /** Runs that the log says are open get their Temporal workflow, if they have none. Answers how many were begun. */
  reconcileRuns(): Promise<number>;
  /** Takes over turns whose driver is gone. */
  sweepTurns(): Promise<void>;
  /** Has metering end the reservations whose time is over. Answers how many ended. */
  expireReservations(): Promise<number>;
  /** Has metering bring the day and the month that are over to their final sums. Answers how many reservations ended. */
  rollBudgetPeriods(): Promise<number>;
  /** Lets the oldest event streams leave that retention does not keep, to one file. Answers how many events left; 0: none are left. */
  archiveOldEvents(): Promise<number>;
}
export type SweepName = keyof SweepActivities;
export interface SweepInput {
  readonly what: SweepName;
}

// The next firing of the schedule is the next attempt.
const retry = { initialInterval: '1s', maximumAttempts: 3 } as const;

const activities = proxyActivities<SweepActivities>({ startToCloseTimeout: '30s', retry });
// A file of many events takes its time; a process that dies is noticed by its silence.
const { archiveOldEvents } = proxyActivities<Pick<SweepActivities, 'archiveOldEvents'>>({
  startToCloseTimeout: '30m',
  heartbeatTimeout: '10s',
  retry,
});

/** Of one firing: what is left then is the next one's. */
const MAX_FILES = 50;

/** One firing of a schedule. */
export async function sweep({ what }: SweepInput): Promise<void> {
  if (what !== 'archiveOldEvents') return void (await activities[what]());
  for (let files = 0; files < MAX_FILES; files++) if ((await archiveOldEvents()) === 0) return;
}
