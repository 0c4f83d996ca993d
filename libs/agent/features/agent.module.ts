import { Inject, Injectable, Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { readTemporalServer } from '@antiphon/temporal';
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
import { AgentRuntime } from './agent-runtime.js';
import { AnswerApproval } from './approvals/answer-approval.handler.js';
import { ReadApprovals } from './approvals/read-approvals.handler.js';
import { Chats } from './chats/chats.handler.js';
import { RenameChat } from './chats/rename-chat.handler.js';
import { LogQuotaInterceptor } from './maintenance/log-quota.interceptor.js';
import { ReplayParked } from './maintenance/replay-parked.handler.js';
import { readRetention } from './maintenance/archive-old-events.js';
import { PLAN_SERVICES, Plans } from './plans/plans.handler.js';
import { PlansRuntime } from './plans/plans-runtime.js';
import { CancelRun } from './runs/cancel-run.handler.js';
import { RunQueries } from './runs/run-queries.handler.js';
import { RUN_SERVICES, createRunServices } from './runs/run-streams.js';
import { TURN_COMMANDS, TurnEndWatcher } from './sessions/turn-ends.js';
import type { RunServices } from './runs/run-streams.js';
import { RunWorker } from './temporal/run-worker.js';
import { RUN_STARTER, StartRun } from './runs/start-run.handler.js';
import { Workflows } from './runs/workflows.handler.js';
import { ForkSession } from './sessions/fork-session.handler.js';
import { ReadSessions } from './sessions/read-sessions.handler.js';
import { StartSession } from './sessions/start-session.handler.js';
import { BeginCall } from './turns/begin-call.handler.js';
import { CancelTurn } from './turns/cancel-turn.handler.js';
import { SubmitTurn } from './turns/submit-turn.handler.js';
import { ListTurnsOfEntry } from './turns/entry-turns.handler.js';
import { ReadTurnContext } from './turns/turn-context.handler.js';
import { ExternalClaims } from './tasks/external-claims.handler.js';
import { Tasks } from './tasks/tasks.handler.js';
import { TASK_SERVICES, TasksRuntime, turnsInAnyProcess } from './tasks/tasks-runtime.js';
import {
  MODELS,
  ProvidersModule,
  createMasterKeyReader,
  describeMasterKey,
  providersInUse,
} from '@antiphon/providers-features';
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

const createTurnEnds = (platform: AgentPlatform): TurnEndWatcher => new TurnEndWatcher(platform);

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

/**
 * Starts to drive sessions after the bootstrap, and drains or hands over running turns at the
 * shutdown.
 */
@Injectable()
class AgentLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
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
    { provide: TurnEndWatcher, inject: [AgentPlatform], useFactory: createTurnEnds },
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
