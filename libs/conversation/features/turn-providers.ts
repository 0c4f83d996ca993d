import {
  AGENT_STORE,
  AgentDirectory,
  InboxSignals,
  InboxStore,
  LEASE_OWNER,
  SpeakingAgents,
} from '@antiphon/agents-features';
import { BlobStore } from '@antiphon/database';
import { FileTrees, Files } from '@antiphon/files-features';
import { createBoundedMap, failpoint } from '@antiphon/kernel';
import { CircuitBreakers, MODELS } from '@antiphon/providers-features';
import * as platform from '@antiphon/service-host';
import { provide, provideClass } from '@antiphon/service-host';
import * as tokens from './conversation.tokens.js';
import type { KeyBinding } from './sessions/session-keys.js';
import { SessionRegistry } from './sessions/session-registry.js';
import { FileAccess } from './tools/file-access.js';
import { ApprovalsInTurn } from './turns/approvals-in-turn.js';
import { LargeResults } from './turns/large-results.js';
import { CallPermits } from './turns/call-permits.js';
import { CancelTurn } from './turns/cancel-turn.handler.js';
import { SandboxWatch } from './turns/lost-call.js';
import { ModelCalls } from './turns/model-call.js';
import { CallPreparer } from './turns/prepare-call.js';
import { MessageReceiver } from './turns/receive-messages.js';
import { CallBudget } from './turns/reserve-budget.js';
import { createAgentPrompts } from './turns/reserve-in-commit.js';
import { TargetResolver } from './turns/resolve-target.js';
import { CallFiles } from './turns/call-files.js';
import { ContextSizer } from './turns/context-sizer.js';
import { RoleFiles } from './turns/role-files.js';
import { TurnFiles } from './turns/turn-files.js';
import { ToolRunner } from './turns/run-tools.js';
import { SubmitTurn } from './turns/submit-turn.handler.js';
import { ToolCaller } from './turns/tool-call.js';
import { ToolCatalog } from './turns/tool-catalog.js';
import { ToolRetry } from './turns/tool-retry.js';
import { TurnDrivers } from './turns/turn-driver.js';
import { TurnPolicy } from './turns/turn-policy.js';
import { TurnSteps } from './turns/turn-steps.js';
import { VendorFigures } from './turns/vendor-figures.js';

const { CLOCK, CONFIG, DATABASE_POOL, IDS, LOGGER, NATS, REQUESTS } = platform;
const { DRIVE_TIMES, FAILPOINT, NATIVE_TOOLS, ON_APPROVAL_CHANGE, RANDOM, SESSION_LOG, TAKES_TURNS } = tokens;

/** Maximum number of session keys whose session is cached. */
const MAX_BOUND_SESSIONS = 10_000;

const tools = [
  provide(
    ToolCatalog,
    [REQUESTS, LOGGER],
    (requests, logger) => new ToolCatalog(requests, logger, () => performance.now()),
  ),
  provide(tokens.FRESH_TOOLS, [ToolCatalog], (catalog) => catalog),
  provide(SandboxWatch, [REQUESTS, LargeResults], (requests, results) => new SandboxWatch(requests, results)),
  provide(CallPermits, [IDS], (ids) => new CallPermits(ids)),
  provideClass(FileAccess, { settings: CONFIG, agents: AgentDirectory, workspaceFiles: Files }),
  provideClass(ToolCaller, {
    agents: AgentDirectory,
    sandbox: SandboxWatch,
    nats: NATS,
    clock: CLOCK,
    random: RANDOM,
    failpoint: FAILPOINT,
    permits: CallPermits,
    owner: LEASE_OWNER,
  }),
  provideClass(LargeResults, { requests: REQUESTS, blobs: BlobStore }),
  provideClass(ToolRunner, {
    caller: ToolCaller,
    nativeTools: NATIVE_TOOLS,
    tools: ToolCatalog,
    retries: tokens.TOOL_RETRIES,
    store: AGENT_STORE,
    clock: CLOCK,
  }),
  provideClass(ToolRetry, {
    registry: SessionRegistry,
    caller: ToolCaller,
    policy: TurnPolicy,
    failpoint: FAILPOINT,
    pool: DATABASE_POOL,
    logger: LOGGER,
  }),
];

