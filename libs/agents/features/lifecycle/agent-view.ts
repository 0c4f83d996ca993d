import type { AgentPhase, AgentView } from '@antiphon/contracts/agent';
import { agentStateOf, treeQueue } from '@antiphon/agents-domain';
import type { AgentRecord, AgentTree } from '@antiphon/agents-domain';
import type { AgentConfig } from '@antiphon/config';

/** Parts of a view that come from the agent's turns and its place in the queue. */
export interface AgentActivity {
  readonly isWorking: boolean;
  readonly phase: AgentPhase | null;
  readonly lastSeenAt: string | null;
  readonly lastTurnAt: string | null;
  readonly queued: AgentView['queued'];
  /** Its open session, where it is known. */
  readonly current?: AgentView['current'];
}

export const NO_ACTIVITY: AgentActivity = {
  ...{ isWorking: false, phase: null, lastSeenAt: null, lastTurnAt: null, queued: null },
};

/** Returns the place of an agent in the queue of its tree; null if it does not wait. */
export const queuePlace = (tree: AgentTree, agentId: string): AgentView['queued'] => {
  const queue = treeQueue(tree);
  const index = queue.findIndex((member) => member.agentId === agentId);
  const limit = queue[index]?.waitsFor ?? null;
  return limit === null ? null : { position: index + 1, limit };
};

const errorOf = ({ status, failure }: AgentRecord): Pick<AgentView, 'error'> => {
  if (status !== 'error' || !failure) return {};
  const { code, count: failures, retryAt, trial } = failure;
  return { error: { code, failures, retryAt, trialTurnId: trial?.turnId ?? null } };
};

/** Returns the view of an agent from its facts. */
export const agentView = (
  id: string,
  record: AgentRecord,
  { isWorking, phase, lastSeenAt, lastTurnAt, queued, current = null }: AgentActivity,
  isDefault: boolean,
): AgentView => {
  const { definition, origin, parentId, rootId, depth, reason, spawnedAt, spawnedBy, result } = record;
  if (!definition) throw new Error('the agent has no facts');
  const { name, role, provider, model, tools, capabilities, position, project, base, budget } = definition;
  const state = agentStateOf(record.status, isWorking) ?? 'idle';
  const overrides = record.overrides ? { overrides: Object.keys(record.overrides).sort() } : {};
  return {
    ...{ id, name, role, provider, model, tools, capabilities, ...overrides, position, project, state },
    phase: state !== 'working' ? null : current?.approvalId ? 'waiting' : phase,
    current: state === 'working' ? current : null,
    ...errorOf(record),
    ...(definition.callLimits ? { callLimits: definition.callLimits } : {}),
    ...{ reason, origin, base, parentId, rootId, depth, queued, budget },
    ...{ spawnedAt, spawnedBy, lastSeenAt, lastTurnAt, result, isDefault },
  };
};

/** Returns the definition that the facts of a configured agent record. */
export const configuredDefinition = (agent: AgentConfig): NonNullable<AgentRecord['definition']> => {
  const { id, name, role, provider, model, systemPrompt, position, maxIterations, fallback } = agent;
  const { budget = null } = agent;
  return {
    ...{ name, role, provider, model, systemPrompt, position, maxIterations, fallback, base: id },
    capabilities: [...agent.capabilities],
    tools: [...agent.tools],
    ...{ project: null, identity: null, budget },
  };
};
