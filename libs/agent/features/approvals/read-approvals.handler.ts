import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import { getApproval, listApprovals } from '@antiphon/contracts/agent';
import type { ApprovalView } from '@antiphon/contracts/agent';
import { decodeCursor, encodeCursor } from '@antiphon/contracts/log';
import type { z } from 'zod';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { invalid, notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { AGENT_SERVICES } from '../agent.tokens.js';

type ListQuery = z.output<typeof listApprovals.request>;
type GetQuery = z.output<typeof getApproval.request>;

interface Row {
  readonly approval_id: string;
  readonly status: ApprovalView['status'];
  readonly session_id: string;
  readonly turn_id: string;
  readonly call_id: string;
  readonly agent_id: string | null;
  readonly tool: string;
  readonly input: ApprovalView['input'];
  readonly digest: string;
  readonly answer_by: ApprovalView['answerBy'];
  readonly requested_at: Date;
  readonly expires_at: Date;
  readonly escalate_to: ApprovalView['escalateTo'];
  readonly escalated_at: Date | null;
  readonly answered_by: string | null;
  readonly closed_at: Date | null;
  readonly reason: string | null;
  readonly first_position: string;
}

const toView = (row: Row): ApprovalView => ({
  id: row.approval_id,
  status: row.status,
  sessionId: row.session_id,
  turnId: row.turn_id,
  callId: row.call_id,
  agentId: row.agent_id ?? '',
  tool: row.tool,
  input: row.input,
  digest: row.digest,
  answerBy: row.answer_by,
  requestedAt: row.requested_at.toISOString(),
  expiresAt: row.expires_at.toISOString(),
  escalateTo: row.escalate_to,
  escalatedAt: row.escalated_at?.toISOString() ?? null,
  answeredBy: row.answered_by,
  closedAt: row.closed_at?.toISOString() ?? null,
  reason: row.reason,
});

const FROM = `select a.*, s.agent_id from agent_approvals a
  left join agent_sessions s on s.workspace = a.workspace and s.session_id = a.session_id`;
const LIST_SQL = `${FROM} where a.workspace = $1 and ($2::bigint is null or a.first_position < $2)
    and ($4::text is null or a.status = $4) and ($5::uuid is null or a.session_id = $5)
  order by a.first_position desc limit $3`;
const GET_SQL = `${FROM} where a.workspace = $1 and a.approval_id = $2`;

/** `values` begin with the workspace. */
const queryRows = async (
  pool: pg.Pool,
  text: string,
  values: [workspace: string, ...unknown[]],
): Promise<Row[]> => {
  try {
    return (await inWorkspace(pool, values[0]).query<Row>({ text, values })).rows;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

const parseCursor = (cursor: string | undefined): number | null => {
  if (cursor === undefined) return null;
  const position = decodeCursor(cursor);
  if (position === undefined) throw invalid('REQUEST.INVALID', 'this cursor is not one that a list answered');
  return position;
};

/** Serves reads of approvals from the projection. */
@Controller()
export class ReadApprovals {
  constructor(@Inject(AGENT_SERVICES) private readonly deps: { readonly pool: pg.Pool }) {}

  /** Returns approvals of all sessions of a workspace, newest first. */
  @HandleRequest(listApprovals)
  async list({
    workspace,
    status,
    sessionId,
    limit,
    cursor,
  }: ListQuery): Promise<{ approvals: ApprovalView[]; nextCursor: string | null }> {
    const values: [string, ...unknown[]] = [
      workspace,
      parseCursor(cursor),
      limit + 1,
      status ?? null,
      sessionId ?? null,
    ];
    const rows = await queryRows(this.deps.pool, LIST_SQL, values);
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    const nextCursor = rows.length > limit && last ? encodeCursor(Number(last.first_position)) : null;
    return { approvals: shown.map(toView), nextCursor };
  }

  /** Returns one approval. Throws `APPROVAL.NOT_FOUND`. */
  @HandleRequest(getApproval)
  async get({ workspace, approvalId }: GetQuery): Promise<ApprovalView> {
    const row = (await queryRows(this.deps.pool, GET_SQL, [workspace, approvalId]))[0];
    if (!row) throw notFound('APPROVAL.NOT_FOUND', `there is no approval ${approvalId}`);
    return toView(row);
  }
}
