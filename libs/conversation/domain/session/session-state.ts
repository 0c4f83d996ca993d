import type { Cause } from '@antiphon/contracts/causes';
import type {
  AgentHop,
  AgentMessage,
  AnswerCut,
  ApproverRole,
  MediaFacts,
  MessageFile,
  SessionEventOf,
  StoredResult,
  ToolCall,
  TurnEndStatus,
  TurnPolicy,
  TurnRole,
} from '@antiphon/contracts/agent';
import type { ToolRetry } from '@antiphon/contracts/sandbox';

/**
 * Limits of the ended turns that a fold retains for later prompts: turns, and characters in total.
 */
export interface RecentWindow {
  readonly turns: number;
  readonly chars: number;
}

/** Failed tries of a tool call whose next try is scheduled outside of its driver. */
export interface DeferredCall {
  readonly tries: number;
  /** Number of tries that may have reached the tool. */
  readonly reached: number;
  /** Time of the first failure, ISO 8601. */
  readonly since: string;
  /** Time of the next try, ISO 8601. */
  readonly dueAt: string;
}

/** Approval of one tool call. A denied call has its result instead. */
export interface CallApproval {
  readonly approvalId: string;
  readonly status: 'pending' | 'granted';
  readonly digest: string;
  readonly moduleDigest: string;
  readonly grants: readonly string[];
  readonly answerBy: ApproverRole;
  readonly expiresAt: string;
  /** Null without an escalation, or after it. */
  readonly escalateAt: string | null;
  readonly escalateTo: ApproverRole | null;
  /** Role that was notified by the escalation, and may answer since then. */
  readonly escalated: ApproverRole | null;
}

/** A tool call of the open turn. `asked`: requested by the model, and not by the session yet. */
export interface TurnToolCall extends ToolCall {
  readonly status: 'asked' | 'requested' | 'completed' | 'failed' | 'unknown';
  /** Set with `requested`. A lost call is repeated only if this is true. */
  readonly idempotent: boolean;
  readonly idempotencyKey: string;
  /**
   * True while a try without an outcome may have reached the tool. Not tracked for idempotent
   * tools.
   */
  readonly claimed: boolean;
  /** Number of claims. */
  readonly tries: number;
  /** Number of processes that were lost during the current try. Absent: 0. */
  readonly lostDrivers?: number;
  /** True after the process that made the call stopped in order. Absent: false. */
  readonly released?: boolean;
  /** Null for a call without an approval. */
  readonly approval: CallApproval | null;
  /** Arguments that the model asked for, where an approver changed them. `input` is what runs. */
  readonly askedInput?: ToolCall['input'];
  readonly retry: ToolRetry | null;
  /** Timeout of one try, if below the tool's own; else null. */
  readonly timeoutMs: number | null;
  readonly deferred: DeferredCall | null;
  /** Result for the model: the tool's content, or the reason for its absence. */
  readonly content: string;
  readonly isError: boolean;
  /** The whole result, where `content` is a part of it. */
  readonly stored?: StoredResult;
  /** Error code and cause of a failed call. */
  readonly code?: string;
  readonly cause?: Cause;
}

/** A completed model call and the tool calls that it requested. */
export interface TurnStep {
  readonly text: string;
  readonly provider: string;
  readonly model: string;
  readonly calls: readonly TurnToolCall[];
  /** Why the answer ends early; absent for a finished one. */
  readonly cutBy?: AnswerCut;
  /** State that its model wants back, and the thought that belongs to it. */
  readonly providerState?: string;
  readonly thought?: string;
  /** True if the model wants the state in later turns, too. Absent: false. */
  readonly keepsState?: boolean;
}

/** Started model call without an outcome. */
export type OpenCall = SessionEventOf<'ModelCallStarted'>['data'];

/** Failed model call of the current step. */
export interface FailedTry {
  readonly provider: string;
  readonly model: string;
  readonly reason: SessionEventOf<'ModelCallAborted'>['data']['reason'];
  readonly cause: Cause;
  readonly retryable: boolean;
  /** Tries that the settings allow at this provider. Absent: three. */
  readonly tries?: number;
  /** Text that the model wrote before the failure. */
  readonly text: string;
  /** True for a try whose process stopped in order. Absent: false. */
  readonly released?: boolean;
}

/** Messages of other agents, and the number of steps of the turn before them. */
export interface ReceivedMessages {
  readonly afterSteps: number;
  readonly messages: readonly AgentMessage[];
}

