import type pg from 'pg';
import { approvalWorkflowId } from '@antiphon/contracts/agent';
import type { ApprovalRef } from '@antiphon/agent-workflows';
import { translateDatabaseError } from '@antiphon/database';
import type { Logger } from '@antiphon/observability';
import { signalWorkflow, startWorkflowOnce } from '@antiphon/temporal';
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
  readonly open: boolean;
  readonly first_position: string;
}

const PAGE = 500;
/** Those that wait, and those that were closed just now, whose workflow may have missed it. */
const SQL = `select a.workspace, a.approval_id, a.session_id, s.agent_id, a.status = 'pending' as open, a.first_position
  from agent_approvals a left join agent_sessions s on s.workspace = a.workspace and s.session_id = a.session_id
  where (a.status = 'pending' or a.closed_at > clock_timestamp() - interval '3 minutes') and a.first_position > $1
  order by a.first_position limit $2`;

async function* approvalsToWaitFor(pool: pg.Pool): AsyncGenerator<ApprovalNews> {
  let after = '0';
  for (;;) {
    const { rows } = await pool.query<Row>(SQL, [after, PAGE]).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    for (const { workspace, approval_id: approvalId, session_id: sessionId, agent_id, open } of rows)
      yield { workspace, approvalId, sessionId, agentId: agent_id ?? '', open };
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.first_position ?? after;
  }
}

/** Brings Temporal to what the log says of one approval. Throws `TEMPORAL.UNAVAILABLE`. */
const bring = (
  { temporal, taskQueue }: Deps,
  { workspace, approvalId, sessionId, agentId, open }: ApprovalNews,
): Promise<void> => {
  const workflowId = approvalWorkflowId(approvalId);
  if (!open) return signalWorkflow(temporal, workflowId, 'approvalClosed');
  return startWorkflowOnce(temporal, {
    workflowType: 'approval',
    workflowId,
    taskQueue,
    input: { workspace, approvalId } satisfies ApprovalRef,
    keywords: { AntiphonWorkspace: workspace, AntiphonAgent: agentId, AntiphonSession: sessionId },
  });
};

/** What keeps the time of approvals in Temporal. */
export interface ApprovalWaits {
  /** Told of each change at once; what is lost on the way the reconciler makes good. */
  note(news: ApprovalNews): void;
  /** Each approval that waits in the log has its Temporal workflow, one that is closed has none. Answers how many wait. */
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
    let open = 0;
    for await (const news of approvalsToWaitFor(deps.pool)) {
      if (news.open) open++;
      await bring(deps, news);
    }
    return open;
  },
});
