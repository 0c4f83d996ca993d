import { Controller, Inject } from '@nestjs/common';
import { AGENT_STORE, AgentDirectory, PAST_READS } from '@antiphon/agents-features';
import { agentTreeStream, getApproval, listApprovals, sessionStream } from '@antiphon/contracts/agent';
import type { ApprovalView } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import type { z } from 'zod';
import { cutListPage, listPageSql, translateDatabaseError } from '@antiphon/database';
import type { ListedRow, WorkspaceQueries } from '@antiphon/database';
import type { EventStore, PastReads } from '@antiphon/event-store';
import { positionOfCursor } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { agentUuidOf } from '@antiphon/agent-log';

type ListQuery = z.output<typeof listApprovals.request>;
type GetQuery = z.output<typeof getApproval.request>;

interface Row {
  readonly workspace: string;
  readonly approval_id: string;
  readonly status: ApprovalView['status'];
  readonly session_id: string;
  readonly turn_id: string;
  readonly call_id: string;
  readonly agent_id: string | null;
  readonly tool: string;
  readonly input: ApprovalView['input'];
  readonly digest: string;
  readonly preview: string | null;
  readonly answer_by: ApprovalView['answerBy'];
  readonly requested_at: Date;
  readonly expires_at: Date;
  readonly escalate_to: ApprovalView['escalateTo'];
  readonly escalated_at: Date | null;
  readonly answered_by: string | null;
  readonly closed_at: Date | null;
  readonly reason: string | null;
  readonly edited: ApprovalView['edited'];
  readonly first_position: string;
}

/** Approvals of deleted answers show no texts, also in a view of the past. */
const toView = (row: Row, path: string[], isDeleted: boolean): ApprovalView => ({
  id: row.approval_id,
  status: row.status,
  sessionId: row.session_id,
  turnId: row.turn_id,
  callId: row.call_id,
  agentId: row.agent_id ?? '',
  rootId: path[0] ?? '',
  path,
  tool: row.tool,
  input: isDeleted ? {} : row.input,
  digest: row.digest,
  preview: isDeleted ? null : row.preview,
  answerBy: row.answer_by,
  requestedAt: row.requested_at.toISOString(),
  expiresAt: row.expires_at.toISOString(),
  escalateTo: row.escalate_to,
  escalatedAt: row.escalated_at?.toISOString() ?? null,
  answeredBy: row.answered_by,
  closedAt: row.closed_at?.toISOString() ?? null,
  reason: isDeleted ? null : row.reason,
  edited: isDeleted ? null : row.edited,
});

const FROM = `select a.*, s.agent_id from agent_approvals a
  left join agent_sessions s on s.workspace = a.workspace and s.session_id = a.session_id`;
const listSql = (order: 'asc' | 'desc'): string =>
  listPageSql(
    `${FROM} where a.workspace = $1
    and ($2::bigint is null or a.first_position ${order === 'asc' ? '>' : '<'} $2)
    and ($4::text is null or a.status = $4) and ($5::uuid is null or a.session_id = $5)
    and ($6::text[] is null or s.agent_id = any($6))
  order by a.first_position ${order} limit $3`,
    `octet_length(r.input::text) + coalesce(octet_length(r.preview), 0)
      + coalesce(octet_length(r.edited::text), 0)`,
  );
const LIST_SQL = { asc: listSql('asc'), desc: listSql('desc') };
const GET_SQL = `${FROM} where a.workspace = $1 and a.approval_id = $2`;

const DELETED_SQL = `select data ->> 'turnId' as turn_id from events where workspace = $1
    and stream_id = any ($2) and type = 'ChatMessageDeleted' and data ->> 'part' = 'answer'`;

