import type { ToolCallRef } from '@antiphon/agent-workflows';
import { toolWorkflowId } from '@antiphon/contracts/agent';
import type { Logger } from '@antiphon/observability';
import { startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import type { ToolRetries, ToolRetryRef } from '@antiphon/conversation-features';
import { WorkflowStarts } from './workflow-starts.js';

export interface TemporalRetriesDeps {
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly logger: Logger;
}

/** Schedules retries in Temporal: each call has a Temporal workflow under a fixed id. */
export class TemporalRetries implements ToolRetries {
  private readonly starts: WorkflowStarts<ToolRetryRef>;

  constructor(private readonly deps: TemporalRetriesDeps) {
    this.starts = new WorkflowStarts(
      (call) => this.startWorkflow(call),
      ({ callId }, err) => deps.logger.warn({ err, callId }, 'tool retry workflow not started'),
    );
  }

  schedule(call: ToolRetryRef): void {
    this.starts.start(call.callId, call);
  }

  /** Resolves when no start request is in flight any more. */
  stop(): Promise<void> {
    return this.starts.stop();
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
