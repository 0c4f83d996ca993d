import type { AnswerCut } from '@antiphon/contracts/agent';
import type { JsonValue } from '@antiphon/kernel';
import type { Cause } from '@antiphon/contracts/causes';
import type { OpenCircuits } from '@antiphon/providers-domain';
import type { BlockedBy, OpenCall, TurnToolCall } from '../session/session-state.js';

export interface ModelChoice {
  readonly provider: string;
  readonly model: string;
}

/** Calls that need an approval, by the name of their tool and its arguments. */
export interface Guards {
  readonly has: (tool: string, input: JsonValue) => boolean;
}

/** Settings of an agent that its turns depend on. */
export interface AgentPolicy extends ModelChoice {
  readonly fallback: ModelChoice | null;
  /** Maximum number of model calls in one turn. */
  readonly maxIterations: number;
  readonly openCircuits: OpenCircuits;
  readonly guarded: Guards;
  /** True if the agent has the tool `hand_over`. Absent: false. */
  readonly canHandOver?: boolean;
  /** Why the agent may not continue. Absent for an agent that may. */
  readonly halt?: AgentHalt;
  /** Reason of the halt `paused`, for the clients of its turns. */
  readonly blocked?: BlockedBy;
  /** The one turn of an agent in error that is tried. */
  readonly trialTurnId?: string;
}

/**
 * Reason for holding the turns of an agent. `paused` includes an agent in an error; `unknown` is
 * one whose facts this process has not read.
 */
export type AgentHalt = 'paused' | 'terminated' | 'unknown';

/** Calls that this driver started under its own epoch. Empty after it took a session over. */
export interface InFlight {
  readonly attempt: number | null;
  readonly calls: ReadonlySet<string>;
}
export const NOTHING_IN_FLIGHT: InFlight = { attempt: null, calls: new Set() };

/**
 * Starts a model call. `failures` counts failed tries at this provider, for the backoff before it.
 */
export interface BeginCall extends ModelChoice {
  readonly kind: 'begin_call';
  readonly turnId: string;
  readonly step: number;
  readonly tryNumber: number;
  readonly failures: number;
  /** Number of tries of this step whose process was lost. */
  readonly lostDrivers: number;
}

export interface FailTurn {
  readonly kind: 'fail';
  readonly turnId: string;
  readonly code: string;
  readonly cause: Cause;
}

interface ToolsStep<Kind extends string> {
  readonly kind: Kind;
  readonly turnId: string;
  readonly calls: readonly TurnToolCall[];
}

/** Next action of a session's driver. */
export type Step =
  | { readonly kind: 'idle' }
  | BeginCall
  /** Runs a call that this driver started. */
  | { readonly kind: 'run_call'; readonly call: OpenCall }
  /** Aborts a call whose driver is gone: its outcome is lost. */
  | { readonly kind: 'abandon_call'; readonly call: OpenCall }
  /** Requests approvals before the calls of a step. */
  | ToolsStep<'request_approvals'>
  /** Waits for approvals. No process has to drive the session until then. */
  | ToolsStep<'await_approvals'>
  | ToolsStep<'request_tools'>
  | ToolsStep<'run_tools'>
  /** Counts a lost process for calls, before this one makes or prepares them. */
  | ToolsStep<'restart_tools'>
  /** Fails calls that have lost too many processes: they may be the cause. */
  | ToolsStep<'fail_tools'>
  /** Records an unknown outcome for calls of a lost driver that must not be repeated. */
  | ToolsStep<'abandon_tools'>
  /** Waits for the scheduled retry of tool calls. The driver has nothing to do until then. */
  | ToolsStep<'await_tools'>
  /** Records why turns wait for their agent. */
  | ({ readonly kind: 'block'; readonly turnId: string; readonly turnIds: readonly string[] } & BlockedBy)
  /** Waits until the agent is resumed. No process has to drive the session until then. */
  | { readonly kind: 'await_resume'; readonly turnId: string }
  /** Makes the answer of another agent, the result of `call`, the answer of the turn. */
  | { readonly kind: 'forward'; readonly turnId: string; readonly call: TurnToolCall }
  /** Returns an answer to the agent that promises a hand-over without making it. */
  | { readonly kind: 'return_answer'; readonly turnId: string; readonly cause: Cause }
  | { readonly kind: 'complete'; readonly turnId: string; readonly cutBy?: AnswerCut }
  | { readonly kind: 'cancel'; readonly turnId: string }
  | FailTurn;
