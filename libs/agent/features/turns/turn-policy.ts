import type { AgentPolicy, FollowUpContext, SessionState, TurnToolCall } from '@antiphon/agent-domain';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { guardedTools } from '../approvals/approval-rules.js';
import type { CircuitBreakers } from '../providers/circuit-breaker.js';
import { toolDigestOf } from '../derived-ids.js';
import type { SessionLog } from '../sessions/session-log.js';
import { callPolicy } from './tool-catalog.js';
import type { ToolCatalog } from './tool-catalog.js';

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

export const findAgent = (
  { config }: Pick<PolicyDeps, 'config'>,
  agentId: string | undefined,
): AgentConfig | null => config.agents.find(({ id }) => id === agentId) ?? null;

/**
 * Returns the parts of the agent's configuration, and of its providers' state, that a turn depends
 * on now.
 */
export const policyOf = (
  deps: PolicyDeps,
  workspace: string,
  { started, fork }: Pick<SessionState, 'started' | 'fork'>,
): AgentPolicy | null => {
  const agent = findAgent(deps, started?.agentId);
  if (!agent) return null;
  const { provider, model } = fork?.choice ?? agent;
  const isWhatIf = fork?.purpose === 'whatif';
  return {
    provider,
    model,
    // A what-if compares one model with the record, so it uses no fallback.
    fallback: isWhatIf ? null : agent.fallback,
    maxIterations: agent.maxIterations,
    openCircuits: deps.breakers.openCircuitsOf(workspace),
    // A what-if runs no tool, so no call needs an approval.
    guarded: isWhatIf ? new Set() : guardedTools(agent, (name) => deps.tools.known(workspace, name)),
  };
};

type ToolRequest = ReturnType<FollowUpContext['toolRequest']>;

const toToolRequest = (
  deps: PolicyDeps,
  workspace: string,
  agentId: string | undefined,
  { callId, name, input }: TurnToolCall,
): ToolRequest => {
  // An unknown tool is not run at all; a tool that is not declared idempotent is not repeated.
  const known = deps.tools.known(workspace, name) ?? { idempotent: false };
  const policy = callPolicy(findAgent(deps, agentId), name, known);
  const digest = toolDigestOf(name, input);
  return { callId, digest, idempotencyKey: callId, idempotent: known.idempotent, ...policy };
};

/** Returns the inputs from outside of a session that its decisions need now. */
export const followUpContext = (
  deps: PolicyDeps,
  actor: { readonly workspace: string; readonly sessionId: string },
  state: Pick<SessionState, 'started' | 'fork'>,
  begins: FollowUpContext['begins'] = deps.takesTurns() ? 'any' : 'running_turns',
): FollowUpContext => ({
  decider: deps.log.decider,
  policy: policyOf(deps, actor.workspace, state),
  now: isoTime(deps.clock),
  begins,
  // A new id for each decision: the reservation of a decision that was not committed is not reused.
  reservationId: () => deps.ids.next(),
  toolRequest: (call) => toToolRequest(deps, actor.workspace, state.started?.agentId, call),
});
