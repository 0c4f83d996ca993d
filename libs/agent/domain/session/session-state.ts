import type { SessionEventOf, ToolCall, TurnEndStatus, TurnPolicy } from '@antiphon/contracts/agent';
import type { CallApproval } from './approval-state.js';
import type { ToolRetry } from '@antiphon/contracts/sandbox';

/** How much of what is over a fold keeps for later contexts: whole turns, and characters over all of them. */
export interface RecentWindow {
  readonly turns: number;
  readonly chars: number;
}

/** Tries of a tool call that gave no outcome: its next one is not its driver's to make. */
export interface DeferredCall {
  readonly tries: number;
  /** Of them, those that may have reached the tool. */
  readonly reached: number;
  /** When the first one failed, ISO 8601. */
  readonly since: string;
  /** When the next one is due. */
  readonly dueAt: string;
}

/** A tool call of the open turn. `asked`: the model wants it, nothing was done about it yet. */
export interface TurnToolCall extends ToolCall {
  readonly status: 'asked' | 'requested' | 'completed' | 'failed' | 'unknown';
  /** Set with `requested`: only then may a lost call be made again. */
  readonly idempotent: boolean;
  readonly idempotencyKey: string;
  /** Whether the tool may have been reached by a try that has no outcome yet. Of an idempotent tool's calls nobody keeps track. */
  readonly claimed: boolean;
  /** Claims so far. */
  readonly tries: number;
  /** Null for a call that nobody was asked about. */
  readonly approval: CallApproval | null;
  readonly retry: ToolRetry | null;
  /** For one try, where the tool's own time is more; else null. */
  readonly timeoutMs: number | null;
  readonly deferred: DeferredCall | null;
  /** What the model is told: the tool's content, or why there is none. */
  readonly content: string;
  readonly isError: boolean;
  /** Why it failed, where it did. */
  readonly code?: string;
}

/** A model call that was answered, and the tools that it asked for. */
export interface TurnStep {
  readonly text: string;
  readonly provider: string;
  readonly model: string;
  readonly calls: readonly TurnToolCall[];
}

/** A started model call without an outcome. */
export type OpenCall = SessionEventOf<'ModelCallStarted'>['data'];

/** A model call of the step in hand that gave no answer. */
export interface FailedTry {
  readonly provider: string;
  readonly model: string;
  readonly reason: SessionEventOf<'ModelCallAborted'>['data']['reason'];
  readonly message: string;
  readonly retryable: boolean;
  /** What it had written before it broke. */
  readonly text: string;
}

/** A turn between its request and its terminal event. */
export interface OpenTurn {
  readonly turnId: string;
  readonly content: string;
  readonly cancelRequested: boolean;
  readonly steps: readonly TurnStep[];
  readonly call: OpenCall | null;
  /** Of the step after `steps`, oldest first. */
  readonly tries: readonly FailedTry[];
}

export type TurnEnding = TurnEndStatus;

/** A turn that is over and left something that a later context can show. */
export interface PastTurn {
  readonly turnId: string;
  readonly content: string;
  readonly steps: readonly TurnStep[];
  readonly ending: TurnEnding;
  /** Why it failed, or what a cancelled call had written. */
  readonly note: string;
}

/** Where a session goes on from. */
export interface Fork {
  readonly origin: { readonly sessionId: string; readonly version: number };
  readonly purpose: SessionEventOf<'SessionForked'>['data']['purpose'];
  readonly choice: { readonly provider: string; readonly model: string } | null;
  /** Of a what-if: the origin's turn that each of its turns is made again of. */
  readonly remakes: Readonly<Record<string, string>>;
}

/** A session as its driver needs it: bounded, whatever the length of its event stream. */
export interface SessionState {
  readonly started: {
    readonly sessionId: string;
    readonly sessionKey: string;
    readonly agentId: string;
  } | null;
  /** Null for a session that began by itself. */
  readonly fork: Fork | null;
  /** The last model attempt, or the number that a turn without one took: what frames' offsets count by. */
  readonly attempt: number;
  /** What the session's turns are driven by, as its last record of it says. */
  readonly policy: TurnPolicy | null;
  /** The turn that the last attempt began for, while it is open. */
  readonly attemptTurnId: string | null;
  readonly open: OpenTurn | null;
  /** Accepted, waiting behind the open turn, in order. */
  readonly queue: readonly OpenTurn[];
  readonly recent: readonly PastTurn[];
  /** How the last turns ended, newest last. */
  readonly ended: readonly { readonly turnId: string; readonly status: TurnEnding }[];
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
  ended: [],
});
