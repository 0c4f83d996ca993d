import { Module, type Provider } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore } from '@antiphon/event-store';
import type { Clock } from '@antiphon/kernel';
import { onLogNotification, type NatsLink, type RequestClient } from '@antiphon/messaging';
import { countError, type Logger } from '@antiphon/observability';
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
import { AccessGuard } from './access/access-guard.js';
import { AgentAccess } from './access/agent-access.js';
import { Authenticator } from './access/authenticator.js';
import type { Identities } from './access/identities.port.js';
import { HeavyRequestsInterceptor } from './admission/heavy-requests.interceptor.js';
import { HeavyRequests } from './admission/heavy-requests.js';
import { AgentMetricsController, AgentMetricsMethods } from './agents/agent-metrics.controller.js';
import { AgentMethods, AgentsController } from './agents/agents.controller.js';
import { ApprovalMethods, ApprovalsController } from './agents/approvals.controller.js';
import { BudgetsController } from './agents/budgets.controller.js';
import { PluginsController } from './agents/plugins.controller.js';
import { McpServersController } from './agents/mcp-servers.controller.js';
import { ToolsController } from './agents/tools.controller.js';
import { MemoryController, MemoryMethods } from './agents/memory.controller.js';
import { MessageMethods, MessagesController } from './agents/messages.controller.js';
import { ChannelsController, WebhooksController } from './channels/channels.controller.js';
import { ChatStreams } from './chats/chat-streams.js';
import { ChatBranchesController } from './chats/chat-branches.controller.js';
import { ChatsController } from './chats/chats.controller.js';
import { FilesController } from './chats/files.controller.js';
import { DashboardFiles, dashboardFolder } from './dashboard/dashboard-files.js';
import { DashboardController } from './dashboard/dashboard.controller.js';
import { PolicyReportsController } from './dashboard/policy-reports.controller.js';
import { eventProviders } from './events/event.providers.js';
import { EventsController } from './events/events.controller.js';
import { LogTail } from './events/log-tail.js';
import { FrameLog } from './frames/frame-log.js';
import { createDeletedAnswersReader } from './frames/hidden-frames.js';
import { createVersionReader } from './frames/log-poller.js';
import { createNatsFrameBus } from './frames/nats-frame-bus.js';
import { SessionFeeds } from './frames/session-feeds.js';
import {
  AUTHENTICATOR,
  CHAT_STREAMS,
  DASHBOARD_FILES,
  FRAME_LOG,
  IDENTITIES,
  LOG_TAIL,
  SESSION_FEEDS,
  STATUS,
} from './gateway.ports.js';
import { CredentialsController } from './identity/credentials.controller.js';
import { ProvidersController } from './identity/providers.controller.js';
import { IdentityModule } from './identity/identity.module.js';
import { KeysController, WorkspacesController } from './identity/keys.controller.js';
import { AuditsController } from './log/audits.controller.js';
import { LogStatusController } from './log/log-status.controller.js';
import { PlansController } from './orchestration/plans.controller.js';
import { TaskMethods, TasksController } from './orchestration/tasks.controller.js';
import { RunsController, WorkflowsController } from './orchestration/workflows.controller.js';
import { ReferenceController } from './reference/reference.controller.js';
import { ReadAfterWriteInterceptor } from './route/read-after-write.interceptor.js';
import { RecentWrites } from './route/recent-writes.js';
import { SearchController } from './search/search.controller.js';
import { ResumeMethod } from './sessions/resume-session.js';
import { SendMethods } from './sessions/send-message.js';
import { SessionMethods, WorkspaceRouters } from './sessions/session-methods.js';
import { SessionsController } from './sessions/sessions.controller.js';
import { SubmitTurns } from './sessions/submit-turns.js';
import { ConnectionMethods } from './sockets/connection-methods.js';
import { EngineStatusBroadcaster } from './sockets/engine-status-broadcaster.js';
import { SocketMethods } from './sockets/socket-adapter.js';
import { AuthenticatedSockets } from './sockets/authenticated-sockets.js';
import { SocketLifecycle } from './sockets/socket-lifecycle.js';
import { AgentWarnings } from './status/agent-warnings.js';
import { ConfigController } from './status/config.controller.js';
import { createStatusReader, StatusController, type StatusReader } from './status/status.controller.js';
import { RunRemoteCall, ToolWorkerSockets } from './tool-workers/tool-workers.service.js';

/** Time within which notifications of appends wake the readers of events once, ms. */
const EVENT_WAKE_MS = 10;

