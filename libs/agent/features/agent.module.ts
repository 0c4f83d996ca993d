import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { AgentPlatform } from './agent-platform.js';
import { AGENT_RUNTIME, AGENT_SERVICES } from './agent.tokens.js';
import { createAgentRuntime } from './agent-runtime.js';
import type { AgentRuntime } from './agent-runtime.js';
import { AnswerApproval } from './approvals/answer-approval.handler.js';
import { ReadApprovals } from './approvals/read-approvals.handler.js';
import { readRetention } from './maintenance/archive-old-events.js';
import { CancelRun } from './runs/cancel-run.handler.js';
import { RunQueries } from './runs/run-queries.handler.js';
import { RUN_SERVICES, TURN_COMMANDS, createRunServices } from './runs/run-streams.js';
import type { RunServices } from './runs/run-streams.js';
import { RunWorker } from './runs/run-worker.js';
import { StartRun } from './runs/start-run.handler.js';
import { TurnEndWatcher } from './runs/turn-ends.js';
import { Workflows } from './runs/workflows.handler.js';
import { CancelTurnController } from './turns/cancel-turn.controller.js';
import { ForkSessionController } from './sessions/fork-session.controller.js';
import { ListAgentsController } from './sessions/list-agents.controller.js';
import { createModels } from './providers/index.js';
import type { Models } from './providers/index.js';
import { providersInUse } from './providers/provider-settings.js';
import { StartSessionController } from './sessions/start-session.controller.js';
import { SubmitTurnController } from './turns/submit-turn.controller.js';

const MODELS = Symbol('MODELS');

const createRuntime = (platform: AgentPlatform, models: Models, turnEnds: TurnEndWatcher): AgentRuntime => {
  const { config, store, leases, pool, nats, requests, logger, clock, ids, identity } = platform;
  const house = { config, store, leases, pool, nats, requests, logger, clock, ids };
  const turnEnded = (sessionId: string) => turnEnds.notify(sessionId);
  return createAgentRuntime({ ...house, models, owner: identity.id, turnEnded });
};

const createRunWorker = (
  platform: AgentPlatform,
  services: RunServices,
  runtime: AgentRuntime,
  turnEnds: TurnEndWatcher,
): RunWorker => {
  const { config, nats, requests, identity, env } = platform;
  // As readServiceEnv reads it: an empty variable is a missing one.
  const temporalAddress = env['ANTIPHON_TEMPORAL_ADDRESS'] || undefined;
  const retention = readRetention(env, config);
  const own = { services, nats, requests, runtime, turnEnds };
  return new RunWorker({ ...own, temporalAddress, retention, identity: identity.id });
};

/** Begins to drive once everything is there; on the way out, what runs is brought to its end or handed over. */
@Injectable()
class AgentLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    @Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime,
    @Inject(RunWorker) private readonly runs: RunWorker,
    @Inject(TurnEndWatcher) private readonly turnEnds: TurnEndWatcher,
    @Inject(MODELS) private readonly models: Models,
    @Inject(AgentPlatform) private readonly platform: AgentPlatform,
  ) {}

  onApplicationBootstrap(): void {
    const { health, config, env } = this.platform;
    health.addFact('providers', () => providersInUse(config, env));
    health.addFact('pausedProviders', () => this.runtime.openCircuits().map((circuit) => ({ ...circuit })));
    health.addFact('workingSessions', () => this.runtime.working());
    health.addFact('temporalWorker', () => (this.runs.isPolling() ? 'polling' : 'waiting'));
    // Temporal's SDK keeps the processor busy for a while, in which turns that wait for this process would stand still.
    this.runs.start(this.runtime.start());
  }

  async onModuleDestroy(): Promise<void> {
    // First: an activity that is begun now would submit a turn that nobody here may begin.
    await this.runs.stop();
    await this.runtime.stop();
    this.turnEnds.close();
    this.models.close();
  }
}

/** The agent service: sessions, turns, runs, and what drives them. */
@Module({
  controllers: [
    AnswerApproval,
    ReadApprovals,
    SubmitTurnController,
    CancelTurnController,
    StartSessionController,
    ForkSessionController,
    ListAgentsController,
    Workflows,
    StartRun,
    CancelRun,
    RunQueries,
  ],
  providers: [
    AgentPlatform,
    {
      provide: MODELS,
      inject: [AgentPlatform],
      useFactory: ({ config, env }: AgentPlatform): Models => createModels(config, env),
    },
    {
      provide: TurnEndWatcher,
      inject: [AgentPlatform],
      useFactory: (platform: AgentPlatform) => new TurnEndWatcher(platform),
    },
    { provide: AGENT_RUNTIME, inject: [AgentPlatform, MODELS, TurnEndWatcher], useFactory: createRuntime },
    {
      provide: AGENT_SERVICES,
      inject: [AGENT_RUNTIME],
      useFactory: ({ services }: AgentRuntime) => services,
    },
    { provide: TURN_COMMANDS, useExisting: AGENT_RUNTIME },
    { provide: RUN_SERVICES, inject: [AgentPlatform], useFactory: createRunServices },
    {
      provide: RunWorker,
      inject: [AgentPlatform, RUN_SERVICES, AGENT_RUNTIME, TurnEndWatcher],
      useFactory: createRunWorker,
    },
    AgentLifecycle,
  ],
})
export class AgentModule {}
