import { condition, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';

/** Which approval: all that Temporal is told of it. What would be called is in the log, and is read there each time. */
export interface ApprovalRef {
  readonly workspace: string;
  readonly approvalId: string;
}

export interface ApprovalWait {
  /** Until something is due: another one is asked, or nobody may answer any more. Null once it is closed. */
  readonly waitMs: number | null;
}

/** What an approval needs done outside of its Temporal workflow; each call is safe to repeat. */
export interface ApprovalActivities {
  /** Reads the log, and records what is due by now. */
  tendApproval(approval: ApprovalRef): Promise<ApprovalWait>;
}

const { tendApproval } = proxyActivities<ApprovalActivities>({
  startToCloseTimeout: '30s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
});

/** The log has an answer, or needs none any more. One that is lost costs nothing but this workflow's waiting on. */
export const approvalClosed = defineSignal('approvalClosed');

/** Keeps the time of one approval: the log says what is due, this only waits for it. */
export async function approval(ref: ApprovalRef): Promise<void> {
  let told = false;
  setHandler(approvalClosed, () => void (told = true));
  for (let { waitMs } = await tendApproval(ref); waitMs !== null; { waitMs } = await tendApproval(ref)) {
    await condition(() => told, waitMs);
    told = false;
  }
}
