import { proxyActivities, sleep } from '@temporalio/workflow';

/** Which tool call: all that Temporal is told of it. What it is about is in the log, and is read there each time. */
export interface ToolCallRef {
  readonly workspace: string;
  readonly sessionId: string;
  readonly callId: string;
}

/** Where a call stands: over, or due for its next try in so many ms. */
export interface ToolRetryProgress {
  readonly over: boolean;
  readonly waitMs: number;
}

/** What the retries of a tool call need done outside of their Temporal workflow; each call is safe to repeat. */
export interface ToolActivities {
  /** Reads the log: also when this Temporal workflow is not the first one of its call. */
  readToolCall(call: ToolCallRef): Promise<ToolRetryProgress>;
  /** Makes the next try, unless one whose outcome nobody knows came before; its outcome goes to the log. */
  retryTool(call: ToolCallRef): Promise<ToolRetryProgress>;
}

const retry = { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' } as const;

const { readToolCall } = proxyActivities<Pick<ToolActivities, 'readToolCall'>>({
  startToCloseTimeout: '30s',
  retry,
});
// A tool has its own deadline, of a minute at most; a process that dies is noticed by its silence.
const { retryTool } = proxyActivities<Pick<ToolActivities, 'retryTool'>>({
  startToCloseTimeout: '5m',
  heartbeatTimeout: '6s',
  retry,
});

/** Waits between the tries of one tool call: when each is due, and which is the last, the log says. */
export async function toolRetry(call: ToolCallRef): Promise<void> {
  let progress = await readToolCall(call);
  while (!progress.over) {
    if (progress.waitMs > 0) await sleep(progress.waitMs);
    progress = await retryTool(call);
  }
}
