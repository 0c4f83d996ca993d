import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import type { TemporalLink } from './temporal-link.js';

/** A Temporal workflow that exists once for its id. */
export interface WorkflowToStart {
  readonly workflowType: string;
  readonly workflowId: string;
  readonly taskQueue: string;
  readonly input: unknown;
  /** Search attributes (contract §6), all keywords. */
  readonly keywords: Readonly<Record<string, string>>;
}

/**
 * Starts it, or leaves the one that runs under this id alone. One that has ended is no reason not to: whoever asks has
 * read in the log that there is work left. Throws `TEMPORAL.UNAVAILABLE`.
 */
export const startWorkflowOnce = (link: TemporalLink, what: WorkflowToStart): Promise<void> =>
  link.use(async ({ workflow }) => {
    const { workflowId, taskQueue, input, keywords } = what;
    await workflow.start(what.workflowType, {
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

/** Tells a workflow something; one that is not there, or has ended, need not be told. Throws `TEMPORAL.UNAVAILABLE`. */
export const signalWorkflow = (link: TemporalLink, workflowId: string, signal: string): Promise<void> =>
  link.use(async ({ workflow }) => {
    try {
      await workflow.getHandle(workflowId).signal(signal);
    } catch (error) {
      if ((error as Error).name !== 'WorkflowNotFoundError') throw error;
    }
  });
