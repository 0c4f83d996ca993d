import type { Cause } from '@antiphon/contracts/causes';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { agentDecider } from '@antiphon/agents-domain';
import type { AgentCommand, AgentRecord } from '@antiphon/agents-domain';
import { ALL_WORKSPACES } from '@antiphon/database';
import type { AntiphonConfig } from '@antiphon/config';
import { isoTime, repeatEvery, retry, sleep } from '@antiphon/kernel';
import { AgentErrors } from './agent-errors.js';
import type { AgentErrorsDeps } from './agent-errors.js';
import type { DirectoryAgent } from './directory-agent.js';
import type { AgentRef, AgentRows } from './agent-rows.js';
import { createAgentStreams } from './agent-streams.js';
import type { AgentStreams } from './agent-streams.js';
import type { ConfiguredAgents } from './configured-agents.js';
import type { ControlAgent } from './control-agent.handler.js';

export interface AgentUpkeepDeps extends AgentErrorsDeps {
  readonly config: AntiphonConfig;
  readonly agentRows: AgentRows;
  readonly configuredAgents: ConfiguredAgents;
  readonly owner: string;
  readonly turns: {
    cancelTurn(request: {
      readonly workspace: string;
      readonly sessionId: string;
      readonly caller: string;
    }): Promise<unknown>;
  };
  readonly control: Pick<ControlAgent, 'handle'>;
}

/** Actor of changes that this process makes by itself. */
const RUNTIME = 'runtime';
const ENDED_SWEEP_MS = 1_000;
/** Interval between heartbeats, and between the checks of them, ms. */
const BEAT_MS = 10_000;
/** Time without a heartbeat after which a working agent is unresponsive, ms. */
export const UNRESPONSIVE_MS = 60_000;
/** Interval between the checks of agents in error, ms. */
const RETRY_MS = 1_000;
const DAY_MS = 24 * 3_600_000;
const BACKOFF = { firstMs: 100, maxMs: 5_000 };

/**
 * Background work for agents in one process. It records configured agents at the start and
 * heartbeats of working ones. It cancels turns of ended agents and wakes those of changed ones. An
 * idle agent costs nothing.
 */
export class AgentUpkeep {
  /** The state `error` of agents. */
  readonly errors: AgentErrors;
  private readonly streams: AgentStreams;

  constructor(private readonly deps: AgentUpkeepDeps) {
    this.errors = new AgentErrors(deps);
    this.streams = createAgentStreams(deps.store, deps.ids);
    deps.agents.onChange((workspace, agent) => this.react(workspace, agent));
  }

  /** Works until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.recordConfigured(signal),
      repeatEvery(() => this.attempt('cancel turns', () => this.cancelEnded()), ENDED_SWEEP_MS, signal),
      repeatEvery(() => this.attempt('retry failed agents', () => this.errors.retry()), RETRY_MS, signal),
      repeatEvery(() => this.attempt('check heartbeats', () => this.checkHeartbeats()), BEAT_MS, signal),
    ]);
  }

  /** Records the heartbeat of the agents that this process works for, and judges the others. */
  async checkHeartbeats(): Promise<void> {
    const { agentRows, clock, owner } = this.deps;
    const now = clock.now();
    const overdue = new Date(now - UNRESPONSIVE_MS);
    const working = this.workingAgents();
    if (working.length > 0) await agentRows.beat(working, owner, new Date(now));
    for (const { workspace, agentId, lastSeenAt } of await agentRows.silent(overdue))
      await this.change(workspace, agentId, {
        ...this.common(agentId, { kind: 'agent_silent', lastSeenAt }),
        type: 'MarkUnresponsive',
        data: { lastSeenAt },
      });
    for (const { workspace, agentId } of await agentRows.back(overdue))
      await this.change(workspace, agentId, {
        ...this.common(agentId, { kind: 'agent_works_again' }),
        type: 'MarkResponsive',
        data: {},
      });
    for (const orphan of await agentRows.orphans()) await this.terminate(orphan, 'an ancestor has ended');
    const { stateChangesDays } = this.deps.config.retention;
    if (stateChangesDays > 0) await agentRows.deleteChanges(new Date(now - stateChangesDays * DAY_MS));
  }

