import type { ApproverRole } from '@antiphon/contracts/agent';
import type { SessionState, TurnToolCall } from './session-state.js';

/** Somebody's word about one tool call: asked for, or given. A call that was refused has its result instead. */
export interface CallApproval {
  readonly approvalId: string;
  readonly status: 'pending' | 'granted';
  readonly digest: string;
  readonly moduleDigest: string;
  readonly grants: readonly string[];
  readonly answerBy: ApproverRole;
  readonly expiresAt: string;
  /** Null when nobody else is to be told, or has been told already. */
  readonly escalateAt: string | null;
  readonly escalateTo: ApproverRole | null;
  /** Who was told as well; may answer from then on. */
  readonly escalated: ApproverRole | null;
}

/** A call that waits for an answer; a turn that is to be cancelled takes none any more. */
export interface WaitingCall {
  readonly turnId: string;
  readonly call: TurnToolCall;
  readonly approval: CallApproval;
}

export const waitingCalls = ({ open }: SessionState): WaitingCall[] =>
  !open || open.cancelRequested
    ? []
    : open.steps.flatMap(({ calls }) =>
        calls.flatMap((call) =>
          call.status === 'asked' && call.approval?.status === 'pending'
            ? [{ turnId: open.turnId, call, approval: call.approval }]
            : [],
        ),
      );

export const waitingCall = (state: SessionState, approvalId: string): WaitingCall | null =>
  waitingCalls(state).find(({ approval }) => approval.approvalId === approvalId) ?? null;
