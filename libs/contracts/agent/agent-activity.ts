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

const phaseAfter = ({ type, hasText }: ActivityFact): AgentPhase | null => {
  switch (type) {
    case 'ModelCallStarted':
      return 'thinking';
    case 'ModelCallCompleted':
      return hasText ? 'speaking' : null;
    case 'ModelCallAborted':
    case 'ToolCallUnknown':
      return 'error';
    default:
      return null;
  }
};

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
  /** True for a completed model call with text. */
  readonly hasText: boolean;
}

const without = (turns: ReadonlySet<string>, turnId: string): ReadonlySet<string> =>
  new Set([...turns].filter((id) => id !== turnId));

/** Returns the activity of an agent after a fact. */
export const foldActivity = (activity: AgentActivity, fact: ActivityFact): AgentActivity => {
  const { type, turnId } = fact;
  const life = lifeAfter(type);
  if (life !== undefined) return { ...activity, life };
  if (turnId === null) return activity;
  const { turns, phase } = activity;
  if (type === 'TurnRequested')
    return { ...activity, turns: new Set([...turns, turnId]), phase: turns.size === 0 ? 'listening' : phase };
  if (!isTurnEnd(type)) return { ...activity, phase: phaseAfter(fact) ?? phase };
  const open = without(turns, turnId);
  return { ...activity, turns: open, phase: open.size === 0 ? null : phase };
};

/** Returns the state of an agent as clients see it. The phase is null unless it works. */
export const stateOf = ({
  life,
  turns,
  phase,
}: AgentActivity): { state: AgentState; phase: AgentPhase | null } => {
  if (life !== 'ready') return { state: life, phase: null };
  return turns.size === 0 ? { state: 'idle', phase: null } : { state: 'working', phase };
};
