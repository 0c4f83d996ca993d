import type { AgentState, TurnPhase } from '@antiphon/contracts/agent';
import { agentStateOf } from './agent.decider.js';
import type { AgentStatus } from './agent.decider.js';

/** Activity of an agent, from the events of its turns. */
export interface Activity {
  /** Open turns of all its sessions, with those that wait behind another one. */
  readonly openTurns: number;
  /** Phase of the turn with the newest event; null without an open turn. */
  readonly phase: TurnPhase | null;
}

export const NO_TURNS: Activity = { openTurns: 0, phase: null };

/** State and phase of an agent as clients see them. */
export interface VisibleState {
  readonly state: AgentState | null;
  readonly phase: TurnPhase | null;
}

/** Returns the visible state; the phase is null unless the agent works. */
export const visibleState = (status: AgentStatus, { openTurns, phase }: Activity): VisibleState => {
  const state = agentStateOf(status, openTurns > 0);
  return { state, phase: state === 'working' ? phase : null };
};
