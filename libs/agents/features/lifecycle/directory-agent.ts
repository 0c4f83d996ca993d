import { causedError } from '@antiphon/contracts/causes';
import { AgentEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { agentDecider } from '@antiphon/agents-domain';
import type { AgentFailure, AgentRecord, AgentStatus } from '@antiphon/agents-domain';
import type { AgentConfig } from '@antiphon/config';
import { rejected } from '@antiphon/kernel';
import { ownCallLimits } from './own-call-limits.js';

/** An agent as turns see it: the configuration of `base` with the definition of its facts. */
export interface DirectoryAgent extends AgentConfig {
  /** Configured agent whose approval rules and tool limits apply; its own id for a configured one. */
  readonly base: string;
  /** Texts of the identity files of a spawned agent. Null means the files of `base`. */
  readonly identity: NonNullable<AgentRecord['definition']>['identity'];
  /** `none`: a configured agent whose facts are not recorded yet. It works as `ready` does. */
  readonly status: AgentStatus;
  /** Reason of the last change of its state. */
  readonly stateReason: string | null;
  /** Present in the state `error`. */
  readonly failure?: AgentFailure;
  /** Agents that its spawn request limits it to; absent for no limit. */
  readonly ownContacts?: readonly string[];
  /** Present if it was spawned with limits of its model calls: the limit of `base` that stays. */
  readonly ownLimits?: { readonly baseConcurrentCalls: number | undefined };
  readonly rootId: string;
  readonly parentId: string | null;
  readonly depth: number;
  /** The agent and its ancestors, the root last. */
  readonly chain: readonly string[];
}

/** Facts of an agent, folded from its event stream. */
export interface AgentFacts {
  readonly record: AgentRecord;
  /** Version of the event stream; 0 without one. */
  readonly version: number;
}

/** Returns the size of an agent in the cache, characters. */
export const charsOf = ({ record: { definition } }: AgentFacts): number => {
  const { systemPrompt = null, identity = null } = definition ?? {};
  const texts = [systemPrompt, identity?.soul, identity?.agent, identity?.identity, identity?.user];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 500);
};

/** Folds the events of an agent. Ignores events of a newer version. */
export const foldAgent = (events: Parameters<typeof upcast>[0][]): AgentRecord =>
  events.reduce((record, event) => {
    const parsed = AgentEvent.safeParse(upcast(event));
    return parsed.success ? agentDecider.evolve(record, parsed.data) : record;
  }, agentDecider.initialState());

const stateOf = ({
  status,
  reason,
  failure,
}: AgentRecord): Pick<DirectoryAgent, 'status' | 'stateReason' | 'failure'> => ({
  ...{ status, stateReason: reason },
  ...(failure ? { failure } : {}),
});

/** Returns a configured agent with the limits that a spawned one was given. */
const withCallLimits = (
  base: AgentConfig,
  limits: NonNullable<AgentRecord['definition']>['callLimits'],
): AgentConfig & Pick<DirectoryAgent, 'ownLimits'> => {
  if (!limits) return base;
  const { concurrentCalls: baseConcurrentCalls, ...rest } = base;
  return { ...rest, ...ownCallLimits(limits), ownLimits: { baseConcurrentCalls } };
};

/**
 * Returns an agent of facts as turns see it; null for an agent without facts, and for one whose
 * base is not configured.
 */
export const toSpawned = (
  agentId: string,
  record: AgentRecord,
  agents: readonly AgentConfig[],
  chain: readonly string[],
): DirectoryAgent | null => {
  const { definition, rootId, parentId, depth } = record;
  const base = agents.find(({ id }) => id === definition?.base);
  if (!definition || !base) return null;
  const { name, role, provider, model, systemPrompt, tools, capabilities, position } = definition;
  const { maxIterations, fallback, identity, budget } = definition;
  const own = { name, role, provider, model, systemPrompt, tools, capabilities, position };
  const tree = { ...stateOf(record), rootId, parentId, depth, chain };
  const limits = definition.contacts ? { ownContacts: definition.contacts } : {};
  const thinking = definition.thinking ? { thinking: definition.thinking } : {};
  return {
    ...withCallLimits(base, definition.callLimits),
    ...limits,
    ...thinking,
    ...own,
    id: agentId,
    maxIterations,
    fallback,
    identity,
    budget,
    base: base.id,
    ...tree,
  };
};

/** Returns a configured agent as turns see it. */
export const toConfigured = (agent: AgentConfig, record: AgentRecord): DirectoryAgent => {
  const { rootId, parentId, depth, overrides = {} } = record;
  return {
    ...agent,
    ...overrides,
    base: agent.id,
    identity: null,
    ...stateOf(record),
    ...{ rootId: rootId || agent.id, parentId, depth, chain: [agent.id] },
  };
};

/** Returns the agent. Throws `AGENT.TERMINATED` if it has ended. */
export const checkLiving = (agent: DirectoryAgent): DirectoryAgent => {
  if (agent.status !== 'terminated') return agent;
  const { id: agentId } = agent;
  throw causedError(rejected, 'AGENT.TERMINATED', { kind: 'agent_has_ended', agentId }, { agentId });
};
