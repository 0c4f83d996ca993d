import type { AgentPhase, AgentState, TurnPhase } from './agent-definition.js';
import { PHASE_APPROVALS, movePhase, phaseAfter } from './agent-phases.js';
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
  readonly phase: TurnPhase | null;
  /** Open approvals of these turns, with the turn of each. */
  readonly approvals: ReadonlyMap<string, string>;
}

/** An agent without facts of its own, such as a configured one before its first start. */
export const initialActivity: AgentActivity = {
  life: 'ready',
  turns: new Set(),
  phase: null,
  approvals: new Map(),
};

/** One fact of an agent or of a turn in one of its sessions. */
export interface ActivityFact {
  readonly type: string;
  /** Turn of the fact; null for a fact of the agent. */
  readonly turnId: string | null;
  /** Of a completed model call; else `none`. */
  readonly speech: Speech;
  /** Approval that the fact opens or closes. */
  readonly approvalId?: string | null;
}

const turnsAfter = (turns: ReadonlySet<string>, type: string, turnId: string): ReadonlySet<string> => {
  if (type === 'TurnRequested') return new Set([...turns, turnId]);
  return isTurnEnd(type) ? new Set([...turns].filter((id) => id !== turnId)) : turns;
};

const OPENING = 'ApprovalRequested';
const APPROVALS: ReadonlySet<string> = new Set(PHASE_APPROVALS);

/** Returns the open approvals after a fact of a turn. The end of the turn closes them. */
const approvalsAfter = (
  { approvals, turns }: AgentActivity,
  { type, turnId, approvalId = null }: ActivityFact,
): ReadonlyMap<string, string> => {
  if (turnId !== null && isTurnEnd(type))
    return approvals.size === 0 ? approvals : new Map([...approvals].filter(([, turn]) => turn !== turnId));
  if (approvalId === null || turnId === null || !APPROVALS.has(type)) return approvals;
  const others = [...approvals].filter(([id]) => id !== approvalId);
  return new Map(type === OPENING && turns.has(turnId) ? [...others, [approvalId, turnId]] : others);
};

/** Returns the activity of an agent after a fact. */
export const foldActivity = (activity: AgentActivity, fact: ActivityFact): AgentActivity => {
  const { type, turnId } = fact;
  const life = lifeAfter(type);
  if (life !== undefined) return { ...activity, life };
  if (turnId === null) return activity;
  const turns = turnsAfter(activity.turns, type, turnId);
  const phase = phaseAfter(activity.phase, fact, turns.size);
  return { ...activity, turns, phase, approvals: approvalsAfter(activity, fact) };
};

/** Returns the activity after the first text of an answer, which the log does not have yet. */
export const speak = (activity: AgentActivity, turnId: string): AgentActivity =>
  activity.turns.has(turnId) ? { ...activity, phase: movePhase(activity.phase, 'speaking') } : activity;

/** Returns the state of an agent as clients see it. The phase is null unless it works. */
export const stateOf = ({
  life,
  turns,
  phase,
  approvals,
}: AgentActivity): { state: AgentState; phase: AgentPhase | null } => {
  if (life !== 'ready') return { state: life, phase: null };
  if (turns.size === 0) return { state: 'idle', phase: null };
  return { state: 'working', phase: approvals.size > 0 ? 'waiting' : phase };
};
