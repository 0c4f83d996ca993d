import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { AgentPlatform } from './agent-platform.js';
import { AGENT_RUNTIME, createAgentRuntime } from './agent-runtime.js';
import type { AgentRuntime } from './agent-runtime.js';
import { readRetention } from './maintenance/retention.js';
import { ApprovalsController } from './approvals/approvals.controller.js';
import { createTurnEndings } from './runs/turn-ends.js';
import type { TurnEndings } from './runs/turn-ends.js';
import { CancelTurnController } from './turns/cancel-turn.controller.js';
import { ForkSessionController } from './sessions/fork-session.controller.js';
import { ListAgentsController } from './sessions/list-agents.controller.js';
import { createModels } from './providers/index.js';
import type { Models } from './providers/index.js';
import { providersInUse } from './providers/provider-settings.js';
import { RUNS_ENGINE, createRunsEngine } from './runs/run-worker.js';
import type { RunsEngine } from './runs/run-worker.js';
import { RunsController } from './runs/runs.controller.js';
import { WorkflowsController } from './runs/workflows.controller.js';
import { StartSessionController } from './sessions/start-session.controller.js';
import { SubmitTurnController } from './turns/submit-turn.controller.js';

const MODELS = Symbol('MODELS');

const ENDINGS = Symbol('ENDINGS');

const createRuntime = (platform: AgentPlatform, models: Models, endings: TurnEndings): AgentRuntime => {
  const { config, store, leases, pool, nats, requests, logger, clock, ids, identity } = platform;
  const house = { config, store, leases, pool, nats, requests, logger, clock, ids };
  const turnEnded = (sessionId: string) => endings.note(sessionId);
  return createAgentRuntime({ ...house, models, owner: identity.id, turnEnded });
};

const createEngine = (platform: AgentPlatform, runtime: AgentRuntime, endings: TurnEndings): RunsEngine => {
  const { config, store, pool, nats, requests, logger, clock, ids, identity, env } = platform;
  const house = { config, store, pool, nats, requests, logger, clock, ids };
  // As readServiceEnv reads it: an empty variable is a missing one.
  const temporalAddress = env['ANTIPHON_TEMPORAL_ADDRESS'] || undefined;
  const retention = readRetention(env, config);
  return createRunsEngine({ ...house, runtime, endings, temporalAddress, retention, identity: identity.id });
};

/** Begins to drive once everything is there; on the way out, what runs is brought to its end or handed over. */
@Injectable()
class AgentLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    @Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime,
    @Inject(RUNS_ENGINE) private readonly runs: RunsEngine,
    @Inject(ENDINGS) private readonly endings: TurnEndings,
    @Inject(MODELS) private readonly models: Models,
    @Inject(AgentPlatform) private readonly platform: AgentPlatform,
  ) {}

  onApplicationBootstrap(): void {
    const { health, config, env } = this.platform;
    health.addFact('providers', () => providersInUse(config, env));
    health.addFact('pausedProviders', () => this.runtime.openCircuits().map((circuit) => ({ ...circuit })));
    health.addFact('workingSessions', () => this.runtime.working());
    health.addFact('temporalWorker', () => (this.runs.polling() ? 'polling' : 'waiting'));
    // Temporal's SDK keeps the processor busy for a while, in which turns that wait for this process would stand still.
    this.runs.start(this.runtime.start());
  }

  async onModuleDestroy(): Promise<void> {
    // First: an activity that is begun now would submit a turn that nobody here may begin.
    await this.runs.stop();
    await this.runtime.stop();
    this.endings.close();
    this.models.close();
  }
}

/** The agent service: sessions, turns, runs, and what drives them. */
@Module({
  controllers: [
    ApprovalsController,
    SubmitTurnController,
    CancelTurnController,
    StartSessionController,
    ForkSessionController,
    ListAgentsController,
    WorkflowsController,
    RunsController,
  ],
  providers: [
    AgentPlatform,
    {
      provide: MODELS,
      inject: [AgentPlatform],
      useFactory: ({ config, env }: AgentPlatform): Models => createModels(config, env),
    },
    {
      provide: ENDINGS,
      inject: [AgentPlatform],
      useFactory: (platform: AgentPlatform) => createTurnEndings(platform),
    },
    { provide: AGENT_RUNTIME, inject: [AgentPlatform, MODELS, ENDINGS], useFactory: createRuntime },
    { provide: RUNS_ENGINE, inject: [AgentPlatform, AGENT_RUNTIME, ENDINGS], useFactory: createEngine },
    AgentLifecycle,
  ],
})
export class AgentModule {}
