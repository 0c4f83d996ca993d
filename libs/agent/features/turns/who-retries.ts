import type { SessionRegistry } from '../sessions/session-registry.js';
import type { ToolRetries } from './tool-retries.js';
import { createLocalRetries } from './local-retries.js';
import { createRetryTool } from './tool-retry.js';
import type { RetryTool, RetryToolDeps } from './tool-retry.js';

export type WhoeverRetries = ToolRetries & { leaveTo(others: ToolRetries): void };

/** Retries are begun by whoever was named last. */
export const whoeverRetries = (): WhoeverRetries => {
  let current: ToolRetries | null = null;
  return { begin: (call) => current?.begin(call), leaveTo: (others) => void (current = others) };
};

/** Until somebody else is named, this process waits by itself. */
export const retryHere = (
  services: RetryToolDeps,
  registry: SessionRegistry,
  retries: WhoeverRetries,
  stopping: AbortSignal,
): RetryTool => {
  const retryTool = createRetryTool(services, registry);
  retries.leaveTo(createLocalRetries(retryTool, stopping, services.logger));
  return retryTool;
};
