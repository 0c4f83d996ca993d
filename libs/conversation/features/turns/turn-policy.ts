import { HAND_OVER } from '@antiphon/conversation-domain';
import { NO_OPEN_CIRCUITS } from '@antiphon/providers-domain';
import type {
  AgentPolicy,
  BlockedBy,
  FollowUpContext,
  SessionState,
  TurnToolCall,
} from '@antiphon/conversation-domain';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { PolicyAgents, DirectoryAgent, InboxSignals } from '@antiphon/agents-features';
import { guardsOf } from '../approvals/approval-rules.js';
import type { CircuitBreakers } from '@antiphon/providers-features';
import { toolDigestOf } from '@antiphon/agent-log';
import type { SessionLog } from '../sessions/session-log.js';
import { mustReadInbox } from './receive-messages.js';
import { callPolicy } from './tool-catalog.js';
import type { ToolCatalog } from './tool-catalog.js';

export interface PolicyDeps {
  readonly agents: PolicyAgents;
  readonly inboxSignals: InboxSignals;
  readonly tools: ToolCatalog;
  readonly breakers: CircuitBreakers;
  readonly log: SessionLog;
  readonly clock: Clock;
  readonly ids: Ids;
  /** False once the process accepts no more turns. */
  readonly takesTurns: () => boolean;
}

/** Policy of an agent whose facts this process has not read. */
const UNKNOWN: AgentPolicy = {
  ...{ provider: '', model: '', fallback: null, maxIterations: 1 },
  openCircuits: NO_OPEN_CIRCUITS,
  guarded: new Set(),
  halt: 'unknown',
};

/** Returns the reason that clients of a held agent's turns get. */
const blockedBy = ({ id: agentId, status, stateReason, failure }: DirectoryAgent): BlockedBy => {
  if (status === 'spawning')
    return { code: 'AGENT.QUEUED', cause: { kind: 'agent_without_place', agentId }, until: null };
  if (status !== 'error' || !failure)
    return { code: 'AGENT.PAUSED', cause: { kind: 'agent_held', agentId, reason: stateReason }, until: null };
  const { code, count: failures, retryAt: until } = failure;
  const cause = { kind: 'agent_in_error', agentId, code, failures, until } as const;
  return { code: 'AGENT.ERROR', cause, until };
};

const haltOf = (agent: DirectoryAgent): Pick<AgentPolicy, 'halt' | 'blocked' | 'trialTurnId'> => {
  const { status, failure } = agent;
  if (status === 'none' || status === 'ready') return {};
  if (status === 'terminated') return { halt: 'terminated' };
  const trial = failure?.trial ? { trialTurnId: failure.trial.turnId } : {};
  return { halt: 'paused', blocked: blockedBy(agent), ...trial };
};

type Forked = Pick<SessionState, 'started' | 'fork'>;
type ToolRequest = ReturnType<FollowUpContext['toolRequest']>;

/** Knows what decisions about turns depend on outside of their session. */
export class TurnPolicy {
  readonly decider: SessionLog['decider'];
  readonly agents: PolicyAgents;
  readonly clock: Clock;

  constructor(private readonly deps: PolicyDeps) {
    this.decider = deps.log.decider;
    this.agents = deps.agents;
    this.clock = deps.clock;
  }

  /** Returns false once the process accepts no more turns. */
  takesTurns(): boolean {
    return this.deps.takesTurns();
  }

  now(): string {
    return isoTime(this.clock);
  }

  /** Returns an agent from the cache; null for one that does not exist or is not loaded. */
  findAgent(workspace: string, agentId: string | undefined): DirectoryAgent | null {
    return this.deps.agents.find(workspace, agentId ?? '') ?? null;
  }

  /** Returns a tool of the sandbox as the cache has it. */
  knownTool(workspace: string, name: string): ReturnType<ToolCatalog['known']> {
    return this.deps.tools.known(workspace, name);
  }

  /**
   * Returns the parts of the agent's definition, and of its providers' state, that a turn depends
   * on now. Null for an agent that does not exist.
   */
  of(workspace: string, { started, fork }: Forked): AgentPolicy | null {
    const { agents, breakers, tools } = this.deps;
    const agent = agents.find(workspace, started?.agentId ?? '');
    if (agent === undefined) return UNKNOWN;
    if (!agent) return null;
    const { provider, model } = fork?.choice ?? agent;
    const isWhatIf = fork?.purpose === 'whatif';
    return {
      ...haltOf(agent),
      provider,
      model,
      // A what-if compares one model with the record, so it uses no fallback.
      fallback: isWhatIf ? null : agent.fallback,
      maxIterations: agent.maxIterations,
      // A what-if repeats the recorded steps only.
      canHandOver: !isWhatIf && agent.tools.includes(HAND_OVER),
      openCircuits: breakers.openCircuitsOf(workspace),
      // A what-if runs no tool, so no call needs an approval.
      guarded: isWhatIf ? new Set() : guardsOf(agent, (name) => tools.known(workspace, name)),
    };
  }

  /** Returns the inputs from outside of a session that its decisions need now. */
  contextOf(
    { workspace }: { readonly workspace: string },
    state: Forked,
    {
      begins = this.deps.takesTurns() ? 'any' : 'running_turns',
      ignoresInbox = false,
    }: { readonly begins?: FollowUpContext['begins']; readonly ignoresInbox?: boolean } = {},
  ): FollowUpContext {
    const { deps } = this;
    return {
      decider: this.decider,
      policy: this.of(workspace, state),
      now: this.now(),
      // The driver reads the inbox before the call then.
      begins: ignoresInbox || !mustReadInbox(deps, workspace, state) ? begins : 'none',
      // A new id for each decision: the reservation of a decision that is not committed has no use.
      reservationId: () => deps.ids.next(),
      toolRequest: (call) => this.toolRequest(workspace, state.started?.agentId, call),
    };
  }

  private toolRequest(
    workspace: string,
    agentId: string | undefined,
    { callId, name, input }: TurnToolCall,
  ): ToolRequest {
    // An unknown tool is not run at all; a tool that is not declared idempotent is not repeated.
    const known = this.deps.tools.known(workspace, name) ?? { idempotent: false };
    const policy = callPolicy(this.findAgent(workspace, agentId), name, known);
    const digest = toolDigestOf(name, input);
    return { callId, digest, idempotencyKey: callId, idempotent: known.idempotent, ...policy };
  }
}
