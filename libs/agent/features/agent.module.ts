import { Global, Module } from '@nestjs/common';
import {
  AGENT_STORE,
  AgentDirectory,
  AgentRows,
  AgentUpkeep,
  AgentsModule,
  ConfiguredAgents,
  ControlAgent,
  FailedAgentRows,
  InboxSignals,
  KNOWN_PROVIDERS,
  LEASE_OWNER,
  PAST_READS,
  SpeakingAgents,
} from '@antiphon/agents-features';
import { ChannelsModule } from '@antiphon/channels-features';
import {
  ConversationModule,
  MODEL_PORT,
  ON_TURN_SETTLED,
  SessionRegistry,
  TURN_COMMANDS,
} from '@antiphon/conversation-features';
import { SnapshotMaker } from '@antiphon/event-store';
import { FilesModule } from '@antiphon/files-features';
import { NativeToolsModule } from '@antiphon/native-tools-features';
import { OrchestrationModule } from '@antiphon/orchestration-features';
import { CircuitBreakers, ConnectedProviders, MODELS, ProvidersModule } from '@antiphon/providers-features';
import { CLOCK, CONFIG, DATABASE_POOL, IDS, LOGGER, provide, provideClass } from '@antiphon/service-host';
import { AgentHealth } from './agent-health.js';
import { AgentLifecycle } from './agent-lifecycle.js';
import { AgentWork, FOLLOWERS } from './agent-work.js';
import { AgentProjections } from './agent-projections.js';
import { agentProjections, createPastReads } from './projections.js';
import { ReplayParked } from './replay-parked.handler.js';

const DRIVER_LOST = 'TURN.DRIVER_LOST';

/** Values for the ports of contexts that other contexts implement, and the work of the process. */
const providers = [
  provide(PAST_READS, [DATABASE_POOL], createPastReads),
  provide(MODEL_PORT, [MODELS], (models) => models),
  provide(KNOWN_PROVIDERS, [ConnectedProviders], (connected) => connected),
  provideClass(AgentUpkeep, {
    config: CONFIG,
    store: AGENT_STORE,
    agents: AgentDirectory,
    agentRows: AgentRows,
    failedRows: FailedAgentRows,
    configuredAgents: ConfiguredAgents,
    registry: SessionRegistry,
    turns: TURN_COMMANDS,
    control: ControlAgent,
    logger: LOGGER,
    clock: CLOCK,
    ids: IDS,
    owner: LEASE_OWNER,
  }),
  provide(
    ON_TURN_SETTLED,
    [AgentUpkeep],
    ({ errors }) =>
      (turn) =>
        void (turn.hasLostDrivers ? errors.fail(turn, DRIVER_LOST) : errors.endTrial(turn)),
  ),
  provide(
    FOLLOWERS,
    [
      CircuitBreakers,
      ConnectedProviders,
      AgentDirectory,
      SpeakingAgents,
      InboxSignals,
      DATABASE_POOL,
      LOGGER,
    ],
    (breakers, connected, agents, speaking, inboxes, pool, logger) => [
      ...[breakers, connected, agents, speaking, inboxes],
      new SnapshotMaker({ pool, logger, definitions: agentProjections }),
    ],
  ),
];

/** The agent service: its contexts, and the order in which they start and stop. */
@Global()
@Module({
  imports: [
    ProvidersModule,
    FilesModule,
    AgentsModule,
    ConversationModule,
    ChannelsModule,
    OrchestrationModule,
    NativeToolsModule,
  ],
  controllers: [ReplayParked],
  providers: [...providers, AgentProjections, AgentWork, AgentHealth, AgentLifecycle],
  exports: providers,
})
export class AgentModule {}
