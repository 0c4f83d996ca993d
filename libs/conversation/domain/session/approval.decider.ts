import type { ApprovalEvent, ApproverRole, SessionEventOf } from '@antiphon/contracts/agent';
import type { CallApproval, OpenTurn, SessionState, TurnToolCall } from './session-state.js';

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Data;
  /** ISO 8601, UTC, with milliseconds: time arrives with the command. */
  readonly now: string;
}

type EditedArguments = NonNullable<SessionEventOf<'ApprovalGranted'>['data']['edited']>;
type Requested = SessionEventOf<'ApprovalRequested'>['data'];
type Voided = SessionEventOf<'ApprovalVoided'>['data'];

/** Requests approvals for calls that the model asked for and that were not requested yet. */
export type RequestApprovals = Command<
  'RequestApprovals',
  {
    readonly turnId: string;
    readonly approvals: readonly Omit<Requested, 'turnId' | 'name' | 'input' | 'requestedAt'>[];
  }
>;
/**
 * Grants or denies an approval. The first answer wins; one after the deadline expires the approval
 * instead.
 */
export type AnswerApproval = Command<
  'AnswerApproval',
  {
    readonly approvalId: string;
    readonly decision: 'approve' | 'deny';
    readonly answeredBy: string;
    /** Name of the API key; undefined for any other credential. */
    readonly answeredByName?: string | undefined;
    readonly role: ApproverRole;
    readonly reason: string;
    /** Arguments in the place of the requested ones, with the digest of the call that they make. */
    readonly edited?: EditedArguments | undefined;
  }
>;
/** Escalates or expires an approval whose deadline has passed. */
export type ApplyApprovalDeadlines = Command<'ApplyApprovalDeadlines', { readonly approvalId: string }>;
/** Voids approvals of calls that changed since the request. */
export type VoidApprovals = Command<
  'VoidApprovals',
  { readonly turnId: string; readonly voided: readonly Pick<Voided, 'callId' | 'digest'>[] }
>;

export type ApprovalCommand = RequestApprovals | AnswerApproval | ApplyApprovalDeadlines | VoidApprovals;

/** A tool call that waits for an approval. A turn with a pending cancel has none. */
export interface WaitingCall {
  readonly turnId: string;
  readonly call: TurnToolCall;
  readonly approval: CallApproval;
}

/** Returns the calls of the open turn that wait for an approval. */
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

/** Returns the call that waits for this approval, or null. */
export const waitingCall = (state: SessionState, approvalId: string): WaitingCall | null =>
  waitingCalls(state).find(({ approval }) => approval.approvalId === approvalId) ?? null;

const schemaVersion = 1;

const runningTurn = ({ open }: SessionState, turnId: string): OpenTurn | null =>
  open?.turnId === turnId && !open.cancelRequested ? open : null;

/** Returns the calls of the newest step that were not requested yet. */
const askedCalls = (state: SessionState, turnId: string): readonly TurnToolCall[] =>
  runningTurn(state, turnId)
    ?.steps.at(-1)
    ?.calls.filter(({ status }) => status === 'asked') ?? [];

const requestApprovals = ({ data, now }: RequestApprovals, state: SessionState): ApprovalEvent[] => {
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

const expire = (waiting: WaitingCall, now: string): ApprovalEvent => {
  const cause = { kind: 'approval_expired', by: waiting.approval.expiresAt } as const;
  return { type: 'ApprovalExpired', schemaVersion: 2, data: { ...ids(waiting), cause, expiredAt: now } };
};

const answerApproval = ({ data, now }: AnswerApproval, state: SessionState): ApprovalEvent[] => {
  const waiting = waitingCall(state, data.approvalId);
  if (!waiting) return [];
  const { digest, expiresAt } = waiting.approval;
  if (now >= expiresAt) return [expire(waiting, now)];
  const { answeredBy, answeredByName, role, reason } = data;
  const name = answeredByName === undefined ? {} : { answeredByName };
  const answer = { ...ids(waiting), digest, answeredBy, ...name, role, reason, answeredAt: now };
  return data.decision === 'approve'
    ? [
        {
          type: 'ApprovalGranted',
          schemaVersion,
          data: { ...answer, ...(data.edited ? { edited: data.edited } : {}) },
        },
      ]
    : [
        {
          type: 'ApprovalDenied',
          schemaVersion: 2,
          data: { ...answer, cause: { kind: 'approval_denied', reason } },
        },
      ];
};

const applyDeadlines = ({ data, now }: ApplyApprovalDeadlines, state: SessionState): ApprovalEvent[] => {
  const waiting = waitingCall(state, data.approvalId);
  if (!waiting) return [];
  const { expiresAt, escalateAt, escalateTo } = waiting.approval;
  if (now >= expiresAt) return [expire(waiting, now)];
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
              schemaVersion: 2 as const,
              data: {
                turnId: data.turnId,
                callId,
                approvalId: approval.approvalId,
                digest,
                cause: { kind: 'approval_voided' as const },
                voidedAt: now,
              },
            },
          ]
        : [],
    ),
  );
};

const COMMAND_TYPES: ReadonlySet<string> = new Set<ApprovalCommand['type']>([
  'RequestApprovals',
  'AnswerApproval',
  'ApplyApprovalDeadlines',
  'VoidApprovals',
]);
export const isApprovalCommand = (command: { readonly type: string }): command is ApprovalCommand =>
  COMMAND_TYPES.has(command.type);

/** Decides approval commands: one request and one answer per call, none after the deadline. */
export const decideApproval = (command: ApprovalCommand, state: SessionState): ApprovalEvent[] => {
  switch (command.type) {
    case 'RequestApprovals':
      return requestApprovals(command, state);
    case 'AnswerApproval':
      return answerApproval(command, state);
    case 'ApplyApprovalDeadlines':
      return applyDeadlines(command, state);
    case 'VoidApprovals':
      return voidApprovals(command, state);
  }
};
