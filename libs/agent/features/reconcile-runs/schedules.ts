import type { SweepInput, SweepName } from '@antiphon/agent-workflows';
import type { ScheduleSpec } from '@antiphon/temporal';

const MINUTE_MS = 60_000;

const EVERY: Readonly<Record<SweepName, ScheduleSpec['every']>> = {
  reconcileRuns: MINUTE_MS,
  sweepTurns: MINUTE_MS,
  expireReservations: MINUTE_MS,
  // Soon after midnight UTC, when the day that is over takes no new reservation.
  rollBudgetPeriods: { hour: 0, minute: 1 },
};
const NAME: Readonly<Record<SweepName, string>> = {
  reconcileRuns: 'reconcile-runs',
  sweepTurns: 'sweep-turns',
  expireReservations: 'expire-reservations',
  rollBudgetPeriods: 'roll-budget-periods',
};

/** Ids are fixed, so that whichever process comes first makes a schedule, and no other makes it again. */
export const sweepSchedules = (taskQueue: string): ScheduleSpec[] =>
  (Object.keys(EVERY) as SweepName[]).map((what) => ({
    scheduleId: `${taskQueue}/${NAME[what]}`,
    workflowType: 'sweep',
    taskQueue,
    input: { what } satisfies SweepInput,
    every: EVERY[what],
  }));
