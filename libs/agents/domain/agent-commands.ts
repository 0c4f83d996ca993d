import type { Cause } from '@antiphon/contracts/causes';
import type { AgentDefinition, AgentOverrides, AgentResult } from '@antiphon/contracts/agent';

interface Change<T extends string, Data = Record<never, never>> {
  readonly type: T;
  readonly agentId: string;
  readonly actor: string;
  readonly reason: string | null;
  /** Reason of the runtime or the configuration, in place of `reason`. */
  readonly cause?: Cause;
  readonly now: string;
  readonly data: Data;
}

export type SpawnAgent = Change<
  'Spawn',
  {
    readonly definition: AgentDefinition;
    readonly origin: 'configuration' | 'request';
    readonly parentId: string | null;
    readonly rootId: string;
    readonly depth: number;
  }
>;
export type RedefineAgent = Change<'Redefine', { readonly definition: AgentDefinition }>;
export type SetOverrides = Change<'SetOverrides', { readonly overrides: AgentOverrides }>;
export type PauseAgent = Change<'Pause', { readonly with?: string }>;
interface TurnRef {
  readonly sessionId: string;
  readonly turnId: string;
}
export type FailAgent = Change<'Fail', TurnRef & { readonly code: string; readonly retryAt: string }>;
/** Tries one waiting turn of an agent in error. */
export type StartTrial = Change<'StartTrial', TurnRef>;
export type MarkUnresponsive = Change<'MarkUnresponsive', { readonly lastSeenAt: string }>;
export type BlockAgent = Change<
  'Block',
  {
    readonly code: string;
    readonly sessionId: string;
    readonly turnId: string;
    readonly chain: readonly string[];
  }
>;
export type TerminateAgent = Change<'Terminate', { readonly result: AgentResult | null }>;
export type AgentCommand =
  | SpawnAgent
  | Change<'MarkReady'>
  | RedefineAgent
  | SetOverrides
  | PauseAgent
  | Change<'Resume'>
  | FailAgent
  | StartTrial
  | MarkUnresponsive
  | Change<'MarkResponsive'>
  | BlockAgent
  | TerminateAgent;
