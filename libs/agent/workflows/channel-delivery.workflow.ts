import { proxyActivities, sleep, workflowInfo } from '@temporalio/workflow';
import { tasksQueue } from './tasks-queue.js';

/** Id of a delivery of a channel. Temporal stores ids only; activities read the rest from the log. */
export interface ChannelDeliveryRef {
  readonly workspace: string;
  readonly messageId: string;
}

/** State of a delivery: over, or due for its next step in `waitMs`. */
export interface ChannelDeliveryProgress {
  readonly over: boolean;
  readonly waitMs: number;
}

/** Activities of a delivery. Each is safe to repeat. */
export interface ChannelActivities {
  /** Does the steps that are due: the turn, its answer, and the messages on the platform. */
  advanceDelivery(delivery: ChannelDeliveryRef): Promise<ChannelDeliveryProgress>;
}

const retry = { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' } as const;

// It waits for the answer of an agent, which may take as long as an approval.
const activities = () =>
  proxyActivities<ChannelActivities>({
    taskQueue: tasksQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '24h',
    heartbeatTimeout: '6s',
    retry,
  });

/** Waits between the attempts to show a reply. The log decides when each is due, and the last one. */
export async function channelDelivery(delivery: ChannelDeliveryRef): Promise<void> {
  const { advanceDelivery } = activities();
  let progress = await advanceDelivery(delivery);
  while (!progress.over) {
    if (progress.waitMs > 0) await sleep(progress.waitMs);
    progress = await advanceDelivery(delivery);
  }
}
