import type pg from 'pg';
import { approvalWorkflowId } from '@antiphon/contracts/agent';
import type { ApprovalRef } from '@antiphon/agent-workflows';
import { translateDatabaseError } from '@antiphon/database';
import type { Logger } from '@antiphon/observability';
import { listOpenWorkflows, signalWorkflow, startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';

/** Something has happened to an approval: it was asked for, or it was closed. */
export interface ApprovalNews extends ApprovalRef {
  readonly sessionId: string;
  readonly agentId: string;
  readonly open: boolean;
}

interface Deps {
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly pool: pg.Pool;
  readonly logger: Logger;
}

interface Row {
  readonly workspace: string;
  readonly approval_id: string;
  readonly session_id: string;
  readonly agent_id: string | null;
  readonly first_position: string;
}

const PAGE = 500;
const SQL = `select a.workspace, a.approval_id, a.session_id, s.agent_id, a.first_position
  from agent_approvals a left join agent_sessions s on s.workspace = a.workspace and s.session_id = a.session_id
  where a.status = 'pending' and a.first_position > $1
  order by a.first_position limit $2`;

async function* approvalsThatWait(pool: pg.Pool): AsyncGenerator<ApprovalNews> {
  let after = '0';
  for (;;) {
    const { rows } = await pool.query<Row>(SQL, [after, PAGE]).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    for (const { workspace, approval_id: approvalId, session_id: sessionId, agent_id } of rows)
      yield { workspace, approvalId, sessionId, agentId: agent_id ?? '', open: true };
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.first_position ?? after;
  }
}

/** That the log has an answer, or needs none any more: the workflow reads which. Throws `TEMPORAL.UNAVAILABLE`. */
const tellClosed = ({ temporal }: Deps, workflowId: string): Promise<void> =>
  signalWorkflow(temporal, workflowId, 'approvalClosed');

/** Brings Temporal to what the log says of one approval. Throws `TEMPORAL.UNAVAILABLE`. */
const bring = (
  deps: Deps,
  { workspace, approvalId, sessionId, agentId, open }: ApprovalNews,
): Promise<void> => {
  const { temporal, taskQueue } = deps;
  const workflowId = approvalWorkflowId(approvalId);
  if (!open) return tellClosed(deps, workflowId);
  return startWorkflowOnce(temporal, {
    workflowType: 'approval',
    workflowId,
    taskQueue,
    input: { workspace, approvalId } satisfies ApprovalRef,
    keywords: { AntiphonWorkspace: workspace, AntiphonAgent: agentId, AntiphonSession: sessionId },
  });
};

/** What one round tells Temporal; the rest is due in the next. */
const MAX_TOLD = 1_000;
/** At once. */
const TELLERS = 16;

/** Makes the calls, a few at once. The first that fails ends it: what was not made is due again in the next round. */
const tellAll = async (due: readonly (() => Promise<void>)[]): Promise<void> => {
  const left = due.values();
  const tell = async (): Promise<void> => {
    for (const call of left) await call();
  };
  await Promise.all(Array.from({ length: TELLERS }, tell));
};

/** What keeps the time of approvals in Temporal. */
export interface ApprovalWaits {
  /** Told of each change at once; what is lost on the way the reconciler makes good. */
  note(news: ApprovalNews): void;
  /**
   * Each approval that waits in the log has its Temporal workflow, one that is closed has none, however long ago Temporal
   * missed it; at most 1,000 are told in a round. Answers how many wait.
   */
  reconcile(): Promise<number>;
}

export const createApprovalWaits = (deps: Deps): ApprovalWaits => ({
  note: (news) => {
    bring(deps, news).catch((error: unknown) =>
      deps.logger.warn(
        { err: error, approvalId: news.approvalId },
        'Temporal was not told of an approval; the reconciler will tell it',
      ),
    );
  },
  reconcile: async () => {
    const { temporal, taskQueue, pool } = deps;
    // Temporal first: what opens meanwhile is begun once more, which it ignores; what closes meanwhile is told twice.
    const running = new Set<string>();
    for await (const id of listOpenWorkflows(temporal, { workflowType: 'approval', taskQueue }))
      running.add(id);
    const missing: ApprovalNews[] = [];
    let open = 0;
    for await (const news of approvalsThatWait(pool)) {
      open++;
      if (running.delete(approvalWorkflowId(news.approvalId))) continue;
      if (missing.length < MAX_TOLD) missing.push(news);
    }
    // What still runs has nothing in the log that waits; one whose row is not there yet reads the log, and waits on.
    const due = [
      ...missing.map((news) => () => bring(deps, news)),
      ...[...running].map((workflowId) => () => tellClosed(deps, workflowId)),
    ];
    await tellAll(due.slice(0, MAX_TOLD));
    return open;
  },
});
