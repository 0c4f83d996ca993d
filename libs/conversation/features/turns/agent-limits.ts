import { CALL_LIMIT_NAMES } from '@antiphon/config';
import type { AgentConfig } from '@antiphon/config';
import type { AgentLimits, ModelRequest } from '@antiphon/providers-domain';

/** A spawned agent has the limits of its base where it was given none. */
type Limited = AgentConfig & {
  readonly base?: string;
  readonly ownLimits?: { readonly baseConcurrentCalls: number | undefined };
};

/** Returns the limit of concurrent calls that an agent with limits of its own shares with its base. */
const sharedLimit = ({ base, ownLimits }: Limited): Pick<AgentLimits, 'shared'> => {
  const concurrentCalls = ownLimits?.baseConcurrentCalls;
  return base === undefined || concurrentCalls === undefined ? {} : { shared: { id: base, concurrentCalls } };
};

/** Returns the limits that an agent sets for its calls; undefined without any. */
export const agentLimitsOf = (agent: Limited | null): AgentLimits | undefined => {
  if (agent === null) return undefined;
  const set = CALL_LIMIT_NAMES.filter((name) => agent[name] !== undefined);
  const shared = sharedLimit(agent);
  if (set.length === 0 && !shared.shared) return undefined;
  const limits = Object.fromEntries(set.map((name) => [name, agent[name]]));
  const id = agent.ownLimits ? agent.id : (agent.base ?? agent.id);
  return { ...limits, ...shared, id, model: agent.model };
};

/** Returns the parts of a request that its agent sets. */
export const requestOf = (
  agent: Limited | null,
): Pick<ModelRequest, 'agent' | 'thinking' | 'temperature'> => ({
  agent: agentLimitsOf(agent),
  thinking: agent?.thinking ?? undefined,
  temperature: agent?.temperature ?? undefined,
});
