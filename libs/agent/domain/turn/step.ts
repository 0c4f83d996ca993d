import type { OpenCircuits } from '../circuit-breaker.js';
import type { OpenCall, TurnToolCall } from '../session/session-state.js';

export interface ModelChoice {
  readonly provider: string;
  readonly model: string;
}

/** What of an agent's configuration a turn depends on. */
export interface AgentPolicy extends ModelChoice {
  readonly fallback: ModelChoice | null;
  /** Model calls in one turn at most. */
  readonly maxIterations: number;
  /** Providers that are not asked now. */
  readonly openCircuits: OpenCircuits;
  /** Tools whose calls wait for somebody's word. */
  readonly guarded: ReadonlySet<string>;
}

/** What this driver itself began, under its own epoch; empty for one that has just taken a session over. */
export interface InFlight {
  readonly attempt: number | null;
  readonly calls: ReadonlySet<string>;
}
export const NOTHING_IN_FLIGHT: InFlight = { attempt: null, calls: new Set() };

/** A model call to be started. `failures`: tries that this provider has failed already, for the wait before it. */
export interface BeginCall extends ModelChoice {
  readonly kind: 'begin_call';
  readonly turnId: string;
  readonly step: number;
  readonly tryNumber: number;
  readonly failures: number;
}

export interface FailTurn {
  readonly kind: 'fail';
  readonly turnId: string;
  readonly code: string;
  readonly message: string;
}

interface ToolsStep<Kind extends string> {
  readonly kind: Kind;
  readonly turnId: string;
  readonly calls: readonly TurnToolCall[];
}

/** What has to happen next in a session. */
export type Step =
  | { readonly kind: 'idle' }
  | BeginCall
  /** This driver's own started call: carry it out. */
  | { readonly kind: 'run_call'; readonly call: OpenCall }
  /** A call whose driver is gone: nobody will ever know its outcome. */
  | { readonly kind: 'abandon_call'; readonly call: OpenCall }
  /** Somebody has to be asked first. */
  | ToolsStep<'request_approvals'>
  /** Somebody was asked: nothing is done until there is an answer, and nobody need drive. */
  | ToolsStep<'await_approvals'>
  | ToolsStep<'request_tools'>
  | ToolsStep<'run_tools'>
  /** Requested by a driver that is gone, and not to be made twice. */
  | ToolsStep<'abandon_tools'>
  /** Calls whose next try is due some time: there is nothing to do for the driver until then. */
  | ToolsStep<'await_tools'>
  | { readonly kind: 'complete'; readonly turnId: string }
  | { readonly kind: 'cancel'; readonly turnId: string }
  | FailTurn;
