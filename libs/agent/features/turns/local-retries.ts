import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@antiphon/observability';
import type { ToolRetries, ToolRetryRef } from './tool-retries.js';
import type { RetryTool } from './tool-retry.js';

/** Waits in this process: where there is no Temporal. What is lost with it is begun again by the session's next driver. */
export const createLocalRetries = (retry: RetryTool, stopping: AbortSignal, logger: Logger): ToolRetries => {
  const underWay = new Set<string>();
  const seeTo = async (call: ToolRetryRef): Promise<void> => {
    let progress = await retry.read(call);
    while (!progress.over) {
      await sleep(progress.waitMs, undefined, { signal: stopping });
      progress = await retry.again(call);
    }
  };
  return {
    begin: (call) => {
      if (underWay.has(call.callId)) return;
      underWay.add(call.callId);
      seeTo(call)
        .catch((error: unknown) => {
          if (!stopping.aborted)
            logger.warn({ err: error, callId: call.callId }, 'a tool call could not be tried again');
        })
        .finally(() => underWay.delete(call.callId));
    },
  };
};
