import { runProjection, SnapshotMaker } from '@antiphon/event-store';
import type { ProjectionDefinition, RunningProjection } from '@antiphon/event-store';
import { repeatEvery } from '@antiphon/kernel';
import { onLogNotification } from '@antiphon/messaging';
import { observeGauges } from '@antiphon/observability';
import { createAgentServices } from './agent-services.js';
import type { AgentRuntimeOptions, AgentServices } from './agent-services.js';
import { AgentUpkeep, ControlAgent, ReadAgents, SpawnAgent, Messages } from '@antiphon/agents-features';
import type {
  ControlAgentRequest,
  ListAgentsReply,
  SpawnAgentReply,
  SpawnAgentRequest,
} from '@antiphon/agents-features';
import {
  ApprovalEvents,
  createApprovals,
  ForkSession,
  SessionRecovery,
  StartSession,
  CancelTurn,
  SubmitTurn,
  publishClock,
  LocalRetries,
  RetryScheduler,
  ToolRetry,
} from '@antiphon/conversation-features';
import type {
  Approvals,
  ForkSessionReply,
  ForkSessionRequest,
  SessionRegistry,
  StartSessionReply,
  StartSessionRequest,
  CancelTurnReply,
  CancelTurnRequest,
  SubmitTurnReply,
  SubmitTurnRequest,
  ToolRetries,
} from '@antiphon/conversation-features';
import { agentAgents, agentProjections, agentSessions } from './projections.js';
import type { CircuitBreakers } from '@antiphon/providers-features';

export { AGENT_RUNTIME } from './agent.tokens.js';
export type { AgentRuntimeOptions } from './agent-services.js';

const DRIVER_LOST = 'TURN.DRIVER_LOST';
/** Actor of changes that this process makes by itself. */
const RUNTIME = 'runtime';
const UPKEEP_MS = 250;
const CLOCK_HINT_MS = 10_000;
/**
 * Time within which notifications wake the projection of agents once, ms. People read its rows, and
 * a batch for every few turns would cost a plain turn a twentieth of its processor time.
 */
const AGENTS_DEBOUNCE_MS = 250;
/** Time that recovered turns have for themselves at a start, before other work begins, ms. */
const RESUME_FIRST_MS = 1_000;

const observeTurns = (registry: SessionRegistry): (() => void) =>
  observeGauges(
    {
      antiphon_turns_open: 'Turns that this process is working on',
      antiphon_turns_waiting: 'Accepted turns that wait for the one before them in their session',
    },
    (report) => {
      const { open, waiting } = registry.countTurns();
      report('antiphon_turns_open', open);
      report('antiphon_turns_waiting', waiting);
    },
  );

/** The agent's use cases in one process, and the lifecycle of the tasks that drive its sessions. */
export class AgentRuntime {
  /** Dependencies of the request handlers. */
  readonly services: AgentServices;
  readonly approvals: Approvals;
  readonly retryTool: ToolRetry;
  private readonly stopping = new AbortController();
  /** Aborted after the drain: running turns need their leases until they have ended. */
  private readonly drained = new AbortController();
  private readonly scheduler = new RetryScheduler();
  private readonly recovery: SessionRecovery;
  private readonly upkeep: AgentUpkeep;
  private running: Promise<unknown> = Promise.resolve();
  private projections: readonly RunningProjection[] = [];
  private stopObserving: () => void = () => undefined;
  private stopped: Promise<void> | null = null;

  constructor(options: AgentRuntimeOptions) {
    const approvalEvents = new ApprovalEvents();
    this.services = createAgentServices(options, {
      takesTurns: () => !this.stopping.signal.aborted,
      retries: this.scheduler,
      onApprovalChange: approvalEvents.publish,
      onDriversLost: (workspace, agentId) => void this.upkeep.fail({ workspace, agentId }, DRIVER_LOST),
    });
    this.approvals = createApprovals(this.services, approvalEvents);
    this.retryTool = new ToolRetry(this.services);
    this.scheduler.delegateTo(new LocalRetries(this.retryTool, this.stopping.signal, options.logger));
    const submit = new SubmitTurn(this.services);
    this.services.nativeTools.connect({
      submit: (request, chain) => submit.handle(request, chain),
      cancel: (request) => this.cancelTurn(request),
      sendMessage: (request) => new Messages(this.services).send(request),
      spawnAgent: (request) => this.spawnAgent(request),
    });
    this.recovery = new SessionRecovery({ ...options, registry: this.services.registry });
    this.upkeep = this.createUpkeep();
  }

  submitTurn(request: SubmitTurnRequest): Promise<SubmitTurnReply> {
    return new SubmitTurn(this.services).handle(request);
  }

