import { Global, Module } from '@nestjs/common';
import { AgentDirectory, ConfiguredAgents, Messages, SpawnAgent } from '@antiphon/agents-features';
import {
  CancelTurn,
  NATIVE_TOOLS,
  SubmitTurn,
  ToolCatalog,
  TurnEndWatcher,
} from '@antiphon/conversation-features';
import { BlobStore } from '@antiphon/database';
import { FileTrees, Files } from '@antiphon/files-features';
import { LogUsage, Plans, TASK_OF, Tasks } from '@antiphon/orchestration-features';
import { CLOCK, CONFIG, DATABASE_POOL, EVENT_STORE, LOGGER, provideClass } from '@antiphon/service-host';
import { AskAgent } from './tools/ask-agent.js';
import { BlockedRequests } from './tools/blocked-requests.js';
import { DelegateTools } from './tools/delegate-tools.js';
import { FileTools } from './tools/file-tools.js';
import { FindTools } from './tools/find-tools.js';
import { ToolReads } from './tools/tool-reads.js';
import { ResultTools } from './tools/result-tools.js';
import { NativeTools } from './tools/run-native-tool.js';

const providers = [
  provideClass(BlockedRequests, { store: EVENT_STORE, configuredAgents: ConfiguredAgents, clock: CLOCK }),
  provideClass(AskAgent, {
    submitTurn: SubmitTurn,
    cancelTurn: CancelTurn,
    config: CONFIG,
    store: EVENT_STORE,
    blocked: BlockedRequests,
    logger: LOGGER,
    turnEnds: TurnEndWatcher,
    agents: AgentDirectory,
  }),
  provideClass(FileTools, {
    pool: DATABASE_POOL,
    files: FileTrees,
    blobs: BlobStore,
    settings: CONFIG,
    agents: AgentDirectory,
    workspaceFiles: Files,
  }),
  provideClass(DelegateTools, {
    messages: Messages,
    spawner: SpawnAgent,
    tasks: Tasks,
    agents: AgentDirectory,
    taskOf: TASK_OF,
  }),
  provideClass(ResultTools, { pool: DATABASE_POOL, blobs: BlobStore }),
  provideClass(ToolReads, { finding: FindTools, results: ResultTools, blobs: BlobStore }),
  provideClass(FindTools, { catalog: ToolCatalog, agents: AgentDirectory }),
  provideClass(
    NativeTools,
    {
      asking: AskAgent,
      files: FileTools,
      reads: ToolReads,
      delegating: DelegateTools,
      plans: Plans,
      logUsage: LogUsage,
      clock: CLOCK,
      logger: LOGGER,
    },
    NATIVE_TOOLS,
  ),
];

/** Tools of agents that run in this process. */
@Global()
@Module({ providers, exports: providers })
export class NativeToolsModule {}
