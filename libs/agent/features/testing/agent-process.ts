import type pg from 'pg';
import { AGENT_STORE, LEASE_OWNER, PAST_READS } from '@antiphon/agents-features/agents.tokens';
import { AgentDirectory } from '@antiphon/agents-features/lifecycle/agent-directory';
import { AgentRows } from '@antiphon/agents-features/lifecycle/agent-rows';
import { AgentTrees } from '@antiphon/agents-features/lifecycle/agent-trees';
import { AgentUpkeep } from '@antiphon/agents-features/lifecycle/agent-upkeep';
import { ConfiguredAgents } from '@antiphon/agents-features/lifecycle/configured-agents';
import { ControlAgent } from '@antiphon/agents-features/lifecycle/control-agent.handler';
import { ReadAgents } from '@antiphon/agents-features/lifecycle/read-agents.handler';
import { SpawnAgent } from '@antiphon/agents-features/lifecycle/spawn-agent.handler';
import { InboxSignals } from '@antiphon/agents-features/messages/inbox-signals';
import { InboxStore } from '@antiphon/agents-features/messages/inbox-store';
import { AgentFolders } from '@antiphon/agents-features/metrics/agent-folders';
import { AgentMetricsSampler } from '@antiphon/agents-features/metrics/agent-metrics';
import type { AntiphonConfig } from '@antiphon/config';
import { AnswerApproval } from '@antiphon/conversation-features/approvals/answer-approval.handler';
import { CheckApproval } from '@antiphon/conversation-features/approvals/check-approval.handler';
import { ReadApprovals } from '@antiphon/conversation-features/approvals/read-approvals.handler';
import * as conversation from '@antiphon/conversation-features/conversation.tokens';
import { ForkSession } from '@antiphon/conversation-features/sessions/fork-session.handler';
import { SessionRecovery } from '@antiphon/conversation-features/sessions/session-recovery';
import { SessionRegistry } from '@antiphon/conversation-features/sessions/session-registry';
import { StartSession } from '@antiphon/conversation-features/sessions/start-session.handler';
import { TurnEndWatcher } from '@antiphon/conversation-features/sessions/turn-ends';
import type { Failpoint } from '@antiphon/conversation-features/turns/step-context';
import { SubmitTurn } from '@antiphon/conversation-features/turns/submit-turn.handler';
import { CancelTurn } from '@antiphon/conversation-features/turns/cancel-turn.handler';
import { ToolRetry } from '@antiphon/conversation-features/turns/tool-retry';
import type { ToolRetries } from '@antiphon/conversation-features/turns/tool-retry';
import { BlobStore } from '@antiphon/database';
import type { EventStore, LeaseStore } from '@antiphon/event-store';
import { FileTrees } from '@antiphon/files-features/trees/file-trees';
import { Files } from '@antiphon/files-features/trees/files';
import type { Clock, Ids } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { LogUsage } from '@antiphon/orchestration-features/maintenance/log-usage';
import { CircuitBreakers } from '@antiphon/providers-features/breakers/circuit-breaker';
import type { CircuitBreakerDeps } from '@antiphon/providers-features/breakers/circuit-breaker';
import { createCircuitStore } from '@antiphon/providers-features/breakers/circuit-breaker.store';
import type { ModelPort } from '@antiphon/providers-domain';
import * as platform from '@antiphon/service-host';
import { AgentModule } from '../agent.module.js';
import { AgentWork } from '../agent-work.js';
import { composeModules, override } from './compose-modules.js';
import type { Override } from './compose-modules.js';

/** Resources of a process, and what a spec sets in it. */
export interface ProcessOptions {
  readonly config: AntiphonConfig;
  readonly store: EventStore;
  readonly leases: LeaseStore;
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly requests: RequestClient;
  readonly models: ModelPort;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly owner: string;
  readonly times: Partial<conversation.DriveTimes>;
  readonly random: () => number;
  readonly failpoint?: Failpoint;
  readonly onCircuitChange?: NonNullable<CircuitBreakerDeps['onChange']>;
  readonly retries?: ToolRetries;
  readonly overrides?: readonly Override[];
}

