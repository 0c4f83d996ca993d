import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolCallRef } from '@antiphon/agent-workflows';
import { toolWorkflowId } from '@antiphon/contracts/agent';
import type { Logger } from '@antiphon/observability';
import { startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import type { ToolRetries, ToolRetryRef } from './tool-retries.js';

/** Between two tries to tell Temporal of a call while it is away. */
const TELL_AGAIN_MS = 1_000;

export interface TemporalRetriesOptions {
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly logger: Logger;
}

const beginRetries = (
  { temporal, taskQueue }: TemporalRetriesOptions,
  { workspace, sessionId, callId, agentId }: ToolRetryRef,
): Promise<void> =>
  startWorkflowOnce(temporal, {
    workflowType: 'toolRetry',
    workflowId: toolWorkflowId(callId),
    taskQueue,
    input: { workspace, sessionId, callId } satisfies ToolCallRef,
    keywords: { AntiphonWorkspace: workspace, AntiphonAgent: agentId, AntiphonSession: sessionId },
  });

/**
 * Has Temporal wait: each call has a Temporal workflow under its fixed id. While the server is away, the
 * call waits in the log. `stop` answers when nothing is on its way to the server any more.
 */
export const createTemporalRetries = (
  options: TemporalRetriesOptions,
): ToolRetries & { stop(): Promise<void> } => {
  const { logger } = options;
  const stop = new AbortController();
  const stopping = stop.signal;
  const telling = new Map<string, Promise<void>>();
  const tell = async (call: ToolRetryRef): Promise<void> => {
    for (let warned = false; !stopping.aborted; warned = true) {
      try {
        return await beginRetries(options, call);
      } catch (error) {
        if (!warned)
          logger.warn(
            { err: error, callId: call.callId },
            'Temporal was not told of a tool call; it will be',
          );
      }
      await sleep(TELL_AGAIN_MS, undefined, { signal: stopping }).catch(() => undefined);
    }
  };
  return {
    begin: (call) => {
      if (telling.has(call.callId)) return;
      const told = tell(call).finally(() => telling.delete(call.callId));
      telling.set(call.callId, told);
    },
    stop: async () => {
      stop.abort();
      await Promise.all(telling.values());
    },
  };
};