const statusProvider: Provider = {
  provide: STATUS,
  inject: [REQUESTS, SERVICE_IDENTITY, CLOCK, HEALTH, DATABASE_POOL, CONFIG, ENVIRONMENT],
  useFactory: (
    requests: RequestClient,
    { version, startedAt }: ServiceIdentity,
    clock: Clock,
    health: HealthRegistry,
    pool: Pool,
    config: AntiphonConfig,
    env: Environment,
  ): StatusReader =>
    createStatusReader({
      requests,
      pool,
      config,
      version,
      uptimeMs: () => clock.now() - startedAt,
      ownHealth: () => health.report(),
      temporalUi: env['ANTIPHON_TEMPORAL_UI_URL'] || null,
    }),
};

/**
 * Module of the gateway: sockets, HTTP routes, routing and frames. A gateway holds no state that
 * another one lacks.
 */
@Module({
  imports: [IdentityModule],
  controllers: [
    AgentsController,
    AgentMetricsController,
    BudgetsController,
    PluginsController,
    ToolsController,
    McpServersController,
    ApprovalsController,
    AuditsController,
    ChannelsController,
    WebhooksController,
    ChatsController,
    ChatBranchesController,
    ConfigController,
    CredentialsController,
    ProvidersController,
    DashboardController,
    EventsController,
    FilesController,
    KeysController,
    MemoryController,
    MessagesController,
    ReferenceController,
    RunsController,
    SearchController,
    SessionsController,
    StatusController,
    TasksController,
    PlansController,
    PolicyReportsController,
    LogStatusController,
    WorkflowsController,
    WorkspacesController,
    RunRemoteCall,
  ],
  providers: [
    { provide: APP_GUARD, useClass: AccessGuard },
    {
      provide: HeavyRequests,
      inject: [CONFIG],
      useFactory: ({ gateway }: AntiphonConfig) => new HeavyRequests({ waitMs: gateway.heavyWaitMs }),
    },
    { provide: APP_INTERCEPTOR, useClass: HeavyRequestsInterceptor },
    {
      provide: RecentWrites,
      inject: [NATS, CLOCK, SERVICE_IDENTITY, EVENT_STORE],
      useFactory: (nats: NatsLink, clock: Clock, { id }: ServiceIdentity, store: EventStore) =>
        new RecentWrites(nats, clock, id, () => store.headPosition()),
    },
    { provide: APP_INTERCEPTOR, useClass: ReadAfterWriteInterceptor },
    AgentAccess,
    SubmitTurns,
    {
      provide: AUTHENTICATOR,
      inject: [CONFIG, IDENTITIES, CLOCK, ENVIRONMENT],
      useFactory: (
        { gateway }: AntiphonConfig,
        identities: Identities,
        clock: Clock,
        { ANTIPHON_HOME: home = '' }: Environment,
      ) => new Authenticator({ gateway, identities, clock, home }),
    },
    {
      provide: FRAME_LOG,
      inject: [EVENT_STORE, DATABASE_POOL],
      useFactory: (store: EventStore, pool: Pool) =>
        new FrameLog(store, createVersionReader(pool), createDeletedAnswersReader(pool)),
    },
    {
      provide: SESSION_FEEDS,
      inject: [NATS, FRAME_LOG, CLOCK],
      useFactory: (nats: NatsLink, log: FrameLog, clock: Clock) =>
        new SessionFeeds(createNatsFrameBus(nats), log, () => clock.now()),
    },
    {
      provide: CHAT_STREAMS,
      inject: [SESSION_FEEDS, FRAME_LOG, EVENT_STORE, DATABASE_POOL, IDENTITIES, LOGGER],
      useFactory: (
        feeds: SessionFeeds,
        frameLog: FrameLog,
        store: EventStore,
        pool: Pool,
        identities: Identities,
        logger: Logger,
      ) => new ChatStreams({ feeds, frameLog, store, pool, identities, logger }),
    },
    {
      provide: LOG_TAIL,
      inject: [DATABASE_POOL, NATS],
      useFactory: (pool: Pool, nats: NatsLink) =>
        new LogTail({
          pool,
          onAppend: (wake) => onLogNotification(nats, wake, { debounceMs: EVENT_WAKE_MS }),
          onError: (error) => countError('frame', error),
        }),
    },
    {
      provide: DASHBOARD_FILES,
      inject: [ENVIRONMENT],
      useFactory: (env: Environment) => new DashboardFiles(dashboardFolder(env['ANTIPHON_DASHBOARD_FOLDER'])),
    },
    statusProvider,
    AgentWarnings,
    EngineStatusBroadcaster,
    SocketMethods,
    ConnectionMethods,
    WorkspaceRouters,
    SendMethods,
    SessionMethods,
    ResumeMethod,
    ApprovalMethods,
    ...eventProviders,
    AgentMethods,
    AgentMetricsMethods,
    MessageMethods,
    TaskMethods,
    MemoryMethods,
    AuthenticatedSockets,
    ToolWorkerSockets,
    SocketLifecycle,
  ],
})
export class GatewayModule {}
