import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { AgentPlatform } from './agent-platform.js';
import { AGENT_RUNTIME, createAgentRuntime } from './agent-runtime.js';
import type { AgentRuntime } from './agent-runtime.js';
import { CancelTurnController } from './cancel-turn/cancel-turn.controller.js';
import { failpointsFrom } from './drive-session/failpoint.js';
import { ListAgentsController } from './list-agents/list-agents.controller.js';
import { createModels } from './providers/index.js';
import type { Models } from './providers/index.js';
import { providersInUse } from './report-health/providers-in-use.js';
import { StartSessionController } from './start-session/start-session.controller.js';
import { SubmitTurnController } from './submit-turn/submit-turn.controller.js';

const MODELS = Symbol('MODELS');

const createRuntime = (platform: AgentPlatform, models: Models): AgentRuntime => {
  const { config, store, leases, pool, nats, requests, logger, clock, ids, identity, env } = platform;
  const failpoint = failpointsFrom(env['FAILPOINTS']);
  const house = { config, store, leases, pool, nats, requests, logger, clock, ids };
  return createAgentRuntime({ ...house, models, owner: identity.id, failpoint });
};

/** Begins to drive once everything is there; on the way out, what runs is brought to its end or handed over. */
@Injectable()
class AgentLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    @Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime,
    @Inject(MODELS) private readonly models: Models,
    @Inject(AgentPlatform) private readonly platform: AgentPlatform,
  ) {}

  onApplicationBootstrap(): void {
    const { health, config, env } = this.platform;
    health.addFact('providers', () => providersInUse(config, env));
    health.addFact('pausedProviders', () => this.runtime.pausedProviders().map((pause) => ({ ...pause })));
    health.addFact('workingSessions', () => this.runtime.working());
    this.runtime.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.runtime.stop();
    this.models.close();
  }
}

/** The agent service: sessions, turns, and what drives them. */
@Module({
  controllers: [SubmitTurnController, CancelTurnController, StartSessionController, ListAgentsController],
  providers: [
    AgentPlatform,
    {
      provide: MODELS,
      inject: [AgentPlatform],
      useFactory: ({ config, env }: AgentPlatform): Models => createModels(config, env),
    },
    { provide: AGENT_RUNTIME, inject: [AgentPlatform, MODELS], useFactory: createRuntime },
    AgentLifecycle,
  ],
})
export class AgentModule {}
