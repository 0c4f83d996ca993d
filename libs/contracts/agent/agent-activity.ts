import type { AgentPhase, AgentState } from './agent-definition.js';
import { isTurnEnd } from './turn-ends.js';

/** Life of an agent apart from its turns. A `ready` agent is idle, or works on open turns. */
export type AgentLife = 'spawning' | 'ready' | 'paused' | 'error' | 'terminated';

const LIFE_AFTER: Readonly<Record<string, AgentLife>> = {
  AgentSpawned: 'spawning',
  AgentReady: 'ready',
  AgentPaused: 'paused',
  AgentResumed: 'ready',
  AgentFailed: 'error',
  AgentTerminated: 'terminated',
};

/** Types of events after which an agent has another life. */
export const LIFE_EVENTS: readonly string[] = Object.keys(LIFE_AFTER);

/** Returns the life of an agent after an event of it; undefined if the event does not change it. */
export const lifeAfter = (type: string): AgentLife | undefined =>
  Object.hasOwn(LIFE_AFTER, type) ? LIFE_AFTER[type] : undefined;

/** Types of session events that begin, end or change the phase of a turn. */
export const PHASE_EVENTS = [
  'TurnRequested',
  'ModelCallStarted',
  'ModelCallCompleted',
  'ModelCallAborted',
  'ToolCallUnknown',
] as const;

/**
 * Returns the phase of a turn after an event of it; undefined if the event does not change it.
 * `hasText` is true for a completed model call with text.
 */
export const phaseAfter = (type: string, hasText: boolean): AgentPhase | undefined => {
  switch (type) {
    case 'TurnRequested':
      return 'listening';
    case 'ModelCallStarted':
      return 'thinking';
    case 'ModelCallCompleted':
      return hasText ? 'speaking' : undefined;
    case 'ModelCallAborted':
    case 'ToolCallUnknown':
      return 'error';
    default:
      return undefined;
  }
};

/** The facts of one agent, folded. */
export interface AgentActivity {
  readonly life: AgentLife;
  /** Phase of each open turn, oldest first. */
  readonly turns: ReadonlyMap<string, AgentPhase>;
}

/** An agent without facts of its own, such as a configured one before its first start. */
export const initialActivity: AgentActivity = { life: 'ready', turns: new Map() };

/** One fact of an agent or of a turn in one of its sessions. */
export interface ActivityFact {
  readonly type: string;
  /** Turn of the fact; null for a fact of the agent. */
  readonly turnId: string | null;
  readonly hasText: boolean;
}

/** Returns the activity of an agent after a fact, the same object if nothing changes. */
export const foldActivity = (
  activity: AgentActivity,
  { type, turnId, hasText }: ActivityFact,
): AgentActivity => {
  const life = lifeAfter(type);
  if (life !== undefined) return life === activity.life ? activity : { ...activity, life };
  if (turnId === null) return activity;
  const isOpen = activity.turns.has(turnId);
  if (isTurnEnd(type)) {
    if (!isOpen) return activity;
    return { ...activity, turns: new Map([...activity.turns].filter(([id]) => id !== turnId)) };
  }
  const phase = phaseAfter(type, hasText);
  if (phase === undefined || (!isOpen && type !== 'TurnRequested')) return activity;
  return { ...activity, turns: new Map([...activity.turns, [turnId, phase]]) };
};

/** Returns the state of an agent, and the phase of its newest open turn that has begun. */
export const stateOf = ({ life, turns }: AgentActivity): { state: AgentState; phase: AgentPhase | null } => {
  if (life !== 'ready') return { state: life, phase: null };
  if (turns.size === 0) return { state: 'idle', phase: null };
  const phases = [...turns.values()];
  // Turns of a session wait for each other: those that only listen are behind one that works.
  return { state: 'working', phase: phases.findLast((phase) => phase !== 'listening') ?? 'listening' };
};
