import type { TemporalLink } from './temporal-link.js';

/** Of one question to the server. */
const PAGE = 1_000;
const NO_MORE = new Uint8Array();

/**
 * Ids of the workflows of one type that run on a task queue, newest first, as Temporal's visibility store shows them: one
 * that has begun or ended just now may be missing, or still be there. Throws `TEMPORAL.UNAVAILABLE`.
 */
export async function* listOpenWorkflows(
  link: TemporalLink,
  { workflowType, taskQueue }: { readonly workflowType: string; readonly taskQueue: string },
): AsyncGenerator<string> {
  const query = `ExecutionStatus = 'Running' and WorkflowType = '${workflowType}' and TaskQueue = '${taskQueue}'`;
  let nextPageToken: Uint8Array = NO_MORE;
  do {
    // Each page has a deadline of its own.
    const asked = { namespace: link.namespace, pageSize: PAGE, query, nextPageToken };
    const page = await link.use(({ workflowService }) => workflowService.listWorkflowExecutions(asked));
    for (const { execution } of page.executions) if (execution?.workflowId) yield execution.workflowId;
    nextPageToken = page.nextPageToken ?? NO_MORE;
  } while (nextPageToken.length > 0);
}
