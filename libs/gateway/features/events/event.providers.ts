import type { Provider } from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { CONFIG, LOGGER, NATS, REQUESTS } from '@antiphon/service-host';
import { MetricsOfAgents } from '../agents/metrics-of-agents.js';
import { AgentAccess } from '../access/agent-access.js';
import { AGENT_STATE_FEED, LOG_TAIL } from '../gateway.ports.js';
import { AgentStates } from './agent-states.js';
import { AgentStreams } from './agent-streams.js';
import { AgentSubscriptionMethods } from './agent-subscriptions.js';
import { EventMethods } from './event-methods.js';
import { askForOpenSessions } from './load-agents.js';
import { followSpeech } from './follow-speech.js';
import type { LogTail } from './log-tail.js';
import { MemoryFrames } from './memory-frames.js';
import { MetricsFrames } from './metrics-frames.js';

/** Providers of the methods that follow the log, and of the frames about agents. */
export const eventProviders: Provider[] = [
  MetricsOfAgents,
  {
    provide: AgentStreams,
    inject: [LOG_TAIL, REQUESTS, NATS, CONFIG, LOGGER, MetricsOfAgents],
    useFactory: (
      log: LogTail,
      requests: RequestClient,
      nats: NatsLink,
      { features }: AntiphonConfig,
      logger: Logger,
      metrics: MetricsOfAgents,
    ) =>
      new AgentStreams({
        log,
        findOpenSessions: askForOpenSessions(requests),
        onSpeech: followSpeech(nats, logger),
        memory: features.memoryV1 ? new MemoryFrames(requests) : null,
        metrics: features.agentRuntimeV1 ? new MetricsFrames(metrics, nats, logger) : null,
      }),
  },
  {
    provide: AgentStates,
    inject: [CONFIG, AgentStreams, AgentAccess, LOGGER],
    useFactory: ({ features }: AntiphonConfig, streams: AgentStreams, access: AgentAccess, logger: Logger) =>
      new AgentStates({ features, streams, access, logger }),
  },
  { provide: AGENT_STATE_FEED, useExisting: AgentStates },
  EventMethods,
  AgentSubscriptionMethods,
];
