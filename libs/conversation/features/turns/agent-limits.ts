import { CALL_LIMIT_NAMES } from '@antiphon/config';
import type { AgentConfig } from '@antiphon/config';
import type { AgentLimits, ModelRequest } from '@antiphon/providers-domain';

/** A spawned agent has the limits of its base. */
type Limited = AgentConfig & { readonly base?: string };

/** Returns the limits that an agent sets for its calls; undefined without any. */
export const agentLimitsOf = (agent: Limited | null): AgentLimits | undefined => {
  if (agent === null) return undefined;
  const set = CALL_LIMIT_NAMES.filter((name) => agent[name] !== undefined);
  if (set.length === 0) return undefined;
  const limits = Object.fromEntries(set.map((name) => [name, agent[name]]));
  return { ...limits, id: agent.base ?? agent.id, model: agent.model };
};

/** Returns the parts of a request that its agent sets. */
export const requestOf = (
  agent: Limited | null,
): Pick<ModelRequest, 'agent' | 'thinking' | 'temperature'> => ({
  agent: agentLimitsOf(agent),
  thinking: agent?.thinking ?? undefined,
  temperature: agent?.temperature ?? undefined,
});
