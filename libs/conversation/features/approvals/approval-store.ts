import type pg from 'pg';
import { ApprovalEvent, ApprovalRequested, sessionStream } from '@antiphon/contracts/agent';
import type { ApproverRole } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { SessionCommand } from '@antiphon/conversation-domain';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { readBackwards } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { failpoint, isAppError } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import type { SessionLog } from '../sessions/session-log.js';
import type { SessionRegistry } from '../sessions/session-registry.js';

/** Session of an approval, and the arguments, digest and role of its request. */
export interface FoundApproval {
  readonly sessionId: string;
  readonly input: JsonValue;
  readonly digest: string;
  readonly answerBy: ApproverRole;
}

interface Row {
  readonly session_id: string;
  readonly input: JsonValue;
  readonly digest: string;
  readonly answer_by: ApproverRole;
}

const ROW_SQL = `select session_id, input, digest, answer_by from agent_approvals where workspace = $1 and approval_id = $2`;
// Reads the events after the projection's checkpoint. Both come from one snapshot, so there is no
// gap.
const TAIL_SQL = `select substr(stream_id, 9) as session_id, data -> 'input' as input, data ->> 'digest' as digest,
    data ->> 'answerBy' as answer_by
  from events where workspace = $1 and category = 'session' and type = 'ApprovalRequested'
    and position > coalesce((select position from projection_checkpoints where name = 'agent-sessions'), 0)
    and data ->> 'approvalId' = $2::text`;

/** Finds an approval by its id, also before it is projected. Returns null for an unknown id. */
export const findApproval = async (
  pool: pg.Pool,
  workspace: string,
  approvalId: string,
): Promise<FoundApproval | null> => {
  try {
    for (const text of [TAIL_SQL, ROW_SQL]) {
      const { rows } = await inWorkspace(pool, workspace).query<Row>(text, [workspace, approvalId]);
      const row = rows[0];
      if (!row) continue;
      const { session_id: sessionId, input, digest, answer_by: answerBy } = row;
      return { sessionId, input, digest, answerBy };
    }
    return null;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Event that closes an approval. */
export type ApprovalEnd = Exclude<ApprovalEvent, { type: 'ApprovalRequested' | 'ApprovalEscalated' }>;

const PAGE = 500;

/**
 * Reads the event that closed an approval from the session's event stream, newest first. Returns
 * null if there is none: the approval is open, or the end of its turn closed it.
 */
export const readApprovalEnd = async (
  store: Pick<EventStore, 'readStreamPage'>,
  workspace: string,
  sessionId: string,
  approvalId: string,
): Promise<ApprovalEnd | null> => {
  for await (const event of readBackwards(store, workspace, sessionStream(sessionId), PAGE)) {
    if (!event.type.startsWith('Approval') || event.data['approvalId'] !== approvalId) continue;
    const parsed = ApprovalEvent.parse(upcast(event));
    if (parsed.type === ApprovalRequested.shape.type.value) return null;
    if (parsed.type !== 'ApprovalEscalated') return parsed as ApprovalEnd;
  }
  return null;
};

/** Maximum number of commit rounds: another process may take the session over in between. */
const MAX_ROUNDS = 5;

export interface CommitApprovalDeps {
  readonly log: SessionLog;
  readonly registry: SessionRegistry;
}

/** Appends a decision about an approval, and wakes the session's driver in its process, or here. */
export const commitApproval = async (
  { log, registry }: CommitApprovalDeps,
  { workspace, sessionId }: { readonly workspace: string; readonly sessionId: string },
  command: SessionCommand,
): Promise<void> => {
  for (let round = 1; ; round++) {
    const { actor, driver, claim } = await registry.requireSession(workspace, sessionId);
    try {
      await actor.commit(({ state }) => ({ events: log.decider.decide(command, state) }));
    } catch (error) {
      if (!isAppError(error) || error.code !== 'LOG.FENCED' || round === MAX_ROUNDS) throw error;
      continue;
    }
    await failpoint('agent.approval.answered');
    registry.wakeDriver({ actor, driver, claim });
    return;
  }
};
