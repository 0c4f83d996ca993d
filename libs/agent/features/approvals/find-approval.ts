import type pg from 'pg';
import { ApprovalEvent, ApprovalRequested, sessionStream } from '@antiphon/contracts/agent';
import type { ApproverRole } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { translateDatabaseError } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';

/** Where an approval is, and what it was asked for with. */
export interface FoundApproval {
  readonly sessionId: string;
  readonly digest: string;
  readonly answerBy: ApproverRole;
}

interface Row {
  readonly session_id: string;
  readonly digest: string;
  readonly answer_by: ApproverRole;
}

const ROW_SQL = `select session_id, digest, answer_by from agent_approvals where workspace = $1 and approval_id = $2`;
/** What the projection has not come to yet: its checkpoint is read with the log, so nothing lies between the two. */
const TAIL_SQL = `select substr(stream_id, 9) as session_id, data ->> 'digest' as digest, data ->> 'answerBy' as answer_by
  from events where workspace = $1 and category = 'session' and type = 'ApprovalRequested'
    and position > coalesce((select position from projection_checkpoints where name = 'agent-sessions'), 0)
    and data ->> 'approvalId' = $2::text`;

/** Finds an approval by its id, also one that was asked for just now; null if there is none in the workspace. */
export const findApproval = async (
  pool: pg.Pool,
  workspace: string,
  approvalId: string,
): Promise<FoundApproval | null> => {
  try {
    for (const text of [TAIL_SQL, ROW_SQL]) {
      const { rows } = await pool.query<Row>(text, [workspace, approvalId]);
      const row = rows[0];
      if (row) return { sessionId: row.session_id, digest: row.digest, answerBy: row.answer_by };
    }
    return null;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

export type ApprovalEnd = Exclude<ApprovalEvent, { type: 'ApprovalRequested' | 'ApprovalEscalated' }>;

const PAGE = 500;

/** How an approval was closed, from the session's event stream; null when it was not, or its turn's end closed it. */
export const closeOf = async (
  store: Pick<EventStore, 'streamVersion' | 'readStream'>,
  workspace: string,
  sessionId: string,
  approvalId: string,
): Promise<ApprovalEnd | null> => {
  const stream = sessionStream(sessionId);
  for (let before = await store.streamVersion(workspace, stream); before > 0; before -= PAGE) {
    const fromVersion = Math.max(1, before - PAGE + 1);
    const limit = before - fromVersion + 1;
    const events = await store.readStream(workspace, stream, { fromVersion, limit });
    for (const event of events.reverse()) {
      if (!event.type.startsWith('Approval') || event.data['approvalId'] !== approvalId) continue;
      const parsed = ApprovalEvent.parse(upcast(event));
      if (parsed.type === ApprovalRequested.shape.type.value) return null;
      if (parsed.type !== 'ApprovalEscalated') return parsed as ApprovalEnd;
    }
  }
  return null;
};
