import type { AgentPhase, AgentState } from '@antiphon/contracts/agent';
import { agentStateOf } from './agent.decider.js';
import type { AgentStatus } from './agent.decider.js';

/** Activity of an agent, from the events of its turns. */
export interface Activity {
  /** Open turns of all its sessions, with those that wait behind another one. */
  readonly openTurns: number;
  /** Phase of the turn with the newest event; null without an open turn. */
  readonly phase: AgentPhase | null;
}

export const NO_TURNS: Activity = { openTurns: 0, phase: null };

/** Event of a session, of which the activity reads its type and `text` only. */
export interface ActivityEvent {
  readonly type: string;
  readonly data: object;
}

const TURN_ENDS: ReadonlySet<string> = new Set(['TurnCompleted', 'TurnFailed', 'TurnCancelled']);

const phaseAfter = ({ type, data }: ActivityEvent): AgentPhase | null => {
  switch (type) {
    case 'ModelCallStarted':
      return 'thinking';
    case 'ModelCallCompleted':
      return 'text' in data && data.text === '' ? null : 'speaking';
    case 'ModelCallAborted':
    case 'ToolCallUnknown':
      return 'error';
    default:
      return null;
  }
};

/** Returns the activity of an agent after an event of one of its sessions. */
export const evolveActivity = (activity: Activity, event: ActivityEvent): Activity => {
  if (event.type === 'TurnRequested')
    return {
      openTurns: activity.openTurns + 1,
      phase: activity.openTurns === 0 ? 'listening' : activity.phase,
    };
  if (TURN_ENDS.has(event.type)) {
    const openTurns = Math.max(0, activity.openTurns - 1);
    return { openTurns, phase: openTurns === 0 ? null : activity.phase };
  }
  return { ...activity, phase: phaseAfter(event) ?? activity.phase };
};

/** State and phase of an agent as clients see them. */
export interface VisibleState {
  readonly state: AgentState | null;
  readonly phase: AgentPhase | null;
}

/** Returns the visible state; the phase is null unless the agent works. */
export const visibleState = (status: AgentStatus, { openTurns, phase }: Activity): VisibleState => {
  const state = agentStateOf(status, openTurns > 0);
  return { state, phase: state === 'working' ? phase : null };
};
