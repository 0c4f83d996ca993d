import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap } from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import { SessionRegistry } from '@antiphon/conversation-features';
import { FilesFollower } from '@antiphon/files-features';
import { Delegation, RunWorker } from '@antiphon/orchestration-features';
import {
  CircuitBreakers,
  createMasterKeyReader,
  describeMasterKey,
  providersInUse,
} from '@antiphon/providers-features';
import { CONFIG, ENVIRONMENT, HEALTH } from '@antiphon/service-host';
import type { Environment, HealthRegistry } from '@antiphon/service-host';

/** Facts of the agent service in its health. */
@Injectable()
export class AgentHealth implements OnApplicationBootstrap {
  constructor(
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(ENVIRONMENT) private readonly env: Environment,
    @Inject(CircuitBreakers) private readonly breakers: CircuitBreakers,
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(Delegation) private readonly delegation: Delegation,
    @Inject(FilesFollower) private readonly files: FilesFollower,
    @Inject(RunWorker) private readonly runs: RunWorker,
  ) {}

  onApplicationBootstrap(): void {
    const { health, config, env } = this;
    health.addFact('providers', () => providersInUse(config, env));
    health.addFact('credentials', () => describeMasterKey(createMasterKeyReader(env)));
    health.addFact('pausedProviders', () => this.breakers.openCircuits().map((circuit) => ({ ...circuit })));
    health.addFact('workingSessions', () => this.registry.countWorking());
    health.addFact('assignsTasks', () => this.delegation.isLeader());
    health.addFact('writesFiles', () => this.files.isLeader());
    health.addFact('temporalWorker', () => (this.runs.isPolling() ? 'polling' : 'waiting'));
  }
}
