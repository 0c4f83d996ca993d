import type { AgentPhase, AgentState } from './agent-definition.js';
import { movePhase, phaseAfter } from './agent-phases.js';
import type { Speech } from './agent-phases.js';
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

/** The facts of one agent, folded. */
export interface AgentActivity {
  readonly life: AgentLife;
  /** Open turns of all its sessions. */
  readonly turns: ReadonlySet<string>;
  /** Phase of the turn with the newest event; null without an open turn. */
  readonly phase: AgentPhase | null;
}

/** An agent without facts of its own, such as a configured one before its first start. */
export const initialActivity: AgentActivity = { life: 'ready', turns: new Set(), phase: null };

/** One fact of an agent or of a turn in one of its sessions. */
export interface ActivityFact {
  readonly type: string;
  /** Turn of the fact; null for a fact of the agent. */
  readonly turnId: string | null;
  /** Of a completed model call; else `none`. */
  readonly speech: Speech;
}

const turnsAfter = (turns: ReadonlySet<string>, type: string, turnId: string): ReadonlySet<string> => {
  if (type === 'TurnRequested') return new Set([...turns, turnId]);
  return isTurnEnd(type) ? new Set([...turns].filter((id) => id !== turnId)) : turns;
};

/** Returns the activity of an agent after a fact. */
export const foldActivity = (activity: AgentActivity, fact: ActivityFact): AgentActivity => {
  const { type, turnId } = fact;
  const life = lifeAfter(type);
  if (life !== undefined) return { ...activity, life };
  if (turnId === null) return activity;
  const turns = turnsAfter(activity.turns, type, turnId);
  return { ...activity, turns, phase: phaseAfter(activity.phase, fact, turns.size) };
};

/** Returns the activity after the first text of an answer, which the log does not have yet. */
export const speak = (activity: AgentActivity, turnId: string): AgentActivity =>
  activity.turns.has(turnId) ? { ...activity, phase: movePhase(activity.phase, 'speaking') } : activity;

/** Returns the state of an agent as clients see it. The phase is null unless it works. */
export const stateOf = ({
  life,
  turns,
  phase,
}: AgentActivity): { state: AgentState; phase: AgentPhase | null } => {
  if (life !== 'ready') return { state: life, phase: null };
  return turns.size === 0 ? { state: 'idle', phase: null } : { state: 'working', phase };
};
