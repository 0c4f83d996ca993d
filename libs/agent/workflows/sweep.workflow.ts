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
}
export type SweepName = keyof SweepActivities;
export interface SweepInput {
  readonly what: SweepName;
}

const activities = proxyActivities<SweepActivities>({
  startToCloseTimeout: '30s',
  // The next firing of the schedule is the next attempt.
  retry: { initialInterval: '1s', maximumAttempts: 3 },
});

/** One firing of a schedule. */
export async function sweep({ what }: SweepInput): Promise<void> {
  await activities[what]();
}
