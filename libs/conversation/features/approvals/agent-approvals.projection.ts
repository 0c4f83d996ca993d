import { textOf } from '@antiphon/contracts/causes';
import type pg from 'pg';
import { ApprovalEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { translateDatabaseError } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';

interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

const INSERT = `insert into agent_approvals (workspace, approval_id, session_id, turn_id, call_id, tool, input, digest, status,
    answer_by, requested_at, expires_at, escalate_to, first_position, preview)
  values ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', $9, $10, $11, $12, $13, $14)`;
const WHERE = 'where workspace = $1 and approval_id = $2';
const ANSWER = `update agent_approvals set status = $3, closed_at = $4, answered_by = $5, reason = $6, edited = $7 ${WHERE}`;
const CLOSE = `update agent_approvals set status = $3, closed_at = $4, reason = $5 ${WHERE}`;
const ESCALATE = `update agent_approvals set escalated_at = $3 ${WHERE}`;
// The end of a turn without an answer withdraws its pending approvals.
const WITHDRAW = `update agent_approvals set status = 'withdrawn', closed_at = $4
  where workspace = $1 and session_id = $2 and turn_id = $3 and status = 'pending'`;

const WITHDRAWS: Readonly<Record<string, string>> = {
  TurnCancelRequested: 'requestedAt',
  TurnCancelled: 'cancelledAt',
  TurnFailed: 'failedAt',
};

const sessionOf = ({ streamId }: RecordedEvent): string => streamId.slice('session-'.length);

const approvalStatement = ({ type, data }: ApprovalEvent, at: RecordedEvent): Statement => {
  const id = [at.workspace, data.approvalId];
  switch (type) {
    case 'ApprovalRequested': {
      const { turnId, callId, name, input, digest, preview, answerBy, requestedAt, expiresAt, escalateTo } =
        data;
      const call = [sessionOf(at), turnId, callId, name, JSON.stringify(input), digest];
      return {
        text: INSERT,
        values: [...id, ...call, answerBy, requestedAt, expiresAt, escalateTo, at.position, preview ?? null],
      };
    }
    case 'ApprovalGranted':
    case 'ApprovalDenied': {
      const status = type === 'ApprovalGranted' ? 'granted' : 'denied';
      const edited = 'edited' in data && data.edited ? JSON.stringify(data.edited) : null;
      const values = [...id, status, data.answeredAt, data.answeredBy, data.reason, edited];
      return { text: ANSWER, values };
    }
    case 'ApprovalExpired':
      return { text: CLOSE, values: [...id, 'expired', data.expiredAt, textOf(data.cause)] };
    case 'ApprovalVoided':
      return { text: CLOSE, values: [...id, 'voided', data.voidedAt, textOf(data.cause)] };
    case 'ApprovalEscalated':
      return { text: ESCALATE, values: [...id, data.escalatedAt] };
  }
};

const statementOf = (event: RecordedEvent): Statement | null => {
  const { type, data, workspace } = event;
  const time = WITHDRAWS[type];
  if (time !== undefined)
    return { text: WITHDRAW, values: [workspace, sessionOf(event), data['turnId'], data[time]] };
  return type.startsWith('Approval') ? approvalStatement(ApprovalEvent.parse(upcast(event)), event) : null;
};

/** Projects events to `agent_approvals`, with one statement per event: they are rare. */
export const projectApprovals = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  for (const event of events) {
    const statement = statementOf(event);
    if (statement === null) continue;
    try {
      await client.query(statement);
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
};
