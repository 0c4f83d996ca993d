import type { SessionLanes } from '../drive-session/session-lanes.js';
import type { ToolRetries } from '../drive-session/tool-retries.js';
import { createLocalRetries } from './local-retries.js';
import { createRetryTool } from './retry-tool.js';
import type { RetryTool, RetryToolDeps } from './retry-tool.js';

export type WhoeverRetries = ToolRetries & { leaveTo(others: ToolRetries): void };

/** Retries are begun by whoever was named last. */
export const whoeverRetries = (): WhoeverRetries => {
  let current: ToolRetries | null = null;
  return { begin: (call) => current?.begin(call), leaveTo: (others) => void (current = others) };
};

/** Until somebody else is named, this process waits by itself. */
export const retryHere = (
  services: RetryToolDeps,
  lanes: SessionLanes,
  retries: WhoeverRetries,
  stopping: AbortSignal,
): RetryTool => {
  const retryTool = createRetryTool(services, lanes);
  retries.leaveTo(createLocalRetries(retryTool, stopping, services.logger));
  return retryTool;
};
