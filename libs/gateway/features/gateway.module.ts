import { Module, type Provider } from '@nestjs/common';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { listPlugins } from '@antiphon/contracts/sandbox';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore } from '@antiphon/event-store';
import { createRouter } from '@antiphon/gateway-domain';
import type { Clock, JsonValue } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import {
  CLOCK,
  CONFIG,
  DATABASE_POOL,
  ENVIRONMENT,
  EVENT_STORE,
  HEALTH,
  LOGGER,
  NATS,
  REQUESTS,
  SERVICE_IDENTITY,
  type Environment,
  type HealthRegistry,
  type ServiceIdentity,
} from '@antiphon/service-host';
import type { Pool } from 'pg';
import { SocketLifecycle } from './accept-socket/socket-lifecycle.js';
import { approvalMethods } from './answer-approval/approval-methods.js';
import { ApprovalsController } from './answer-approval/approvals.controller.js';
import { connectAgain, ping, status } from './answer-rpc/basic-methods.js';
import { methodTable, type MethodTable } from './answer-rpc/rpc-method.js';
import { createTokenGate } from './authenticate/token-gate.js';
import { sessionCancel } from './cancel-turn/session-cancel.js';
import { FRAME_LOG, METHODS, SESSION_FEEDS, STATUS, TOKEN_GATE, WORKSPACE } from './gateway.tokens.js';
import { ExportSessionController } from './export-session/export-session.controller.js';
import { ForkSessionController } from './fork-session/fork-session.controller.js';
import { sessionFork } from './fork-session/session-fork.js';
import { ListAgentsController } from './list-agents/list-agents.controller.js';
import { RunsController } from './manage-runs/runs.controller.js';
import { WorkflowsController } from './manage-workflows/workflows.controller.js';
import { sessionNew } from './new-session/session-new.js';
import { ReadEventsController } from './read-events/read-events.controller.js';
import { sessionResume } from './resume-session/session-resume.js';
import { chatSend, sessionSend } from './send-message/send-message.js';
import { gatherStatus } from './show-status/gather-status.js';
import { GatewayHealthController } from './show-status/health.controller.js';
import { rememberAnswers } from './show-status/remembered.js';
import { countSessions } from './show-status/session-count.js';
import { providerInUse } from './show-status/provider-in-use.js';
import { EngineTeller } from './tell-engines/engine-teller.js';
import { createFrameLog, type FrameLog } from './stream-frames/frame-log.js';
import { ServeReferenceController } from './serve-reference/serve-reference.controller.js';
import { createNatsFrameBus } from './stream-frames/nats-frame-bus.js';
import { createSessionFeeds, type SessionFeeds } from './stream-frames/session-feeds.js';

type Status = () => Promise<Record<string, JsonValue>>;

const statusProvider: Provider = {
  provide: STATUS,
  inject: [REQUESTS, SERVICE_IDENTITY, CLOCK, HEALTH, DATABASE_POOL, CONFIG, ENVIRONMENT],
  useFactory: (
    requests: RequestClient,
    identity: ServiceIdentity,
    clock: Clock,
    health: HealthRegistry,
    pool: Pool,
    config: AntiphonConfig,
    env: Environment,
  ): Status => {
    const deps = {
      requests,
      version: identity.version,
      uptimeMs: () => clock.now() - identity.startedAt,
      ownHealth: () => health.report(),
      plugins: rememberAnswers(async () => {
        const { plugins } = await requests.request(listPlugins, { workspace: DEFAULT_WORKSPACE });
        return plugins as unknown as JsonValue;
      }),
      sessionCount: rememberAnswers(() => countSessions(pool, DEFAULT_WORKSPACE)),
      features: { ...config.features },
      provider: providerInUse(config),
      temporalUi: env['ANTIPHON_TEMPORAL_UI_URL'] || null,
    };
    return () => gatherStatus(deps);
  },
};

const methodsProvider: Provider = {
  provide: METHODS,
  inject: [REQUESTS, SESSION_FEEDS, FRAME_LOG, STATUS, CONFIG, LOGGER],
  useFactory: (
    requests: RequestClient,
    feeds: SessionFeeds,
    frameLog: FrameLog,
    gather: Status,
    config: AntiphonConfig,
    logger: Logger,
  ): MethodTable => {
    const router = createRouter(config.bindings, config.agents[0]?.id ?? '');
    const sending = { requests, feeds, router, logger };
    return methodTable([
      ping,
      status(gather),
      connectAgain,
      chatSend(sending),
      sessionSend(sending),
      sessionNew({ requests, router }),
      sessionFork({ requests }),
      sessionCancel({ requests }),
      ...approvalMethods({ requests }),
      sessionResume({ feeds, frameLog, logger }),
    ]);
  },
};

/** The gateway: sockets, REST, routing and frames; it holds nothing that another gateway lacks. */
@Module({
  controllers: [
    GatewayHealthController,
    ReadEventsController,
    ListAgentsController,
    ServeReferenceController,
    WorkflowsController,
    RunsController,
    ApprovalsController,
    ExportSessionController,
    ForkSessionController,
  ],
  providers: [
    { provide: WORKSPACE, useValue: DEFAULT_WORKSPACE },
    {
      provide: TOKEN_GATE,
      inject: [CONFIG, CLOCK],
      useFactory: (config: AntiphonConfig, clock: Clock) => createTokenGate(config.gateway.token, clock),
    },
    {
      provide: FRAME_LOG,
      inject: [EVENT_STORE],
      useFactory: (store: EventStore) => createFrameLog(store),
    },
    {
      provide: SESSION_FEEDS,
      inject: [NATS, FRAME_LOG, CLOCK],
      useFactory: (nats: NatsLink, log: FrameLog, clock: Clock) =>
        createSessionFeeds(createNatsFrameBus(nats), log, () => clock.now()),
    },
    statusProvider,
    methodsProvider,
    EngineTeller,
    SocketLifecycle,
  ],
})
export class GatewayModule {}
