import type { ApproverRole, SessionEventOf } from '@antiphon/contracts/agent';

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Data;
  /** ISO 8601, UTC, with milliseconds: time arrives with the command. */
  readonly now: string;
}

type Requested = SessionEventOf<'ApprovalRequested'>['data'];
type Voided = SessionEventOf<'ApprovalVoided'>['data'];

/** Asks for somebody's word about calls that the model wants and that nothing was done about yet. */
export type RequestApprovals = Command<
  'RequestApprovals',
  {
    readonly turnId: string;
    readonly approvals: readonly Omit<Requested, 'turnId' | 'name' | 'input' | 'requestedAt'>[];
  }
>;
/** The first answer wins; one that comes when the time is over finds the approval expired. */
export type AnswerApproval = Command<
  'AnswerApproval',
  {
    readonly approvalId: string;
    readonly decision: 'approve' | 'deny';
    readonly answeredBy: string;
    readonly role: ApproverRole;
    readonly reason: string;
  }
>;
/** Does what is due: tells the next one, or lets it expire. */
export type ApplyApprovalDeadlines = Command<'ApplyApprovalDeadlines', { readonly approvalId: string }>;
/** What was asked for has changed: asked again from the beginning, if the model still wants it. */
export type VoidApprovals = Command<
  'VoidApprovals',
  { readonly turnId: string; readonly voided: readonly Pick<Voided, 'callId' | 'digest'>[] }
>;

export type ApprovalCommand = RequestApprovals | AnswerApproval | ApplyApprovalDeadlines | VoidApprovals;
