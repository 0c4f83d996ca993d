import type { SweepInput, SweepName } from '@antiphon/agent-workflows';
import type { ScheduleSpec } from '@antiphon/temporal';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const EVERY: Readonly<Record<SweepName, ScheduleSpec['every']>> = {
  reconcileRuns: MINUTE_MS,
  sweepTurns: MINUTE_MS,
  expireReservations: MINUTE_MS,
  // Soon after midnight UTC, when the day that is over takes no new reservation.
  rollBudgetPeriods: { hour: 0, minute: 1 },
  // What is old is so from midnight on; whenever somebody's machine is up, an hour is not long to wait.
  archiveOldEvents: HOUR_MS,
};
const NAME: Readonly<Record<SweepName, string>> = {
  reconcileRuns: 'reconcile-runs',
  sweepTurns: 'sweep-turns',
  expireReservations: 'expire-reservations',
  rollBudgetPeriods: 'roll-budget-periods',
  archiveOldEvents: 'archive-old-events',
};

/** Ids are fixed, so that whichever process comes first makes a schedule, and no other makes it again.
 * `archives`: whether old events leave at all. */
export const sweepSchedules = (
  taskQueue: string,
  { archives }: { readonly archives: boolean },
): ScheduleSpec[] =>
  (Object.keys(EVERY) as SweepName[])
    .filter((what) => archives || what !== 'archiveOldEvents')
    .map((what) => ({
      scheduleId: `${taskQueue}/${NAME[what]}`,
      workflowType: 'sweep',
      taskQueue,
      input: { what } satisfies SweepInput,
      every: EVERY[what],
    }));