  private workingAgents(): AgentRef[] {
    const found = new Map<string, AgentRef>();
    for (const { session, agentId } of this.deps.registry.openSessions()) {
      const { workspace } = session.actor;
      found.set(`${workspace}\n${agentId}`, { workspace, agentId });
    }
    return [...found.values()];
  }

  /** Records the agents of the configuration in every workspace that is known or named. */
  private async recordConfigured(signal: AbortSignal): Promise<void> {
    const { config, agentRows, configuredAgents, logger } = this.deps;
    const record = async (): Promise<void> => {
      const named = config.agents.flatMap(({ workspace }) => workspace ?? []);
      const known = await agentRows.workspaces();
      const workspaces = new Set([DEFAULT_WORKSPACE, ...named, ...known]);
      workspaces.delete(ALL_WORKSPACES);
      for (const workspace of workspaces) {
        await configuredAgents.record(workspace);
        await configuredAgents.pauseRemoved(workspace, await agentRows.configured(workspace));
      }
    };
    const onRetry = (err: unknown, attempt: number): void => {
      if (attempt === 1) logger.warn({ err }, 'configured agents not recorded yet');
    };
    const isRetryable = (): boolean => !signal.aborted;
    const recordAll = () =>
      retry(record, { ...BACKOFF, signal, isRetryable, onRetry }).catch(() => undefined);
    await recordAll();
    // The projection may have been behind: its rows name the agents that were removed.
    await sleep(BEAT_MS, signal).catch(() => undefined);
    if (!signal.aborted) await recordAll();
  }

  /** Cancels open turns of agents that have ended. Safe to repeat. */
  private async cancelEnded(): Promise<void> {
    for (const { workspace, sessionId } of await this.deps.agentRows.openSessionsOfEnded())
      await this.cancelTurns(workspace, sessionId);
  }

  private cancelTurns(workspace: string, sessionId: string): Promise<unknown> {
    return this.deps.turns.cancelTurn({ workspace, sessionId, caller: RUNTIME });
  }

  private terminate({ workspace, agentId }: AgentRef, reason: string): Promise<unknown> {
    const actor = { caller: RUNTIME, role: 'admin', agentId: null } as const;
    return this.deps.control.handle({ workspace, agentId, action: 'terminate', reason, actor });
  }

  private react(workspace: string, agent: DirectoryAgent): void {
    for (const { session, agentId } of this.deps.registry.openSessions()) {
      const { actor, driver } = session;
      if (agentId !== agent.id || actor.workspace !== workspace) continue;
      if (agent.status === 'terminated')
        void this.attempt('cancel turns', () => this.cancelTurns(workspace, actor.sessionId));
      // Its turns continue, or record why they wait.
      else driver.wake();
    }
  }

  private async change(workspace: string, agentId: string, command: AgentCommand): Promise<void> {
    const { isAppended } = await this.streams.commit(workspace, agentId, ({ state }) => ({
      events: isLegal(state) ? agentDecider.decide(command, state) : [],
    }));
    if (isAppended) await this.deps.agents.announce({ workspace, agentIds: [agentId] });
  }

  private common(agentId: string, cause: Cause) {
    return { agentId, actor: RUNTIME, reason: null, cause, now: isoTime(this.deps.clock) };
  }

  private attempt(task: string, work: () => Promise<unknown>): Promise<void> {
    return work().then(
      () => undefined,
      (err: unknown) => this.deps.logger.warn({ err, task }, 'agent upkeep failed'),
    );
  }
}

const isLegal = ({ status }: AgentRecord): boolean => status !== 'none' && status !== 'terminated';
