import { Global, Module } from '@nestjs/common';
import { createLogMarks } from '@antiphon/event-store';
import {
  CLOCK,
  CONFIG,
  DATABASE_POOL,
  EVENT_STORE,
  IDS,
  LOGGER,
  NATS,
  REQUESTS,
  SERVICE_IDENTITY,
  provide,
  provideClass,
} from '@antiphon/service-host';
import { AGENT_STORE, KNOWN_PROVIDERS, LEASE_OWNER } from './agents.tokens.js';
import { AgentDirectory } from './lifecycle/agent-directory.js';
import { AgentRows } from './lifecycle/agent-rows.js';
import { AgentTrees } from './lifecycle/agent-trees.js';
import { ConfiguredAgents } from './lifecycle/configured-agents.js';
import { FailedAgentRows } from './lifecycle/failed-agent-rows.js';
import { FailedAgents } from './lifecycle/failed-agents.js';
import { ChangeAgent } from './lifecycle/change-agent.handler.js';
import { ControlAgent } from './lifecycle/control-agent.handler.js';
import { ListCapabilities } from './lifecycle/list-capabilities.handler.js';
import { ReadAgents } from './lifecycle/read-agents.handler.js';
import { SpawnAgent } from './lifecycle/spawn-agent.handler.js';
import { SpeakingAgents } from './lifecycle/speaking-agents.js';
import { InboxSignals, announceMessages } from './messages/inbox-signals.js';
import { InboxStore } from './messages/inbox-store.js';
import { ListMessages } from './messages/list-messages.handler.js';
import { Messages } from './messages/messages.handler.js';
import { AgentFolders, createFoldersOnStart } from './metrics/agent-folders.js';
import { AgentMetricsSampler } from './metrics/agent-metrics.js';
import { announceSamples } from './metrics/announce-samples.js';
import { ListAgentMetrics } from './metrics/list-agent-metrics.handler.js';
import { ReadAgentMetrics } from './metrics/read-agent-metrics.handler.js';

const handlers = [
  ...[ReadAgents, ListCapabilities, ChangeAgent, ControlAgent, SpawnAgent],
  ...[Messages, ListMessages, ReadAgentMetrics, ListAgentMetrics],
];
const providers = [
  ...handlers,
  provide(LEASE_OWNER, [SERVICE_IDENTITY], ({ id }) => id),
  provide(AgentRows, [DATABASE_POOL], (pool) => new AgentRows(pool)),
  provide(
    AgentDirectory,
    [CONFIG, EVENT_STORE, NATS, LOGGER, AgentRows, KNOWN_PROVIDERS],
    (config, store, nats, logger, { readChanges }, providers) =>
      new AgentDirectory({ config, store, nats, logger, readChanges, providers }),
  ),
  provide(AgentFolders, [SERVICE_IDENTITY, LOGGER], ({ home }, logger) => new AgentFolders(home, logger)),
  provide(InboxStore, [DATABASE_POOL], (pool) => new InboxStore(pool)),
  provide(
    InboxSignals,
    [NATS, LOGGER, InboxStore, DATABASE_POOL],
    (nats, logger, inboxes, pool) =>
      new InboxSignals({ nats, logger, inboxes, marks: createLogMarks(pool, ['agent']) }),
  ),
  provide(AGENT_STORE, [EVENT_STORE, AgentFolders, InboxSignals], (store, folders, signals) =>
    announceMessages(createFoldersOnStart(store, folders), signals),
  ),
  provide(FailedAgentRows, [DATABASE_POOL], (pool) => new FailedAgentRows(pool)),
  FailedAgents,
  provideClass(AgentTrees, { store: AGENT_STORE, ids: IDS }),
  provideClass(ConfiguredAgents, {
    config: CONFIG,
    store: EVENT_STORE,
    agents: AgentDirectory,
    trees: AgentTrees,
    requests: REQUESTS,
    clock: CLOCK,
    ids: IDS,
  }),
  provideClass(SpeakingAgents, { pool: DATABASE_POOL, nats: NATS, logger: LOGGER }),
  provide(
    AgentMetricsSampler,
    [DATABASE_POOL, CLOCK, LOGGER, AgentFolders, LEASE_OWNER, CONFIG, NATS],
    (pool, clock, logger, folders, process, { retention: { metricsDays } }, nats) => {
      const announce = announceSamples(nats);
      return new AgentMetricsSampler({ pool, clock, logger, folders, process, metricsDays, announce });
    },
  ),
];

/** Agents: their lifecycle, their messages and their metrics. */
@Global()
@Module({ controllers: handlers, providers, exports: providers })
export class AgentsModule {}
