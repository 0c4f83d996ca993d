import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import type { TemporalLink } from './temporal-link.js';

/** A Temporal workflow that exists at most once for its id. */
export interface WorkflowToStart {
  readonly workflowType: string;
  readonly workflowId: string;
  readonly taskQueue: string;
  readonly input: unknown;
  /** Search attributes, all keywords. */
  readonly keywords: Readonly<Record<string, string>>;
}

/**
 * Starts a workflow unless one with this id is running. A workflow that has ended is started again:
 * the caller has read in the log that there is work left. Throws `TEMPORAL.UNAVAILABLE`.
 */
export const startWorkflowOnce = (link: TemporalLink, spec: WorkflowToStart): Promise<void> =>
  link.use(async ({ workflow }) => {
    const { workflowType, workflowId, taskQueue, input, keywords } = spec;
    await workflow.start(workflowType, {
      workflowId,
      taskQueue,
      args: [input],
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      workflowIdConflictPolicy: 'USE_EXISTING',
      typedSearchAttributes: Object.entries(keywords).map(([name, value]) => ({
        key: defineSearchAttributeKey(name, SearchAttributeType.KEYWORD),
        value,
      })),
    });
  });

/**
 * Sends a signal to a workflow. Ignores a workflow that does not exist or has ended. Throws
 * `TEMPORAL.UNAVAILABLE`.
 */
export const signalWorkflow = (link: TemporalLink, workflowId: string, signal: string): Promise<void> =>
  link.use(async ({ workflow }) => {
    try {
      await workflow.getHandle(workflowId).signal(signal);
    } catch (error) {
      if ((error as Error).name !== 'WorkflowNotFoundError') throw error;
    }
  });

/** Workflows of one page of a listing. */
const PAGE_SIZE = 1_000;
const NO_PAGE_TOKEN = new Uint8Array();

/**
 * Lists the ids of running workflows of one type on a task queue, newest first. Temporal's
 * visibility store lags: a workflow that has just started may be missing, one that has just ended
 * may be listed. Throws `TEMPORAL.UNAVAILABLE`.
 */
export async function* listOpenWorkflows(
  link: TemporalLink,
  { workflowType, taskQueue }: { readonly workflowType: string; readonly taskQueue: string },
): AsyncGenerator<string> {
  const query = `ExecutionStatus = 'Running' and WorkflowType = '${workflowType}' and TaskQueue = '${taskQueue}'`;
  let nextPageToken: Uint8Array = NO_PAGE_TOKEN;
  do {
    // Each page has its own deadline.
    const request = { namespace: link.namespace, pageSize: PAGE_SIZE, query, nextPageToken };
    const page = await link.use(({ workflowService }) => workflowService.listWorkflowExecutions(request));
    for (const { execution } of page.executions) if (execution?.workflowId) yield execution.workflowId;
    nextPageToken = page.nextPageToken ?? NO_PAGE_TOKEN;
  } while (nextPageToken.length > 0);
}

/** A Temporal workflow that is started on a schedule; one execution at a time. */
export interface ScheduleSpec {
  readonly scheduleId: string;
  readonly workflowType: string;
  readonly taskQueue: string;
  readonly input: unknown;
  /** An interval in ms, or a time of day (UTC). */
  readonly every: number | { readonly hour: number; readonly minute: number };
}

const MISSED_WINDOW = '1 minute';

const createSchedule = (link: TemporalLink, spec: ScheduleSpec): Promise<boolean> =>
  link.use(async ({ schedule }) => {
    const { scheduleId, workflowType, taskQueue, input, every } = spec;
    try {
      await schedule.create({
        scheduleId,
        spec: typeof every === 'number' ? { intervals: [{ every }] } : { calendars: [every] },
        // Executions missed during an outage of Temporal are dropped: the next one covers them.
        policies: { overlap: 'SKIP', catchupWindow: MISSED_WINDOW },
        action: { type: 'startWorkflow', workflowType, workflowId: scheduleId, taskQueue, args: [input] },
      });
      return true;
    } catch (error) {
      if ((error as Error).name === 'ScheduleAlreadyRunning') return false;
      throw error;
    }
  });

/**
 * Creates the schedules that are missing, also on a server that lost its data; returns their
 * number.
 */
export const ensureSchedules = async (
  link: TemporalLink,
  specs: readonly ScheduleSpec[],
): Promise<number> => {
  const created = await Promise.all(specs.map((spec) => createSchedule(link, spec)));
  return created.filter(Boolean).length;
};
