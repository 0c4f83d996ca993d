import type { TemporalLink } from './temporal-link.js';

/** A Temporal workflow that is begun again and again; one firing at a time. */
export interface ScheduleSpec {
  readonly scheduleId: string;
  readonly workflowType: string;
  readonly taskQueue: string;
  readonly input: unknown;
  /** Every so often, in ms, or at a time of day (UTC). */
  readonly every: number | { readonly hour: number; readonly minute: number };
}

const MISSED_WINDOW = '1 minute';

const isThere = (error: unknown): boolean => (error as Error).name === 'ScheduleAlreadyRunning';

const create = (link: TemporalLink, spec: ScheduleSpec): Promise<boolean> =>
  link.use(async ({ schedule }) => {
    const { scheduleId, workflowType, taskQueue, input, every } = spec;
    try {
      await schedule.create({
        scheduleId,
        spec: typeof every === 'number' ? { intervals: [{ every }] } : { calendars: [every] },
        // What was missed while Temporal was away is made good by the next firing.
        policies: { overlap: 'SKIP', catchupWindow: MISSED_WINDOW },
        action: { type: 'startWorkflow', workflowType, workflowId: scheduleId, taskQueue, args: [input] },
      });
      return true;
    } catch (error) {
      if (isThere(error)) return false;
      throw error;
    }
  });

/** Creates the schedules that are missing; answers how many were. A server that was emptied gets them again. */
export const ensureSchedules = async (
  link: TemporalLink,
  specs: readonly ScheduleSpec[],
): Promise<number> => {
  const made = await Promise.all(specs.map((spec) => create(link, spec)));
  return made.filter(Boolean).length;
};
