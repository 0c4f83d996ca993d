import type { ApprovalEvent } from '@antiphon/contracts/agent';
import { waitingCall } from './approval-state.js';
import type { WaitingCall } from './approval-state.js';
import type {
  AnswerApproval,
  ApprovalCommand,
  RequestApprovals,
  ApplyApprovalDeadlines,
  VoidApprovals,
} from './approval-command.js';
import type { OpenTurn, SessionState, TurnToolCall } from './session-state.js';

const schemaVersion = 1;
const CHANGED = 'the tool has changed since this call was to be approved; it was not run';

const turnAtWork = ({ open }: SessionState, turnId: string): OpenTurn | null =>
  open?.turnId === turnId && !open.cancelRequested ? open : null;

/** Calls of the newest step that nothing was done about yet. */
const askedCalls = (state: SessionState, turnId: string): readonly TurnToolCall[] =>
  turnAtWork(state, turnId)
    ?.steps.at(-1)
    ?.calls.filter(({ status }) => status === 'asked') ?? [];

const askApprovals = ({ data, now }: RequestApprovals, state: SessionState): ApprovalEvent[] => {
  const asked = askedCalls(state, data.turnId).filter(({ approval }) => approval === null);
  return data.approvals.flatMap((approval) =>
    asked
      .filter(({ callId }) => callId === approval.callId)
      .map(({ name, input }) => ({
        type: 'ApprovalRequested' as const,
        schemaVersion,
        data: { ...approval, turnId: data.turnId, name, input, requestedAt: now },
      })),
  );
};

const ids = ({ turnId, call, approval }: WaitingCall) => ({
  turnId,
  callId: call.callId,
  approvalId: approval.approvalId,
});

const expired = (waiting: WaitingCall, now: string): ApprovalEvent => {
  const message = `nobody approved this call by ${waiting.approval.expiresAt}; it was not run`;
  return { type: 'ApprovalExpired', schemaVersion, data: { ...ids(waiting), message, expiredAt: now } };
};

const denialOf = (reason: string): string =>
  `this call was not approved${reason === '' ? '' : `: ${reason}`}; it was not run`;

const answerApproval = ({ data, now }: AnswerApproval, state: SessionState): ApprovalEvent[] => {
  const waiting = waitingCall(state, data.approvalId);
  if (!waiting) return [];
  const { digest, expiresAt } = waiting.approval;
  if (now >= expiresAt) return [expired(waiting, now)];
  const { answeredBy, role, reason } = data;
  const answer = { ...ids(waiting), digest, answeredBy, role, reason, answeredAt: now };
  return data.decision === 'approve'
    ? [{ type: 'ApprovalGranted', schemaVersion, data: answer }]
    : [{ type: 'ApprovalDenied', schemaVersion, data: { ...answer, message: denialOf(reason) } }];
};

const tendApproval = ({ data, now }: ApplyApprovalDeadlines, state: SessionState): ApprovalEvent[] => {
  const waiting = waitingCall(state, data.approvalId);
  if (!waiting) return [];
  const { expiresAt, escalateAt, escalateTo } = waiting.approval;
  if (now >= expiresAt) return [expired(waiting, now)];
  if (escalateAt === null || escalateTo === null || now < escalateAt) return [];
  return [
    {
      type: 'ApprovalEscalated',
      schemaVersion,
      data: { ...ids(waiting), to: escalateTo, escalatedAt: now },
    },
  ];
};

const voidApprovals = ({ data, now }: VoidApprovals, state: SessionState): ApprovalEvent[] => {
  const asked = askedCalls(state, data.turnId);
  return data.voided.flatMap(({ callId, digest }) =>
    asked.flatMap(({ callId: askedId, approval }) =>
      askedId === callId && approval !== null
        ? [
            {
              type: 'ApprovalVoided' as const,
              schemaVersion,
              data: {
                turnId: data.turnId,
                callId,
                approvalId: approval.approvalId,
                digest,
                message: CHANGED,
                voidedAt: now,
              },
            },
          ]
        : [],
    ),
  );
};

const KINDS: ReadonlySet<string> = new Set<ApprovalCommand['type']>([
  'RequestApprovals',
  'AnswerApproval',
  'ApplyApprovalDeadlines',
  'VoidApprovals',
]);
export const isApprovalCommand = (command: { readonly type: string }): command is ApprovalCommand =>
  KINDS.has(command.type);

/** The rules of somebody's word: asked for once, answered once, and by nobody when the time is over. */
export const decideApproval = (command: ApprovalCommand, state: SessionState): ApprovalEvent[] => {
  switch (command.type) {
    case 'RequestApprovals':
      return askApprovals(command, state);
    case 'AnswerApproval':
      return answerApproval(command, state);
    case 'ApplyApprovalDeadlines':
      return tendApproval(command, state);
    case 'VoidApprovals':
      return voidApprovals(command, state);
  }
};