  cancelTurn(request: CancelTurnRequest): Promise<CancelTurnReply> {
    return new CancelTurn(this.services).handle(request);
  }

  startSession(request: StartSessionRequest): Promise<StartSessionReply> {
    return new StartSession(this.services).handle(request);
  }

  forkSession(request: ForkSessionRequest): Promise<ForkSessionReply> {
    return new ForkSession(this.services).handle(request);
  }

  spawnAgent(request: SpawnAgentRequest): Promise<SpawnAgentReply> {
    return new SpawnAgent(this.services).handle(request);
  }

  controlAgent(request: ControlAgentRequest): ReturnType<ControlAgent['handle']> {
    return new ControlAgent(this.services).handle(request);
  }

  listAgents(workspace: string): Promise<ListAgentsReply> {
    return new ReadAgents(this.services).list({ workspace });
  }

  /** Records heartbeats and judges those of other processes, now. Done every ten seconds as well. */
  checkHeartbeats(): Promise<void> {
    return this.upkeep.checkHeartbeats();
  }

  /** Sets the scheduler of tool retries. Until then this process schedules them. */
  leaveRetriesTo(retries: ToolRetries): void {
    this.scheduler.delegateTo(retries);
  }

  /** Takes over turns whose driver is gone, now. The process also does so every second. */
  takeOver(): Promise<void> {
    return this.recovery.takeOverAbandoned();
  }

  /** Returns the number of sessions that this process is driving. */
  working(): number {
    return this.services.registry.countWorking();
  }

  /** Lists the open circuits of providers. */
  openCircuits(): ReturnType<CircuitBreakers['openCircuits']> {
    return this.services.breakers.openCircuits();
  }

  /** Resolves when recovered turns have ended, or have had a second for themselves. */
  async start(): Promise<void> {
    const { registry, breakers, agents, speaking, inboxSignals, logUsage, times } = this.services;
    const { signal: drained } = this.drained;
    const swept = Promise.withResolvers<void>();
    this.projections = this.project();
    this.stopObserving = observeTurns(registry);
    this.running = Promise.all([
      this.recovery.run(times.sweepMs, this.stopping.signal, swept.resolve),
      repeatEvery(() => registry.runUpkeep(), UPKEEP_MS, drained),
      repeatEvery(() => publishClock(this.services), CLOCK_HINT_MS, drained),
      breakers.follow(drained),
      agents.follow(drained),
      speaking.follow(drained),
      this.upkeep.run(this.stopping.signal),
      inboxSignals.follow(drained),
      new SnapshotMaker({ ...this.services, definitions: agentProjections }).follow(drained),
      logUsage.run(this.stopping.signal),
    ]);
    await Promise.all([swept.promise, inboxSignals.firstPoll]);
    await registry.waitUntilIdle(RESUME_FIRST_MS);
  }

  /** Accepts no more turns, drains the running ones and releases the leases. Safe to call twice. */
  stop(): Promise<void> {
    return (this.stopped ??= this.drain());
  }

  /** Ends all loops at once, as the death of the process does. For specs that kill a process. */
  halt(): void {
    this.stopping.abort();
    this.drained.abort();
    this.stopObserving();
    this.services.turnEnds.close();
    void this.services.past.close();
    for (const projection of this.projections) void projection.stop();
  }

  private async drain(): Promise<void> {
    const { registry, times, turnEnds, logger } = this.services;
    this.stopping.abort();
    this.stopObserving();
    await this.retryTool
      .release()
      .catch((err: unknown) => logger.warn({ work: 'tool-retry', err }, 'work not released'));
    await registry.drain(times.drainMs);
    this.drained.abort();
    turnEnds.close();
    await this.services.past.close();
    await Promise.all([this.running, ...this.projections.map((projection) => projection.stop())]);
  }

  /** Updates the rows that sweeps and listings read. */
  private project(): RunningProjection[] {
    const { pool, nats, logger } = this.services;
    const run = (definition: ProjectionDefinition, debounceMs?: number) => {
      const subscribe = (wake: () => void, categories: readonly string[]) =>
        onLogNotification(nats, wake, { debounceMs, categories });
      return runProjection({ ...definition, pool, logger, subscribe });
    };
    return [run(agentSessions), run(agentAgents, AGENTS_DEBOUNCE_MS)];
  }

  private createUpkeep(): AgentUpkeep {
    return new AgentUpkeep({
      ...this.services,
      cancelTurns: (workspace, sessionId) => this.cancelTurn({ workspace, sessionId, caller: RUNTIME }),
      terminate: ({ workspace, agentId }, reason) => {
        const actor = { caller: RUNTIME, role: 'admin', agentId: null } as const;
        return this.controlAgent({ workspace, agentId, action: 'terminate', reason, actor });
      },
    });
  }
}
