import type { Cause } from '@antiphon/contracts/causes';
import { agentDecider, failuresWith, holdMs } from '@antiphon/agents-domain';
import type { AgentCommand, AgentRecord } from '@antiphon/agents-domain';
import type { EventStore } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { AgentDirectory } from './agent-directory.js';
import type { AgentRef } from './agent-rows.js';
import { createAgentStreams } from './agent-streams.js';
import type { AgentStreams } from './agent-streams.js';
import type { FailedAgentRows } from './failed-agent-rows.js';

/** Sessions with an open turn that this process drives. */
export interface OpenSessions {
  openSessions(): readonly {
    readonly agentId: string;
    readonly session: {
      readonly actor: {
        readonly workspace: string;
        readonly sessionId: string;
        /** Returns the newest state of the session; null before it is read. */
        known(): { readonly state: { readonly open: { readonly turnId: string } | null } } | null;
      };
      readonly driver: { wake(): void };
    };
  }[];
}

export interface AgentErrorsDeps {
  readonly store: EventStore;
  readonly agents: AgentDirectory;
  readonly failedRows: FailedAgentRows;
  readonly registry: OpenSessions;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
}

interface TurnRef {
  readonly sessionId: string;
  readonly turnId: string;
}
/** A turn that has ended, with its agent. */
export type EndedTurn = AgentRef & TurnRef;

/** Time after which a trial that has not failed has succeeded, ms: its turn may wait for a person. */
export const TRIAL_MS = 120_000;

/**
 * The state `error` of agents, which works as a circuit breaker. A turn that lost too many
 * processes holds its agent for a time. One waiting turn is tried then: its end resumes the agent,
 * and its failure holds the agent for twice as long.
 */
export class AgentErrors {
  private readonly streams: AgentStreams;

  constructor(private readonly deps: AgentErrorsDeps) {
    this.streams = createAgentStreams(deps.store, deps.ids);
  }

  /** Holds an agent after a turn that lost too many processes. A repeat changes nothing. */
  fail({ workspace, agentId, sessionId, turnId }: EndedTurn, code: string): Promise<void> {
    return this.attempt('mark agent failed', () =>
      this.change(workspace, agentId, (agent) => {
        const until = this.deps.clock.now() + holdMs(failuresWith(agent, turnId));
        const data = { code, sessionId, turnId, retryAt: isoTime({ now: () => until }) };
        return { ...this.common(agentId, { kind: 'agent_processes_lost' }), type: 'Fail', data };
      }),
    );
  }

  /** Resumes an agent whose trial was this turn. Costs nothing for any other turn. */
  async endTrial({ workspace, agentId, turnId }: EndedTurn): Promise<void> {
    if (this.deps.agents.find(workspace, agentId)?.failure?.trial?.turnId !== turnId) return;
    await this.attempt('end trial', () => this.resume(workspace, agentId));
  }

  /**
   * Tries one waiting turn of each agent that was held for its time. Resumes it if no turn waits,
   * and after a trial without an end.
   */
  async retry(): Promise<void> {
    const now = this.deps.clock.now();
    for (const { workspace, agentId, openTurns, trialSince } of await this.deps.failedRows.findDue(
      new Date(now),
    )) {
      // The rows may be behind the log, which has the turns that this process drives.
      const waiting = trialSince === null ? this.waitingTurn(workspace, agentId) : null;
      const isOver = trialSince === null ? openTurns === 0 : now - Date.parse(trialSince) >= TRIAL_MS;
      if (waiting) await this.startTrial(workspace, agentId, waiting);
      // Without a turn here, another process drives the sessions that wait.
      else if (isOver) await this.resume(workspace, agentId);
    }
  }

  private async startTrial(workspace: string, agentId: string, data: TurnRef): Promise<void> {
    await this.change(workspace, agentId, () => ({
      ...this.common(agentId, { kind: 'agent_trial' }),
      ...{ type: 'StartTrial', data },
    }));
  }

  private waitingTurn(workspace: string, agentId: string): TurnRef | null {
    for (const { session, agentId: own } of this.deps.registry.openSessions()) {
      const { actor } = session;
      const open = actor.known()?.state.open;
      if (own === agentId && actor.workspace === workspace && open)
        return { sessionId: actor.sessionId, turnId: open.turnId };
    }
    return null;
  }

  private resume(workspace: string, agentId: string): Promise<void> {
    return this.change(workspace, agentId, ({ status }) =>
      // A person may have resumed and paused it since.
      status === 'error'
        ? { ...this.common(agentId, { kind: 'agent_turn_ended' }), type: 'Resume', data: {} }
        : null,
    );
  }

  private async change(
    workspace: string,
    agentId: string,
    toCommand: (agent: AgentRecord) => AgentCommand | null,
  ): Promise<void> {
    const { isAppended } = await this.streams.commit(workspace, agentId, ({ state }) => {
      const command = isLiving(state) ? toCommand(state) : null;
      return { events: command ? agentDecider.decide(command, state) : [] };
    });
    if (isAppended) await this.deps.agents.announce({ workspace, agentIds: [agentId] });
  }

  private common(agentId: string, cause: Cause) {
    return { agentId, actor: 'runtime', reason: null, cause, now: isoTime(this.deps.clock) };
  }

  private attempt(task: string, work: () => Promise<unknown>): Promise<void> {
    return work().then(
      () => undefined,
      (err: unknown) => this.deps.logger.warn({ err, task }, 'agent upkeep failed'),
    );
  }
}

const isLiving = ({ status }: AgentRecord): boolean => status !== 'none' && status !== 'terminated';
