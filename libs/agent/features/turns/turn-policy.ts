import type { AgentPolicy, FollowUpContext, SessionState } from '@antiphon/agent-domain';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { guardedTools } from '../approvals/approval-rules.js';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { CircuitBreakers } from '../providers/circuit-breaker.js';
import type { SessionLog } from '../sessions/session-log.js';
import { toolDigestOf } from '../derived-ids.js';
import type { ToolCatalog } from './tool-catalog.js';
import { callPolicy } from './tool-limits.js';

export interface PolicyDeps {
  readonly config: AntiphonConfig;
  readonly tools: ToolCatalog;
  readonly breakers: CircuitBreakers;
  readonly log: SessionLog;
  readonly clock: Clock;
  readonly ids: Ids;
  /** False once the process accepts no more turns. */
  readonly takesTurns: () => boolean;
}

export const agentOf = (
  { config }: Pick<PolicyDeps, 'config'>,
  agentId: string | undefined,
): AgentConfig | null => config.agents.find(({ id }) => id === agentId) ?? null;

/** What of an agent's configuration, and of its providers' state, a turn depends on now. */
export const policyOf = (
  services: PolicyDeps,
  workspace: string,
  { started, fork }: Pick<SessionState, 'started' | 'fork'>,
): AgentPolicy | null => {
  const agent = agentOf(services, started?.agentId);
  if (!agent) return null;
  const { provider, model } = fork?.choice ?? agent;
  const isWhatIf = fork?.purpose === 'whatif';
  return {
    provider,
    model,
    // What another model would have said is not what a third one says.
    fallback: isWhatIf ? null : agent.fallback,
    maxIterations: agent.maxIterations,
    openCircuits: services.breakers.openCircuitsOf(workspace),
    // A what-if runs no tool, so that there is nothing to agree to.
    guarded: isWhatIf ? new Set() : guardedTools(agent, (name) => services.tools.known(workspace, name)),
  };
};

/** What decisions about a session need from outside of it, at this moment. */
export const followUpContext = (
  services: PolicyDeps,
  actor: { readonly workspace: string; readonly sessionId: string },
  state: Pick<SessionState, 'started' | 'fork'>,
  begins: FollowUpContext['begins'] = services.takesTurns() ? 'any' : 'running_turns',
): FollowUpContext => ({
  decider: services.log.decider,
  policy: policyOf(services, actor.workspace, state),
  now: isoTime(services.clock),
  begins,
  // A new one for each decision: what was reserved for one that was not committed is not asked for again.
  reservationId: () => services.ids.next(),
  toolRequest: ({ callId, name, input }) => {
    // A tool that nobody knows is not run at all; what is not declared safe to repeat is not repeated.
    const known = services.tools.known(actor.workspace, name) ?? { idempotent: false };
    const policy = callPolicy(agentOf(services, state.started?.agentId), name, known);
    const digest = toolDigestOf(name, input);
    return { callId, digest, idempotencyKey: callId, idempotent: known.idempotent, ...policy };
  },
});
