import type { AgentPolicy, FollowUpContext } from '@antiphon/agent-domain';
import type { AgentConfig } from '@antiphon/config';
import { guardedTools } from '../ask-approval/approval-rules.js';
import { isoTime } from '@antiphon/kernel';
import type { LaneServices } from './lane-services.js';
import { toolDigestOf } from './names.js';

export const agentOf = ({ config }: LaneServices, agentId: string | undefined): AgentConfig | null =>
  config.agents.find(({ id }) => id === agentId) ?? null;

/** What of an agent's configuration, and of its providers' state, a turn depends on now. */
export const policyOf = (
  services: LaneServices,
  workspace: string,
  agentId: string | undefined,
): AgentPolicy | null => {
  const agent = agentOf(services, agentId);
  if (!agent) return null;
  return {
    provider: agent.provider,
    model: agent.model,
    fallback: agent.fallback,
    maxIterations: agent.maxIterations,
    paused: services.breakers.pausesOf(workspace),
    guarded: guardedTools(agent, (name) => services.tools.known(workspace, name)),
  };
};

/** What decisions about a session need from outside of it, at this moment. */
export const followUpContext = (
  services: LaneServices,
  lane: { readonly workspace: string; readonly sessionId: string },
  agentId: string | undefined,
  begins: FollowUpContext['begins'] = services.takesTurns() ? 'any' : 'running_turns',
): FollowUpContext => ({
  decider: services.log.decider,
  policy: policyOf(services, lane.workspace, agentId),
  now: isoTime(services.clock),
  begins,
  // A new one for each decision: what was reserved for one that was not committed is not asked for again.
  reservationId: () => services.ids.next(),
  toolRequest: ({ callId, name, input }) => ({
    callId,
    digest: toolDigestOf(name, input),
    idempotencyKey: callId,
    // A tool that nobody knows is not run at all; what is not declared safe to repeat is not repeated.
    idempotent: services.tools.known(lane.workspace, name)?.idempotent ?? false,
  }),
});