/** Why a turn waits, as its clients see it. */
export type BlockedBy = Pick<SessionEventOf<'TurnBlocked'>['data'], 'code' | 'cause' | 'until'>;

/** A turn between its request and its terminal event. */
export interface OpenTurn {
  readonly turnId: string;
  readonly content: string;
  /** Files of the message. Absent without any. */
  readonly files?: readonly MessageFile[];
  /** Requests from agent to agent that led to this turn, oldest first. */
  readonly chain: readonly AgentHop[];
  /** File that is the agent's prompt in this turn. Absent: the configured prompt applies. */
  readonly role?: TurnRole;
  /** Principal that requested the turn. */
  readonly caller?: string;
  readonly received: readonly ReceivedMessages[];
  /** Reason for returning an answer to the agent; null if none was returned. */
  readonly returned: { readonly afterSteps: number; readonly cause: Cause } | null;
  readonly cancelRequested: boolean;
  /** Recorded reason of its wait; absent for a turn that does not wait. */
  readonly blocked?: BlockedBy;
  readonly steps: readonly TurnStep[];
  readonly call: OpenCall | null;
  /** Failed tries of the step after `steps`, oldest first. */
  readonly tries: readonly FailedTry[];
}

/** Returns true if the record has this reason for the wait of a turn. */
export const isBlockedBy = ({ blocked }: OpenTurn, { code, until }: BlockedBy): boolean =>
  blocked?.code === code && blocked.until === until;

/** An ended turn with content for later prompts. */
export interface PastTurn {
  readonly turnId: string;
  readonly content: string;
  readonly files?: readonly MessageFile[];
  readonly received: readonly ReceivedMessages[];
  readonly steps: readonly TurnStep[];
  readonly ending: TurnEndStatus;
  /** Failure message, or the partial text of a cancelled call. */
  readonly note: string;
}

/** Origin of a forked session. */
export interface Fork {
  readonly origin: { readonly sessionId: string; readonly version: number };
  readonly purpose: SessionEventOf<'SessionForked'>['data']['purpose'];
  readonly choice: { readonly provider: string; readonly model: string } | null;
  /** For a what-if: ids of the origin's turns by the ids of the turns that repeat them. */
  readonly remakes: Readonly<Record<string, string>>;
}

/** Snapshot of a file that later turns see. */
export interface AttachedFile {
  readonly path: string;
  /** SHA-256 (hex) of its bytes. */
  readonly digest: string;
  readonly size: number;
  /** Absent for a file that models get as text. */
  readonly media?: MediaFacts;
}

/**
 * State of a session for its driver. Its size does not depend on the length of the event stream.
 */
export interface SessionState {
  readonly started: {
    readonly sessionId: string;
    readonly sessionKey: string;
    readonly agentId: string;
  } | null;
  /** Null for a session that is not a fork. */
  readonly fork: Fork | null;
  /**
   * Number of the last model attempt. A turn without one takes a number too; offsets count by it.
   */
  readonly attempt: number;
  /** Policy in the last record of one. */
  readonly policy: TurnPolicy | null;
  /** Turn of the last attempt, while it is open. */
  readonly attemptTurnId: string | null;
  readonly open: OpenTurn | null;
  /** Accepted turns behind the open one, in order. */
  readonly queue: readonly OpenTurn[];
  readonly recent: readonly PastTurn[];
  /** Attached files, one a path, in the order in which they were attached first. */
  readonly attached: readonly AttachedFile[];
  /** Tools that later prompts have next to those of the agent, the newest last. Absent: none. */
  readonly foundTools?: readonly string[];
  /** Ends of the last turns, newest last. */
  readonly ended: readonly { readonly turnId: string; readonly status: TurnEndStatus }[];
}

export const initialSession = (): SessionState => ({
  started: null,
  fork: null,
  attempt: 0,
  policy: null,
  attemptTurnId: null,
  open: null,
  queue: [],
  recent: [],
  attached: [],
  ended: [],
});

/** Records why a turn waits. */
export const blockTurn = (
  state: SessionState,
  { turnId, code, cause, until }: SessionEventOf<'TurnBlocked'>['data'],
): SessionState => {
  const block = (turn: OpenTurn): OpenTurn =>
    turn.turnId === turnId ? { ...turn, blocked: { code, cause, until } } : turn;
  return { ...state, open: state.open && block(state.open), queue: state.queue.map(block) };
};
