import { causedError } from '@antiphon/contracts/causes';
import { textOf } from '@antiphon/contracts/causes';
import type {
  AgentDefinition,
  AgentEvent,
  AgentOverrides,
  AgentResult,
  AgentState,
} from '@antiphon/contracts/agent';
import { assertNever, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';
import type { AgentCommand } from './agent-commands.js';

const schemaVersion = 1;

/** States that the facts of an agent have. `ready` is `idle` or `working`, by its open turns. */
export const AGENT_STATUSES = ['none', 'spawning', 'ready', 'paused', 'error', 'terminated'] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** Why an agent is in the state `error`, and how that ends. */
export interface AgentFailure {
  readonly code: string;
  /** Number of failures in a row. */
  readonly count: number;
  /** Time from which one waiting turn is tried, ISO 8601. */
  readonly retryAt: string;
  /** The turn that is tried; null before. */
  readonly trial: { readonly sessionId: string; readonly turnId: string; readonly since: string } | null;
}

/** Time for which an agent is held after its first failure, ms. Each further one doubles it. */
const FIRST_HOLD_MS = 5_000;
const MAX_HOLD_MS = 600_000;

/** Returns the time for which an agent is held after that many failures in a row, ms. */
export const holdMs = (failures: number): number =>
  Math.min(MAX_HOLD_MS, FIRST_HOLD_MS * 2 ** Math.min(failures - 1, 20));

/** Lifecycle of one agent. */
export interface AgentRecord {
  readonly status: AgentStatus;
  /** Its definition with what was set at run time. */
  readonly definition: AgentDefinition | null;
  /** Present while a field is set at run time. */
  readonly overrides?: AgentOverrides;
  /** The definition without them. Present with them. */
  readonly own?: AgentDefinition;
  readonly origin: 'configuration' | 'request';
  readonly parentId: string | null;
  readonly rootId: string;
  readonly depth: number;
  readonly spawnedAt: string;
  readonly spawnedBy: string;
  /** Actor and reason of the last change of state. */
  readonly actor: string;
  readonly reason: string | null;
  readonly changedAt: string;
  /** Ancestor whose pause reached the agent; null for a pause of its own. */
  readonly pausedWith: string | null;
  /** True between `AgentUnresponsive` and `AgentResponsive`. */
  readonly isUnresponsive: boolean;
  readonly result: AgentResult | null;
  /** Absent unless the status is `error`. */
  readonly failure?: AgentFailure;
}

export const initialAgent = (): AgentRecord => ({
  status: 'none',
  definition: null,
  origin: 'request',
  parentId: null,
  rootId: '',
  depth: 0,
  spawnedAt: '',
  spawnedBy: '',
  actor: '',
  reason: null,
  changedAt: '',
  pausedWith: null,
  isUnresponsive: false,
  result: null,
});

/** Returns the state of an agent that clients see, or null for one that does not exist. */
export const agentStateOf = (status: AgentStatus, isWorking: boolean): AgentState | null => {
  if (status === 'none') return null;
  if (status === 'ready') return isWorking ? 'working' : 'idle';
  return status;
};

type Target = 'spawning' | 'idle' | 'paused' | 'error' | 'terminated';

/** Statuses from which a command changes an agent, where it changes nothing, and its target. */
interface Rule {
  readonly from: readonly AgentStatus[];
  readonly repeats: readonly AgentStatus[];
  readonly to: Target | null;
}
const LIVING = ['spawning', 'ready', 'paused', 'error'] as const;

/** The machine: every other pair of status and command is refused. */
export const AGENT_RULES: Readonly<Record<AgentCommand['type'], Rule>> = {
  Spawn: { from: ['none'], repeats: [], to: 'spawning' },
  MarkReady: { from: ['spawning'], repeats: ['ready'], to: 'idle' },
  Redefine: { from: LIVING, repeats: [], to: null },
  SetOverrides: { from: LIVING, repeats: [], to: null },
  Pause: { from: ['ready'], repeats: ['paused'], to: 'paused' },
  Resume: { from: ['paused', 'error'], repeats: ['ready'], to: 'idle' },
  // A paused agent stays paused: the end of an error would start it.
  Fail: { from: ['spawning', 'ready'], repeats: ['paused', 'error'], to: 'error' },
  StartTrial: { from: ['error'], repeats: ['spawning', 'ready', 'paused'], to: 'error' },
  MarkUnresponsive: { from: ['ready', 'paused'], repeats: ['spawning', 'error', 'terminated'], to: null },
  MarkResponsive: { from: ['ready', 'paused'], repeats: ['spawning', 'error', 'terminated'], to: null },
  Block: { from: LIVING, repeats: ['terminated'], to: null },
  Terminate: { from: LIVING, repeats: ['terminated'], to: 'terminated' },
};

const publicName = (status: AgentStatus): string => agentStateOf(status, false) ?? 'none';

/** Returns the number of failures in a row that the failure of a turn makes. */
export const failuresWith = ({ failure }: AgentRecord, turnId: string): number =>
  failure?.trial?.turnId === turnId ? failure.count + 1 : 1;

/** Returns true if the command changes an agent with this status; false where it changes nothing. */
const isChange = (command: AgentCommand, { status, failure }: AgentRecord): boolean => {
  const { type, agentId } = command;
  const { from, repeats, to } = AGENT_RULES[type];
  // The failure of a trial lengthens the error. Another turn of the agent may fail in the meantime.
  if (type === 'Fail' && status === 'error') return failure?.trial?.turnId === command.data.turnId;
  if (type === 'StartTrial' && status === 'error')
    return failure !== undefined && failure.trial === null && failure.retryAt <= command.now;
  if (from.includes(status)) return true;
  if (repeats.includes(status)) return false;
  const target = to ?? publicName(status);
  const change = { agentId, from: publicName(status), to: target };
  const cause = { kind: 'agent_cannot_change', ...change, command: type } as const;
  throw causedError(rejected, 'AGENT.STATE_CONFLICT', cause, change);
};

const toEvent = (command: AgentCommand, agent: AgentRecord): AgentEvent => {
  const { agentId, actor, reason, cause, now: at } = command;
  const change = { agentId, actor, reason, ...(cause ? { cause } : {}), at };
  switch (command.type) {
    case 'Spawn':
      return { type: 'AgentSpawned', schemaVersion, data: { ...change, ...command.data } };
    case 'MarkReady':
      return { type: 'AgentReady', schemaVersion, data: change };
    case 'Redefine':
      return { type: 'AgentRedefined', schemaVersion, data: { ...change, ...command.data } };
    case 'SetOverrides':
      return { type: 'AgentOverridesSet', schemaVersion, data: { ...change, ...command.data } };
    case 'Pause':
      return { type: 'AgentPaused', schemaVersion, data: { ...change, ...command.data } };
    case 'Resume':
      return { type: 'AgentResumed', schemaVersion, data: change };
    case 'Fail':
      return {
        type: 'AgentFailed',
        schemaVersion,
        data: { ...change, ...command.data, failures: failuresWith(agent, command.data.turnId) },
      };
    case 'StartTrial':
      return { type: 'AgentTrialStarted', schemaVersion, data: { ...change, ...command.data } };
    case 'MarkUnresponsive':
      return { type: 'AgentUnresponsive', schemaVersion, data: { ...change, ...command.data } };
    case 'MarkResponsive':
      return { type: 'AgentResponsive', schemaVersion, data: change };
    case 'Block':
      return {
        type: 'AgentBlocked',
        schemaVersion,
        data: { ...change, ...command.data, chain: [...command.data.chain] },
      };
    case 'Terminate':
      return { type: 'AgentTerminated', schemaVersion, data: { ...change, ...command.data } };
    default:
      return assertNever(command);
  }
};

const decide = (command: AgentCommand, agent: AgentRecord): AgentEvent[] => {
  if (!isChange(command, agent)) return [];
  if (command.type === 'MarkUnresponsive' && agent.isUnresponsive) return [];
  if (command.type === 'MarkResponsive' && !agent.isUnresponsive) return [];
  return [toEvent(command, agent)];
};

const NEXT: Readonly<
  Partial<Record<AgentEvent['type'], readonly [from: readonly AgentStatus[], to: AgentStatus]>>
> = {
  AgentSpawned: [['none'], 'spawning'],
  AgentReady: [['spawning'], 'ready'],
  AgentPaused: [['ready'], 'paused'],
  AgentResumed: [['paused', 'error'], 'ready'],
  // Facts of earlier versions have it after a pause.
  AgentFailed: [['spawning', 'ready', 'paused', 'error'], 'error'],
  AgentTerminated: [LIVING, 'terminated'],
};

const spawnedFields = ({ data }: Extract<AgentEvent, { type: 'AgentSpawned' }>): Partial<AgentRecord> => {
  const { definition, origin, parentId, rootId, depth, actor, at } = data;
  return { definition, origin, parentId, rootId, depth, spawnedAt: at, spawnedBy: actor };
};

const startTrial = (
  agent: AgentRecord,
  { data }: Extract<AgentEvent, { type: 'AgentTrialStarted' }>,
): AgentRecord => {
  const { sessionId, turnId, at: since } = data;
  return agent.failure
    ? { ...agent, failure: { ...agent.failure, trial: { sessionId, turnId, since } } }
    : agent;
};

/** Returns the fields of an event that are not common to all changes of state. */
const ownFields = (event: AgentEvent): Partial<AgentRecord> => {
  switch (event.type) {
    case 'AgentSpawned':
      return spawnedFields(event);
    case 'AgentPaused':
      return { pausedWith: event.data.with ?? null };
    case 'AgentResumed':
      return { pausedWith: null, isUnresponsive: false };
    case 'AgentFailed': {
      const { code, failures: count = 1, retryAt = event.data.at } = event.data;
      return { failure: { code, count, retryAt, trial: null } };
    }
    case 'AgentTerminated':
      return { result: event.data.result, isUnresponsive: false };
    default:
      return {};
  }
};

const redefine = (
  { own: _own, overrides: _overrides, ...agent }: AgentRecord,
  own: AgentDefinition | null,
  overrides: AgentOverrides,
): AgentRecord => {
  if (own === null || Object.keys(overrides).length === 0) return { ...agent, definition: own };
  return { ...agent, definition: { ...own, ...overrides }, own, overrides };
};

const evolve = (agent: AgentRecord, event: AgentEvent): AgentRecord => {
  const next = NEXT[event.type];
  if (next) {
    const [from, status] = next;
    // A fact that does not fit changes nothing: no fold reaches a state that is not declared.
    if (!from.includes(agent.status)) return agent;
    const { actor, cause, at: changedAt } = event.data;
    const reason = cause ? textOf(cause) : event.data.reason;
    const { failure: _ended, ...kept } = agent;
    return { ...kept, status, actor, reason, changedAt, ...ownFields(event) };
  }
  if (agent.status === 'none' || agent.status === 'terminated') return agent;
  if (event.type === 'AgentTrialStarted') return startTrial(agent, event);
  if (event.type === 'AgentRedefined') return redefine(agent, event.data.definition, agent.overrides ?? {});
  if (event.type === 'AgentOverridesSet')
    return redefine(agent, agent.own ?? agent.definition, event.data.overrides);
  if (event.type === 'AgentUnresponsive') return { ...agent, isUnresponsive: true };
  return event.type === 'AgentResponsive' ? { ...agent, isUnresponsive: false } : agent;
};

/**
 * Decides changes of an agent's lifecycle. A repeated change adds no fact. An illegal one throws
 * `AGENT.STATE_CONFLICT` with both states.
 */
export const agentDecider: Decider<AgentRecord, AgentCommand, AgentEvent> = {
  initialState: initialAgent,
  decide,
  evolve,
};
