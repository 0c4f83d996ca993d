import type pg from 'pg';
import { approvalWorkflowId } from '@antiphon/contracts/agent';
import type { ApprovalRef, ApprovalTimer } from '@antiphon/agent-workflows';
import { waitingCall } from '@antiphon/conversation-domain';
import type { CallApproval } from '@antiphon/conversation-domain';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { listOpenWorkflows, signalWorkflow, startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import { commitApproval, findApproval } from './approval-store.js';
import type { CommitApprovalDeps } from './approval-store.js';
import { createToken } from '@antiphon/service-host';

/** An approval that was requested or closed. */
export interface ApprovalChange extends ApprovalRef {
  readonly sessionId: string;
  readonly agentId: string;
  readonly open: boolean;
}

export type OnApprovalChange = (change: ApprovalChange) => void;

/** Called after the commit with each approval that is requested or closed in this process. */
export const ON_APPROVAL_CHANGE = createToken<OnApprovalChange>('ON_APPROVAL_CHANGE');

const nextDeadline = ({ escalateAt, expiresAt }: CallApproval): string =>
  escalateAt !== null && escalateAt < expiresAt ? escalateAt : expiresAt;

export interface ApprovalDeadlineDeps extends CommitApprovalDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
}

/** Applies the deadlines of approvals. */
export class ApprovalDeadlines {
  constructor(private readonly deps: ApprovalDeadlineDeps) {}

  /**
   * Escalates or expires an approval whose deadline has passed. Returns the time until its next
   * deadline; null once it is closed.
   */
  async apply({ workspace, approvalId }: ApprovalRef): Promise<ApprovalTimer> {
    const { pool, clock, log } = this.deps;
    const found = await findApproval(pool, workspace, approvalId);
    if (!found) return { waitMs: null };
    const { sessionId } = found;
    const readPending = async () => {
      const { state } = await log.load(workspace, sessionId);
      return waitingCall(state, approvalId)?.approval ?? null;
    };
    let pending = await readPending();
    const now = isoTime(clock);
    if (pending && now >= nextDeadline(pending)) {
      const command = { type: 'ApplyApprovalDeadlines', data: { approvalId }, now } as const;
      await commitApproval(this.deps, { workspace, sessionId }, command);
      pending = await readPending();
    }
    if (!pending) return { waitMs: null };
    return { waitMs: Math.max(1, Date.parse(nextDeadline(pending)) - clock.now()) };
  }
}

interface Row {
  readonly workspace: string;
  readonly approval_id: string;
  readonly session_id: string;
  readonly agent_id: string | null;
  readonly first_position: string;
}

const PAGE = 500;
const PENDING_SQL = `select a.workspace, a.approval_id, a.session_id, s.agent_id, a.first_position
  from agent_approvals a left join agent_sessions s on s.workspace = a.workspace and s.session_id = a.session_id
  where a.status = 'pending' and a.first_position > $1
  order by a.first_position limit $2`;

async function* readPendingApprovals(pool: pg.Pool): AsyncGenerator<ApprovalChange> {
  let after = '0';
  for (;;) {
    const { rows } = await acrossWorkspaces(pool)
      .query<Row>(PENDING_SQL, [after, PAGE])
      .catch((error: unknown) => {
        throw translateDatabaseError(error);
      });
    for (const { workspace, approval_id: approvalId, session_id: sessionId, agent_id } of rows)
      yield { workspace, approvalId, sessionId, agentId: agent_id ?? '', open: true };
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.first_position ?? after;
  }
}

/** Maximum number of Temporal calls in one reconciliation; the next one makes the others. */
const MAX_CALLS = 1_000;
const MAX_CONCURRENT_CALLS = 16;

/** Makes the calls with limited concurrency. The first failure ends the round. */
const callAll = async (calls: readonly (() => Promise<void>)[]): Promise<void> => {
  const left = calls.values();
  const worker = async (): Promise<void> => {
    for (const call of left) await call();
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_CALLS }, worker));
};

export interface ApprovalTimersDeps {
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly pool: pg.Pool;
  readonly logger: Logger;
}

/** Schedules the deadlines of approvals: each pending one has a Temporal workflow that waits. */
export class ApprovalTimers {
  constructor(private readonly deps: ApprovalTimersDeps) {}

  /**
   * Starts or ends the timer of an approval in the background. The reconciler repeats lost calls.
   */
  update(change: ApprovalChange): void {
    this.apply(change).catch((error: unknown) =>
      this.deps.logger.warn({ err: error, approvalId: change.approvalId }, 'approval timer update failed'),
    );
  }

  /**
   * Reconciles Temporal with the log: starts missing timers of pending approvals, and ends those of
   * closed ones, at most 1,000 in a round. Returns the number of pending approvals.
   */
  async reconcile(): Promise<number> {
    const { temporal, taskQueue, pool } = this.deps;
    // Lists Temporal first: repeated starts and signals for concurrent changes have no effect.
    const running = new Set<string>();
    for await (const id of listOpenWorkflows(temporal, { workflowType: 'approval', taskQueue }))
      running.add(id);
    const missing: ApprovalChange[] = [];
    let pending = 0;
    for await (const approval of readPendingApprovals(pool)) {
      pending++;
      if (running.delete(approvalWorkflowId(approval.approvalId))) continue;
      if (missing.length < MAX_CALLS) missing.push(approval);
    }
    // The rest of `running` is closed, or not projected yet. The latter reads the log and waits
    // again.
    const due = [
      ...missing.map((approval) => () => this.apply(approval)),
      ...[...running].map((workflowId) => () => this.signalClosed(workflowId)),
    ];
    await callAll(due.slice(0, MAX_CALLS));
    return pending;
  }

  /**
   * Starts the timer of a pending approval, or ends that of a closed one. Throws
   * `TEMPORAL.UNAVAILABLE`.
   */
  private apply({ workspace, approvalId, sessionId, agentId, open }: ApprovalChange): Promise<void> {
    const { temporal, taskQueue } = this.deps;
    const workflowId = approvalWorkflowId(approvalId);
    if (!open) return this.signalClosed(workflowId);
    return startWorkflowOnce(temporal, {
      workflowType: 'approval',
      workflowId,
      taskQueue,
      input: { workspace, approvalId } satisfies ApprovalRef,
      keywords: { AntiphonWorkspace: workspace, AntiphonAgent: agentId, AntiphonSession: sessionId },
    });
  }

  private signalClosed(workflowId: string): Promise<void> {
    return signalWorkflow(this.deps.temporal, workflowId, 'approvalClosed');
  }
}
