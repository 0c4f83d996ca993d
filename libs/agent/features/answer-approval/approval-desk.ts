import type pg from 'pg';
import type { ApprovalView, getApproval, listApprovals } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import type { LaneServices } from '../drive-session/lane-services.js';
import type { SessionLanes } from '../drive-session/session-lanes.js';
import { getApprovalRow, listApprovalRows } from '../read-approvals/read-approvals.js';
import { createAnswerApproval } from './answer-approval.handler.js';
import type { AnswerApproval } from './answer-approval.handler.js';

/** What can be done with approvals. */
export interface ApprovalDesk {
  readonly answer: AnswerApproval;
  list(query: z.output<typeof listApprovals.request>): ReturnType<typeof listApprovalRows>;
  get(query: z.output<typeof getApproval.request>): Promise<ApprovalView>;
}

export const createApprovalDesk = (
  services: LaneServices,
  lanes: SessionLanes,
  pool: pg.Pool,
): ApprovalDesk => ({
  answer: createAnswerApproval(services, lanes, pool),
  list: (query) => listApprovalRows(pool, query),
  get: (query) => getApprovalRow(pool, query),
});
