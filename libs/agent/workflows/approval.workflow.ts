import { condition, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';

/** Id of an approval. Temporal stores ids only; activities read everything else from the log. */
export interface ApprovalRef {
  readonly workspace: string;
  readonly approvalId: string;
}

export interface ApprovalTimer {
  /** Time until the escalation or the expiry, ms. Null once the approval is closed. */
  readonly waitMs: number | null;
}

/** Activities of an approval. Each is safe to repeat. */
export interface ApprovalActivities {
  /** Records an escalation or expiry that is due, and returns the time until the next one. */
  tendApproval(approval: ApprovalRef): Promise<ApprovalTimer>;
}

const { tendApproval } = proxyActivities<ApprovalActivities>({
  startToCloseTimeout: '30s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
});

/** Signals that the approval is closed. A lost signal only prolongs the wait. */
export const approvalClosed = defineSignal('approvalClosed');

/** Waits for the deadlines of one approval. The activity decides from the log what is due. */
export async function approval(ref: ApprovalRef): Promise<void> {
  let isNotified = false;
  setHandler(approvalClosed, () => void (isNotified = true));
  for (let { waitMs } = await tendApproval(ref); waitMs !== null; { waitMs } = await tendApproval(ref)) {
    await condition(() => isNotified, waitMs);
    isNotified = false;
  }
}
