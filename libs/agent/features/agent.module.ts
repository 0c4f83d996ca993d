import { Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { readTemporalServer } from '@antiphon/temporal';
import { AgentLifecycle } from './agent-lifecycle.js';
import { AgentPlatform } from './agent-platform.js';
import { AGENT_RUNTIME, AGENT_SERVICES } from './agent.tokens.js';
import {
  AGENTS_SERVICES,
  ControlAgent,
  ReadAgents,
  SpawnAgent,
  AgentFolders,
  AgentMetricsSampler,
  ReadAgentMetrics,
  Messages,
} from '@antiphon/agents-features';
import {
  FILES_SERVICES,
  FilesFollower,
  readFilesFolder,
  EraseFiles,
  RewindFiles,
  FilesHandler,
} from '@antiphon/files-features';
import {
  CONVERSATION_SERVICES,
  AnswerApproval,
  ReadApprovals,
  Chats,
  RenameChat,
  TURN_COMMANDS,
  TurnEndWatcher,
  ForkSession,
  ReadSessions,
  StartSession,
  BeginCall,
  CancelTurn,
  SubmitTurn,
  ListTurnsOfEntry,
  ReadTurnContext,
} from '@antiphon/conversation-features';
import {
  LogUsage,
  LogQuotaInterceptor,
  readRetention,
  PLAN_SERVICES,
  Plans,
  PlansRuntime,
  CancelRun,
  RunQueries,
  RUN_SERVICES,
  createRunServices,
  RunWorker,
  RUN_STARTER,
  StartRun,
  Workflows,
  ExternalClaims,
  Tasks,
  TASK_SERVICES,
  TasksRuntime,
  turnsInAnyProcess,
} from '@antiphon/orchestration-features';
import { AgentRuntime } from './agent-runtime.js';
import { ReplayParked } from './replay-parked.handler.js';
import type { RunServices } from '@antiphon/orchestration-features';
import { MODELS, ProvidersModule } from '@antiphon/providers-features';
import type { Models } from '@antiphon/providers-features';

const createSampler = (
  { pool, clock, logger, identity, config }: AgentPlatform,
  folders: AgentFolders,
): AgentMetricsSampler =>
  new AgentMetricsSampler({
    ...{ pool, clock, logger, folders },
    process: identity.id,
    metricsDays: config.retention.metricsDays,
  });

const createRuntime = (
  platform: AgentPlatform,
  models: Models,
  turnEnds: TurnEndWatcher,
  folders: AgentFolders,
  metrics: AgentMetricsSampler,
): AgentRuntime => {
  const { config, store, leases, pool, nats, requests, logger, clock, ids, identity } = platform;
  const shared = { config, store, leases, pool, nats, requests, logger, clock, ids, past: platform.past };
  return new AgentRuntime({ ...shared, models, owner: identity.id, turnEnds, folders, metrics });
};

const createRunWorker = (
  platform: AgentPlatform,
  services: RunServices,
  runtime: AgentRuntime,
  turnEnds: TurnEndWatcher,
): RunWorker => {
  const { config, nats, requests, identity, env } = platform;
  const temporalAddress = readTemporalServer(env);
  const retention = readRetention(env, config);
  const own = { services, nats, requests, runtime, turnEnds };
  return new RunWorker({ ...own, temporalAddress, retention, identity: identity.id });
};

const createTasks = (
  platform: AgentPlatform,
  runtime: AgentRuntime,
  turnEnds: TurnEndWatcher,
): TasksRuntime => {
  const { config, leases, pool, nats, logger, clock, ids, identity, requests, past } = platform;
  const { store, agents: directory, nativeTools } = runtime.services;
  const turns = turnsInAnyProcess(requests, runtime);
  const shared = { config, store, leases, pool, nats, logger, clock, ids, past };
  const tasks = new TasksRuntime({ ...shared, owner: identity.id, directory, turns, turnEnds });
  const handler = new Tasks(tasks.services);
  nativeTools.connectTasks((request) => handler.createTask(request));
  return tasks;
};

/** Follows the folders of files where `ANTIPHON_FILES_FOLDER` is set. */
const createFilesOnDisk = (platform: AgentPlatform, runtime: AgentRuntime): FilesFollower => {
  const { config, env, identity, pool, leases, clock, logger } = platform;
  const folder = readFilesFolder(env);
  const keepsExecutable = config.files.executableOnDisk;
  const own = { pool, leases, clock, logger, limits: () => config.files, owner: identity.id };
  return new FilesFollower({ ...own, trees: runtime.services.files, folder, keepsExecutable });
};

const createPlans = (
  platform: AgentPlatform,
  turns: AgentRuntime,
  turnEnds: TurnEndWatcher,
): PlansRuntime => {
  const { config, leases, pool, logger, clock, ids, identity } = platform;
  const { store, files, workspaceFiles, agents: directory, nativeTools, past } = turns.services;
  const shared = { config, store, leases, pool, logger, clock, ids, files, workspaceFiles, directory, past };
  const plans = new PlansRuntime({ ...shared, owner: identity.id, turns, turnEnds });
  nativeTools.connectPlans(new Plans(plans.services));
  return plans;
};

/** The agent service: sessions, turns, approvals and runs. */
@Module({
  imports: [ProvidersModule],
  controllers: [
    AnswerApproval,
    BeginCall,
    ReadApprovals,
    SubmitTurn,
    CancelTurn,
    ReadSessions,
    ReadTurnContext,
    ListTurnsOfEntry,
    StartSession,
    ForkSession,
    FilesHandler,
    ReadAgentMetrics,
    ReadAgents,
    ReplayParked,
    ControlAgent,
    Messages,
    Chats,
    RenameChat,
    RewindFiles,
    EraseFiles,
    SpawnAgent,
    Workflows,
    StartRun,
    CancelRun,
    RunQueries,
    Tasks,
    ExternalClaims,
    Plans,
  ],
  providers: [
    { provide: APP_INTERCEPTOR, useClass: LogQuotaInterceptor },
    AgentPlatform,
    {
      provide: TurnEndWatcher,
      inject: [AgentPlatform],
      useFactory: (own: AgentPlatform) => new TurnEndWatcher(own),
    },
    {
      provide: AgentFolders,
      inject: [AgentPlatform],
      useFactory: ({ identity, logger }: AgentPlatform) => new AgentFolders(identity.home, logger),
    },
    { provide: AgentMetricsSampler, inject: [AgentPlatform, AgentFolders], useFactory: createSampler },
    {
      provide: AGENT_RUNTIME,
      inject: [AgentPlatform, MODELS, TurnEndWatcher, AgentFolders, AgentMetricsSampler],
      useFactory: createRuntime,
    },
    { provide: AGENT_SERVICES, inject: [AGENT_RUNTIME], useFactory: (own: AgentRuntime) => own.services },
    { provide: CONVERSATION_SERVICES, useExisting: AGENT_SERVICES },
    { provide: LogUsage, inject: [AGENT_RUNTIME], useFactory: (own: AgentRuntime) => own.services.logUsage },
    { provide: AGENTS_SERVICES, useExisting: AGENT_SERVICES },
    { provide: FILES_SERVICES, useExisting: AGENT_SERVICES },
    { provide: TURN_COMMANDS, useExisting: AGENT_RUNTIME },
    { provide: RUN_SERVICES, inject: [AgentPlatform], useFactory: createRunServices },
    {
      provide: RunWorker,
      inject: [AgentPlatform, RUN_SERVICES, AGENT_RUNTIME, TurnEndWatcher],
      useFactory: createRunWorker,
    },
    { provide: RUN_STARTER, useExisting: RunWorker },
    {
      provide: TasksRuntime,
      inject: [AgentPlatform, AGENT_RUNTIME, TurnEndWatcher],
      useFactory: createTasks,
    },
    { provide: FilesFollower, inject: [AgentPlatform, AGENT_RUNTIME], useFactory: createFilesOnDisk },
    {
      provide: PlansRuntime,
      inject: [AgentPlatform, AGENT_RUNTIME, TurnEndWatcher],
      useFactory: createPlans,
    },
    { provide: PLAN_SERVICES, inject: [PlansRuntime], useFactory: ({ services }: PlansRuntime) => services },
    { provide: TASK_SERVICES, inject: [TasksRuntime], useFactory: ({ services }: TasksRuntime) => services },
    AgentLifecycle,
  ],
})
export class AgentModule {}
