import type pg from 'pg';
import type { ApprovalView, getApproval, listApprovals } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import type { SessionRegistry } from '../sessions/session-registry.js';
import { getApprovalRow, listApprovalRows } from './read-approvals.js';
import type { ApprovalNews } from './approval-timers.js';
import { createTendApproval } from './tend-approval.js';
import type { TendApproval } from './tend-approval.js';
import { createAnswerApproval } from './answer-approval.handler.js';
import type { AnswerApproval, AnswerApprovalDeps } from './answer-approval.handler.js';

/** What can be done with approvals. */
export interface ApprovalDesk {
  readonly answer: AnswerApproval;
  /** Records what is due by now, and says how long nothing will be. */
  readonly tend: TendApproval;
  /** Who keeps the time hears of each approval that is asked for or closed in this process. */
  follow(listener: (news: ApprovalNews) => void): void;
  list(query: z.output<typeof listApprovals.request>): ReturnType<typeof listApprovalRows>;
  get(query: z.output<typeof getApproval.request>): Promise<ApprovalView>;
}

export interface ApprovalBoard {
  readonly note: (news: ApprovalNews) => void;
  readonly follow: ApprovalDesk['follow'];
}
/** Whoever asks or answers is made before who keeps the time. */
export const createApprovalBoard = (): ApprovalBoard => {
  let listener: (news: ApprovalNews) => void = () => undefined;
  return { note: (news) => listener(news), follow: (next) => void (listener = next) };
};

export const createApprovalDesk = (
  services: AnswerApprovalDeps,
  registry: SessionRegistry,
  pool: pg.Pool,
  { follow }: ApprovalBoard,
): ApprovalDesk => ({
  follow,
  tend: createTendApproval(services, registry, pool),
  answer: createAnswerApproval(services, registry, pool),
  list: (query) => listApprovalRows(pool, query),
  get: (query) => getApprovalRow(pool, query),
});
