import type pg from 'pg';
import type { ChannelDeliveryRef } from '@antiphon/agent-workflows';
import { readOpenDeliveries } from '@antiphon/channels-features';
import type { DeliveryRef, DeliveryTimers } from '@antiphon/channels-features';
import { channelWorkflowId } from '@antiphon/contracts/agent';
import type { Logger } from '@antiphon/observability';
import { startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import { WorkflowStarts } from './workflow-starts.js';

export interface TemporalDeliveriesDeps {
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly pool: pg.Pool;
  readonly logger: Logger;
}

/** Takes deliveries of channels to their end: each has a Temporal workflow under a fixed id. */
export class TemporalDeliveries implements DeliveryTimers {
  private readonly starts: WorkflowStarts<DeliveryRef>;

  constructor(private readonly deps: TemporalDeliveriesDeps) {
    this.starts = new WorkflowStarts(
      (ref) => this.startWorkflow(ref),
      ({ messageId }, err) => deps.logger.warn({ err, messageId }, 'channel workflow not started'),
    );
  }

  start(ref: DeliveryRef): void {
    this.starts.start(ref.messageId, ref);
  }

  stop(): Promise<void> {
    return this.starts.stop();
  }

  /** Starts the missing workflows of open deliveries. Returns their number. */
  async reconcile(): Promise<number> {
    let open = 0;
    for await (const ref of readOpenDeliveries(this.deps.pool)) {
      open++;
      await this.startWorkflow(ref);
    }
    return open;
  }

  private startWorkflow({ workspace, messageId }: DeliveryRef): Promise<void> {
    const { temporal, taskQueue } = this.deps;
    return startWorkflowOnce(temporal, {
      workflowType: 'channelDelivery',
      workflowId: channelWorkflowId(messageId),
      taskQueue,
      input: { workspace, messageId } satisfies ChannelDeliveryRef,
      keywords: { AntiphonWorkspace: workspace },
    });
  }
}
