import type { ApprovalRef, ApprovalTimer } from '@antiphon/agent-workflows';
import { AnswerApproval } from './answer-approval.handler.js';
import type { AnswerApprovalDeps } from './answer-approval.handler.js';
import { applyApprovalDeadlines } from './approval-timers.js';
import type { ApprovalChange } from './approval-timers.js';
import { ReadApprovals } from './read-approvals.handler.js';
import type { ReadApprovalsDeps } from './read-approvals.handler.js';

/**
 * Notifies the approval timers of changes. Turns and handlers exist before the timers, which need a
 * connection to Temporal: changes without a subscriber are left to the reconciler.
 */
export class ApprovalEvents {
  private listener: (change: ApprovalChange) => void = () => undefined;

  /** Notifies the subscriber. Bound, so that it can be passed on as a callback. */
  readonly publish = (change: ApprovalChange): void => this.listener(change);

  /** Sets the subscriber, of which there is one. */
  subscribe(listener: (change: ApprovalChange) => void): void {
    this.listener = listener;
  }
}

/** Approvals of one process. */
export interface Approvals {
  readonly answer: AnswerApproval['handle'];
  readonly list: ReadApprovals['list'];
  readonly get: ReadApprovals['get'];
  /** Records the deadlines that have passed, and returns the time until the next one. */
  applyDeadlines(approval: ApprovalRef): Promise<ApprovalTimer>;
  /** Sets the subscriber for changes in this process. */
  subscribe(listener: (change: ApprovalChange) => void): void;
}

export const createApprovals = (
  deps: AnswerApprovalDeps & ReadApprovalsDeps,
  events: ApprovalEvents,
): Approvals => {
  const answers = new AnswerApproval(deps);
  const reads = new ReadApprovals(deps);
  return {
    answer: (request) => answers.handle(request),
    list: (query) => reads.list(query),
    get: (query) => reads.get(query),
    applyDeadlines: (approval) => applyApprovalDeadlines(deps, approval),
    subscribe: (listener) => events.subscribe(listener),
  };
};
