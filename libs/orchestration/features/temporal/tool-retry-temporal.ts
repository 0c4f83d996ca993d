import type { ToolCallRef } from '@antiphon/agent-workflows';
import { toolWorkflowId } from '@antiphon/contracts/agent';
import { sleep } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import type { ToolRetries, ToolRetryRef } from '@antiphon/conversation-features';

/** Delay before a workflow is started again while Temporal is unavailable, ms. */
const RESTART_MS = 1_000;

export interface TemporalRetriesDeps {
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly logger: Logger;
}

/**
 * Schedules retries in Temporal: each call has a Temporal workflow under a fixed id. While the
 * server is unavailable, the call waits in the log.
 */
export class TemporalRetries implements ToolRetries {
  private readonly stopping = new AbortController();
  private readonly starting = new Map<string, Promise<void>>();

  constructor(private readonly deps: TemporalRetriesDeps) {}

  schedule(call: ToolRetryRef): void {
    const { callId } = call;
    if (this.starting.has(callId)) return;
    const started = this.startWithRetry(call).finally(() => this.starting.delete(callId));
    this.starting.set(callId, started);
  }

  /** Resolves when no start request is in flight any more. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.starting.values());
  }

  private async startWithRetry(call: ToolRetryRef): Promise<void> {
    const { logger } = this.deps;
    const { signal } = this.stopping;
    for (let isLogged = false; !signal.aborted; isLogged = true) {
      try {
        return await this.startWorkflow(call);
      } catch (error) {
        if (!isLogged) logger.warn({ err: error, callId: call.callId }, 'tool retry workflow not started');
      }
      await sleep(RESTART_MS, signal).catch(() => undefined);
    }
  }

  private startWorkflow({ workspace, sessionId, callId, agentId }: ToolRetryRef): Promise<void> {
    const { temporal, taskQueue } = this.deps;
    return startWorkflowOnce(temporal, {
      workflowType: 'toolRetry',
      workflowId: toolWorkflowId(callId),
      taskQueue,
      input: { workspace, sessionId, callId } satisfies ToolCallRef,
      keywords: { AntiphonWorkspace: workspace, AntiphonAgent: agentId, AntiphonSession: sessionId },
    });
  }
}