const overridesOf = (options: ProcessOptions): Override[] => {
  const { store, pool, nats, clock, ids, logger, owner, failpoint, onCircuitChange, retries } = options;
  const identity = { id: owner, home: '' } as platform.ServiceIdentity;
  const circuits = { store: createCircuitStore(pool), nats, clock, ids, logger };
  return [
    override(platform.CONFIG, options.config),
    [platform.EVENT_STORE, store],
    override(platform.LEASE_STORE, options.leases),
    override(platform.DATABASE_POOL, pool),
    override(platform.NATS, nats),
    override(platform.REQUESTS, options.requests),
    override(platform.LOGGER, logger),
    override(platform.CLOCK, clock),
    override(platform.IDS, ids),
    override(platform.SERVICE_IDENTITY, identity),
    [platform.ENVIRONMENT, {}],
    override(conversation.MODEL_PORT, options.models),
    override(conversation.DRIVE_TIMES, { ...conversation.defaultDriveTimes, ...options.times }),
    override(conversation.RANDOM, options.random),
    // Agents of a spec have no folders.
    [AgentFolders, { tryCreate: () => undefined }],
    [AgentMetricsSampler, { record: () => undefined }],
    ...(failpoint ? [override(conversation.FAILPOINT, failpoint)] : []),
    ...(retries ? [override(conversation.TOOL_RETRIES, retries)] : []),
    ...(onCircuitChange
      ? [override(CircuitBreakers, new CircuitBreakers({ ...circuits, onChange: onCircuitChange }))]
      : []),
    ...(options.overrides ?? []),
  ];
};

type Args<T extends (...args: never[]) => unknown> = Parameters<T>;

/** Composes the modules of the agent service for one process of a spec. */
export const composeProcess = (options: ProcessOptions) => {
  const { get } = composeModules(AgentModule, overridesOf(options));
  return {
    get,
    start: () => get(AgentWork).start(),
    stop: () => get(AgentWork).stop(),
    halt: () => get(AgentWork).halt(),
    submitTurn: (...args: Args<SubmitTurn['handle']>) => get(SubmitTurn).handle(...args),
    cancelTurn: (...args: Args<CancelTurn['handle']>) => get(CancelTurn).handle(...args),
    startSession: (...args: Args<StartSession['handle']>) => get(StartSession).handle(...args),
    forkSession: (...args: Args<ForkSession['handle']>) => get(ForkSession).handle(...args),
    spawnAgent: (...args: Args<SpawnAgent['handle']>) => get(SpawnAgent).handle(...args),
    controlAgent: (...args: Args<ControlAgent['handle']>) => get(ControlAgent).handle(...args),
    listAgents: (workspace: string) => get(ReadAgents).list({ workspace }),
    checkHeartbeats: () => get(AgentUpkeep).checkHeartbeats(),
    takeOver: () => get(SessionRecovery).takeOverAbandoned(),
    working: () => get(SessionRegistry).countWorking(),
    openCircuits: () => get(CircuitBreakers).openCircuits(),
    approvals: {
      answer: (...args: Args<AnswerApproval['handle']>) => get(AnswerApproval).handle(...args),
      check: (...args: Args<CheckApproval['handle']>) => get(CheckApproval).handle(...args),
      list: (...args: Args<ReadApprovals['list']>) => get(ReadApprovals).list(...args),
      get: (...args: Args<ReadApprovals['get']>) => get(ReadApprovals).get(...args),
    },
    get retryTool() {
      return get(ToolRetry);
    },
    /** Parts of the process that specs look into. */
    services: {
      owner: get(LEASE_OWNER),
      requests: options.requests,
      get store() {
        return get(AGENT_STORE);
      },
      get past() {
        return get(PAST_READS);
      },
      get agents() {
        return get(AgentDirectory);
      },
      get agentRows() {
        return get(AgentRows);
      },
      get trees() {
        return get(AgentTrees);
      },
      get configuredAgents() {
        return get(ConfiguredAgents);
      },
      get inboxes() {
        return get(InboxStore);
      },
      get inboxSignals() {
        return get(InboxSignals);
      },
      get registry() {
        return get(SessionRegistry);
      },
      get turnEnds() {
        return get(TurnEndWatcher);
      },
      get blobs() {
        return get(BlobStore);
      },
      get files() {
        return get(FileTrees);
      },
      get workspaceFiles() {
        return get(Files);
      },
      get logUsage() {
        return get(LogUsage);
      },
    },
  };
};

export type AgentRuntime = ReturnType<typeof composeProcess>;
