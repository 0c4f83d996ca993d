import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { TurnEndWatcher } from '@antiphon/conversation-features';
import { FilesFollower } from '@antiphon/files-features';
import { PlansRuntime, RunWorker, TasksRuntime } from '@antiphon/orchestration-features';
import {
  MODELS,
  createMasterKeyReader,
  describeMasterKey,
  providersInUse,
} from '@antiphon/providers-features';
import type { Models } from '@antiphon/providers-features';
import { AgentPlatform } from './agent-platform.js';
import type { AgentRuntime } from './agent-runtime.js';
import { AGENT_RUNTIME } from './agent.tokens.js';

/**
 * Starts to drive sessions after the bootstrap, and drains or hands over running turns at the
 * shutdown.
 */
@Injectable()
export class AgentLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    @Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime,
    @Inject(RunWorker) private readonly runs: RunWorker,
    @Inject(TasksRuntime) private readonly tasks: TasksRuntime,
    @Inject(FilesFollower) private readonly files: FilesFollower,
    @Inject(PlansRuntime) private readonly plans: PlansRuntime,
    @Inject(TurnEndWatcher) private readonly turnEnds: TurnEndWatcher,
    @Inject(MODELS) private readonly models: Models,
    @Inject(AgentPlatform) private readonly platform: AgentPlatform,
  ) {}

  onApplicationBootstrap(): void {
    const { health, config, env } = this.platform;
    health.addFact('providers', () => providersInUse(config, env));
    health.addFact('credentials', () => describeMasterKey(createMasterKeyReader(env)));
    health.addFact('pausedProviders', () => this.runtime.openCircuits().map((circuit) => ({ ...circuit })));
    health.addFact('workingSessions', () => this.runtime.working());
    health.addFact('assignsTasks', () => this.tasks.delegation.isLeader());
    health.addFact('writesFiles', () => this.files.isLeader());
    health.addFact('temporalWorker', () => (this.runs.isPolling() ? 'polling' : 'waiting'));
    // Recovered turns first: loading Temporal's SDK occupies the processor for a while.
    const resumed = this.runtime.start();
    this.runs.start(resumed);
    void resumed.then(() => {
      this.tasks.start();
      this.plans.start();
      this.files.start();
    });
  }

  async onModuleDestroy(): Promise<void> {
    // First: work that starts now would submit a turn that this process no longer starts.
    await Promise.all([this.tasks.stop(), this.plans.stop(), this.runs.stop(), this.files.stop()]);
    await this.runtime.stop();
    this.turnEnds.close();
    await this.platform.past.close();
    this.models.close();
  }
}