const turns = [
  provide(RANDOM, [], () => Math.random),
  provide(FAILPOINT, [], () => (name, sessionId) => failpoint(name, () => sessionId)),
  provideClass(RoleFiles, { files: FileTrees, agents: AgentDirectory }),
  provideClass(TurnFiles, { roles: RoleFiles, trees: FileTrees, blobs: BlobStore }),
  provideClass(TurnPolicy, {
    agents: AgentDirectory,
    inboxSignals: InboxSignals,
    tools: ToolCatalog,
    breakers: CircuitBreakers,
    log: SESSION_LOG,
    clock: CLOCK,
    ids: IDS,
    takesTurns: TAKES_TURNS,
  }),
  provideClass(MessageReceiver, {
    inboxes: InboxStore,
    inboxSignals: InboxSignals,
    clock: CLOCK,
    ids: IDS,
    logger: LOGGER,
  }),
  provide(
    TargetResolver,
    [AgentDirectory, SessionRegistry, AGENT_STORE, IDS],
    (agents, registry, store, ids) => {
      const boundSessions = createBoundedMap<KeyBinding>(MAX_BOUND_SESSIONS);
      return new TargetResolver({ agents, registry, store, ids, boundSessions });
    },
  ),
  provideClass(CallBudget, {
    models: tokens.MODEL_PORT,
    requests: REQUESTS,
    clock: CLOCK,
    logger: LOGGER,
    agents: AgentDirectory,
    taskBudgets: tokens.TASK_BUDGETS,
    times: DRIVE_TIMES,
  }),
  provideClass(ContextSizer, { config: CONFIG, models: tokens.MODEL_PORT }),
  provideClass(CallFiles, { blobs: BlobStore, models: tokens.MODEL_PORT }),
  provideClass(CallPreparer, {
    requests: REQUESTS,
    config: CONFIG,
    tools: ToolCatalog,
    roles: RoleFiles,
    files: CallFiles,
    sizes: ContextSizer,
    budget: CallBudget,
    logger: LOGGER,
  }),
  provideClass(ModelCalls, {
    preparer: CallPreparer,
    models: tokens.MODEL_PORT,
    breakers: CircuitBreakers,
    speaking: SpeakingAgents,
    clock: CLOCK,
    logger: LOGGER,
  }),
  provideClass(VendorFigures, { pool: DATABASE_POOL, models: MODELS, requests: REQUESTS, logger: LOGGER }),
  provideClass(ApprovalsInTurn, {
    policy: TurnPolicy,
    tools: ToolCatalog,
    nativeTools: NATIVE_TOOLS,
    logger: LOGGER,
    onApprovalChange: ON_APPROVAL_CHANGE,
  }),
  provideClass(TurnSteps, {
    receiver: MessageReceiver,
    calls: ModelCalls,
    tools: ToolRunner,
    approvals: ApprovalsInTurn,
    policy: TurnPolicy,
    logger: LOGGER,
    random: RANDOM,
  }),
  provide(
    TurnDrivers,
    [TurnSteps, TurnPolicy, CallPreparer, CallBudget, FAILPOINT, LOGGER],
    (steps, policy, preparer, budget, stopAt, logger) =>
      new TurnDrivers({
        ...{ steps, policy, preparer, budget, failpoint: stopAt, logger },
        agentPrompts: createAgentPrompts(),
      }),
  ),
  provide(tokens.TURN_COMMANDS, [SubmitTurn, CancelTurn], (submit, cancel) => ({
    submitTurn: (request) => submit.handle(request),
    cancelTurn: (request) => cancel.handle(request),
  })),
];

/** Provides turns and their tool calls. */
export const turnProviders = [...tools, ...turns];