const queryRows = async <R extends Row>(
  queries: WorkspaceQueries,
  text: string,
  values: unknown[],
): Promise<R[]> => {
  try {
    return (await queries.query<R>({ text, values })).rows;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Returns the turns of sessions whose answers were deleted. */
const readDeletedTurns = async (
  queries: WorkspaceQueries,
  workspace: string,
  streams: readonly string[],
): Promise<string[]> => {
  if (streams.length === 0) return [];
  try {
    const { rows } = await queries.query<{ turn_id: string }>(DELETED_SQL, [workspace, streams]);
    return rows.map((row) => row.turn_id);
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Maximum number of ancestors of an agent (`TreeLimits`). */
const MAX_DEPTH = 16;

/** Returns the agents from the root of a tree to one of its agents. */
const readPath = async (
  agents: Pick<AgentDirectory, 'load'>,
  workspace: string,
  agentId: string,
): Promise<string[]> => {
  const path = [agentId];
  for (let next = await agents.load(workspace, agentId); next?.parentId && path.length <= MAX_DEPTH;) {
    path.unshift(next.parentId);
    next = await agents.load(workspace, next.parentId);
  }
  return path;
};

/** Returns the agents that are or were in a tree. */
const readMembers = async (
  store: Pick<EventStore, 'readStream'>,
  workspace: string,
  rootId: string,
): Promise<string[]> => {
  const events = await store.readStream(workspace, agentTreeStream(agentUuidOf(workspace, rootId)));
  const members = events.map(({ data }) => data['agentId']).filter((id) => typeof id === 'string');
  return [...new Set([rootId, ...members])];
};

/** Serves reads of approvals from the projection. */
@Controller()
export class ReadApprovals {
  constructor(
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(PAST_READS) private readonly past: PastReads,
  ) {}

  /** Returns approvals of all sessions of a workspace, newest or oldest first. */
  @HandleRequest(listApprovals)
  list(query: ListQuery): Promise<z.input<typeof listApprovals.reply>> {
    const { workspace, at } = query;
    return this.past.readAsOf(workspace, at, (queries) => this.readList(query, queries));
  }

  private async readList(
    { workspace, status, sessionId, rootId, order = 'desc', limit, cursor }: ListQuery,
    queries: WorkspaceQueries,
  ): Promise<{ approvals: ApprovalView[]; nextCursor: string | null }> {
    const values = [
      workspace,
      positionOfCursor(cursor),
      limit + 1,
      status ?? null,
      sessionId ?? null,
      rootId === undefined ? null : await readMembers(this.store, workspace, rootId),
    ];
    const rows = await queryRows<Row & ListedRow>(queries, LIST_SQL[order], values);
    const { shown, hasMore } = cutListPage(rows, limit);
    const last = shown.at(-1);
    const nextCursor = hasMore && last ? encodeCursor(Number(last.first_position)) : null;
    return { approvals: await this.viewsOf(queries, workspace, shown), nextCursor };
  }

  /** Returns one approval. Throws `APPROVAL.NOT_FOUND`. */
  @HandleRequest(getApproval)
  get({ workspace, approvalId, at }: GetQuery): Promise<z.input<typeof getApproval.reply>> {
    return this.past.readAsOf(workspace, at, async (queries) => {
      const row = (await queryRows(queries, GET_SQL, [workspace, approvalId]))[0];
      if (!row) throw notFound('APPROVAL.NOT_FOUND', `there is no approval ${approvalId}`);
      const [view] = await this.viewsOf(queries, workspace, [row]);
      return view as ApprovalView;
    });
  }

  private async viewsOf(
    queries: WorkspaceQueries,
    workspace: string,
    rows: readonly Row[],
  ): Promise<ApprovalView[]> {
    const streams = [...new Set(rows.map((row) => sessionStream(row.session_id)))];
    const deleted = new Set(await readDeletedTurns(queries, workspace, streams));
    return Promise.all(
      rows.map(async (row) => toView(row, await this.pathOf(row), deleted.has(row.turn_id))),
    );
  }

  private pathOf({ workspace, agent_id }: Row): Promise<string[]> {
    return readPath(this.agents, workspace, agent_id ?? '');
  }
}
