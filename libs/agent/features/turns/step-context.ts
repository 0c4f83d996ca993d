import type { AgentConfig } from '@antiphon/config';
import type { OpenCall } from '@antiphon/agent-domain';
import type { TurnFailpoint } from '@antiphon/kernel';
import type { StepDeps } from './turn-steps.js';
import type { PreparedCall } from './prepare-call.js';
import type { SessionActor } from '../sessions/session-actor.js';
import type { TurnContext } from './turn-context.js';

/** A point at which a test may kill or stop the process. Outside of tests it does nothing. */
export type Failpoint = (name: TurnFailpoint, sessionId: string) => Promise<void>;

/** What one step of driving works with. */
export interface StepContext {
  readonly services: StepDeps;
  readonly actor: SessionActor;
  /** Null when the session's agent is not configured any more: nothing is begun for it then. */
  readonly agent: AgentConfig | null;
  /** Aborted, with a `StopReason`, when the work has lost its point. */
  readonly signal: AbortSignal;
  /** The context of the open turn, asked for once. */
  readonly context: () => Promise<TurnContext>;
  /** What was made ready for a call while its start was being committed; null when nothing was. */
  readonly readyAhead: (call: OpenCall) => Promise<PreparedCall | null>;
  /** Proves that the session is still this process's before something outside is set going; throws `Stopped`. */
  readonly confirm: () => Promise<void>;
}
