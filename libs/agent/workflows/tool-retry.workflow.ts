import { proxyActivities, sleep } from '@temporalio/workflow';

/** Id of a tool call. Temporal stores ids only; activities read everything else from the log. */
export interface ToolCallRef {
  readonly workspace: string;
  readonly sessionId: string;
  readonly callId: string;
}

/** State of a call: over, or due for its next try in `waitMs`. */
export interface ToolRetryProgress {
  readonly over: boolean;
  readonly waitMs: number;
}

/** Activities of a tool call's retries. Each is safe to repeat. */
export interface ToolActivities {
  /** Reads the call's state from the log, which may have tries of a previous Temporal workflow. */
  readToolCall(call: ToolCallRef): Promise<ToolRetryProgress>;
  /** Makes the next try and records its outcome, unless an earlier try's outcome is unknown. */
  retryTool(call: ToolCallRef): Promise<ToolRetryProgress>;
}

const retry = { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' } as const;

const { readToolCall } = proxyActivities<Pick<ToolActivities, 'readToolCall'>>({
  startToCloseTimeout: '30s',
  retry,
});
// A tool has its own timeout of at most a minute; missing heartbeats reveal a dead process.
const { retryTool } = proxyActivities<Pick<ToolActivities, 'retryTool'>>({
  startToCloseTimeout: '5m',
  heartbeatTimeout: '6s',
  retry,
});

/**
 * Waits between the tries of one tool call. The log decides when each is due and which is the last.
 */
export async function toolRetry(call: ToolCallRef): Promise<void> {
  let progress = await readToolCall(call);
  while (!progress.over) {
    if (progress.waitMs > 0) await sleep(progress.waitMs);
    progress = await retryTool(call);
  }
}
