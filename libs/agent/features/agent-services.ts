import type pg from 'pg';
import { isTurnEnd, taskOfSessionKey } from '@antiphon/contracts/agent';
import type { ModelPort } from '@antiphon/providers-domain';
import type { AntiphonConfig } from '@antiphon/config';
import { BlobStore } from '@antiphon/database';
import { createLogMarks } from '@antiphon/event-store';
import type { EventStore, LeaseStore, PastReads } from '@antiphon/event-store';
import { createBoundedMap, failpoint } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import {
  AgentDirectory,
  AgentRows,
  AgentTrees,
  SpeakingAgents,
  ConfiguredAgents,
  InboxSignals,
  announceMessages,
  InboxStore,
  createFoldersOnStart,
  type AgentFolders,
} from '@antiphon/agents-features';
import type {
  ControlAgentDeps,
  SpawnAgentDeps,
  MessagesDeps,
  AgentMetricsSampler,
} from '@antiphon/agents-features';
import type {
  AnswerApprovalDeps,
  ChatsDeps,
  ForkSessionDeps,
  FoldedEvent,
  PublishFrames,
  ActorDeps,
  KeyBinding,
  RegistryDeps,
  CancelTurnDeps,
  Failpoint,
  SubmitTurnDeps,
  ToolRetryDeps,
  DriverDeps,
} from '@antiphon/conversation-features';
import {
  ChatStore,
  VirtualChats,
  createPublishFrames,
  TURN_END_SUBJECT,
  TurnEndWatcher,
  SessionActor,
  createSessionLog,
  createSessionSnapshots,
  foldSignature,
  createReadVersions,
  SessionRegistry,
  CallPermits,
  SandboxWatch,
  createAgentPrompts,
  RoleFiles,
  ToolCatalog,
  TurnDriver,
  TurnSteps,
  reportEndedTurns,
} from '@antiphon/conversation-features';
import { LogUsage, createTaskBudgets, createTaskOf } from '@antiphon/orchestration-features';
import { FileTreeSnapshots, FileTrees, Files } from '@antiphon/files-features';
import { createPastReads } from './projections.js';
import { CircuitBreakers, createCircuitStore } from '@antiphon/providers-features';
import type { CircuitBreakerDeps } from '@antiphon/providers-features';
import { NativeTools } from '@antiphon/native-tools-features';

/** Maximum number of sessions in the registry. */
const MAX_SESSIONS = 2_000;
/** Maximum number of session keys whose session is cached. */
const MAX_BOUND_SESSIONS = 10_000;
/**
 * Length of recent turns that a fold holds for each token of a context. Longer ones are never
 * shown.
 */
const CHARS_PER_CONTEXT_TOKEN = 8;

/** Times that control how this process drives sessions, ms. */
export interface DriveTimes {
  /** Life of a lease that is not renewed. */
  readonly leaseMs: number;
  /** Time that an idle session stays with this process. */
  readonly idleMs: number;
  /** Time between two polls for events that other processes appended to our sessions. */
  readonly pollMs: number;
  /** Hard deadline of one model attempt. */
  readonly attemptMs: number;
  /** Time between two sweeps for turns without a driver. */
  readonly sweepMs: number;
  /**
   * Time that running turns have to end when the process stops. A supervisor allows 15 s in all.
   */
  readonly drainMs: number;
}

export const DRIVE_TIMES: DriveTimes = {
  leaseMs: 5_000,
  idleMs: 60_000,
  pollMs: 500,
  attemptMs: 600_000,
  sweepMs: 1_000,
  drainMs: 8_000,
};

export interface AgentRuntimeOptions {
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
  /** Owner of this process's leases, unique for its incarnation. */
  readonly owner: string;
  readonly times?: Partial<DriveTimes>;
  readonly random?: () => number;
  readonly failpoint?: Failpoint;
  /** Called for each circuit that this process opens or closes. */
  readonly onCircuitChange?: CircuitBreakerDeps['onChange'];
  /** Default: one of this runtime's own. */
  readonly turnEnds?: TurnEndWatcher;
  /** Counts the work of agents. */
  readonly metrics?: Pick<AgentMetricsSampler, 'record'>;
  /** Default: reads of the past of this runtime's own. */
  readonly past?: PastReads;
  /** Creates the folders of agents. Absent: agents get none. */
  readonly folders?: AgentFolders;
}

type HandlerDeps = SubmitTurnDeps &
  CancelTurnDeps &
  ForkSessionDeps &
  ControlAgentDeps &
  SpawnAgentDeps &
  AnswerApprovalDeps &
  ChatsDeps &
  MessagesDeps;
type SessionDeps = DriverDeps & ActorDeps & Omit<RegistryDeps, 'createSession'>;

/** Dependencies of one process's use cases. Each module declares those that it uses. */
export type AgentServices = HandlerDeps &
  SessionDeps &
  ToolRetryDeps & {
    readonly times: DriveTimes;
    readonly turnEnds: TurnEndWatcher;
    readonly files: FileTrees;
    readonly blobs: BlobStore;
    readonly workspaceFiles: Files;
    readonly past: PastReads;
    readonly logUsage: LogUsage;
    readonly nativeTools: NativeTools;
    readonly speaking: SpeakingAgents;
  };

/**
 * Reports ended turns. Frames are published after the commit, and `done` is the last frame of a
 * turn.
 */
const publishAndReport =
  (publish: PublishFrames, turnEnded: (sessionId: string) => void): PublishFrames =>
  (workspace, sessionId, epoch, frames) => {
    publish(workspace, sessionId, epoch, frames);
    if (frames.some(({ event }) => event === 'done')) turnEnded(sessionId);
  };

/** State of the process that the services depend on. */
type ProcessHooks = Pick<AgentServices, 'takesTurns' | 'retries' | 'onApprovalChange'> & {
  /** Called for each turn of an agent whose drivers were lost again and again. */
  readonly onDriversLost: (workspace: string, agentId: string) => void;
};

const hasLostDrivers = (events: readonly FoldedEvent[]): boolean =>
  events.some(({ event }) => event.type === 'TurnFailed' && event.data.code === 'TURN.DRIVER_LOST');

/** Tells the process that assigns tasks of the end of a turn. A lost notification costs a poll. */
const announceTaskTurn = (
  { isConnected, connection }: NatsLink,
  sessionId: string,
  sessionKey: string,
  events: readonly FoldedEvent[],
): void => {
  if (taskOfSessionKey(sessionKey) === null || !events.some(({ event }) => isTurnEnd(event.type))) return;
  if (isConnected() && !connection.isDraining()) connection.publish(TURN_END_SUBJECT, sessionId);
};

type FileServices = Pick<AgentServices, 'files' | 'blobs' | 'workspaceFiles'>;

const createFiles = ({ config, pool, store, clock, ids }: AgentRuntimeOptions): FileServices => {
  const blobs = new BlobStore(pool, config.files.maxUncitedBytes);
  const files = new FileTrees({ store, blobs, snapshots: new FileTreeSnapshots(pool), ids });
  const workspaceFiles = new Files({ store, trees: files, blobs, config, clock });
  workspaceFiles.connectVirtual(new VirtualChats(new ChatStore(pool, store, ids), store));
  return { blobs, files, workspaceFiles };
};

/** Reports appended events of a session to the metrics and to waiting processes. */
const reportAppended =
  (options: AgentRuntimeOptions, hooks: ProcessHooks): AgentServices['onAppended'] =>
  (events, { workspace, sessionId }, { state }) => {
    const agentId = state.started?.agentId ?? '';
    reportEndedTurns(events, { workspace, sessionId, agentId }, options.clock.now());
    options.metrics?.record(
      workspace,
      agentId,
      events.map(({ event }) => event),
    );
    announceTaskTurn(options.nats, sessionId, state.started?.sessionKey ?? '', events);
    if (hasLostDrivers(events)) hooks.onDriversLost(workspace, agentId);
  };

const createSharedServices = (
  options: AgentRuntimeOptions,
  hooks: ProcessHooks,
): Omit<AgentServices, 'registry'> => {
  const { config, pool, store, nats, logger, requests, clock, ids } = options;
  const agentRows = new AgentRows(pool);
  const agents = new AgentDirectory({ config, store, nats, logger, readChanges: agentRows.readChanges });
  const { episodicWindow, contextTokens } = config.memory;
  const taskOf = createTaskOf(store);
  const turnEnds = options.turnEnds ?? new TurnEndWatcher({ pool, nats, logger });
  const inboxes = new InboxStore(pool);
  const marks = createLogMarks(pool, ['agent']);
  const inboxSignals = new InboxSignals({ nats, logger, inboxes, marks });
  const started = options.folders ? createFoldersOnStart(store, options.folders) : store;
  const announced = announceMessages(started, inboxSignals);
  const trees = new AgentTrees({ store: announced, ids });
  const configuredAgents = new ConfiguredAgents({ config, store, requests, agents, trees, clock, ids });
  const files = createFiles(options);
  const logUsage = new LogUsage({ pool, config, logger });
  const window = { turns: episodicWindow, chars: contextTokens * CHARS_PER_CONTEXT_TOKEN };
  return {
    ...options,
    ...hooks,
    agents,
    agentRows,
    speaking: new SpeakingAgents({ pool, nats, logger }),
    logUsage,
    past: options.past ?? createPastReads(pool),
    agentChain: (workspace, agentId) => agents.chainOf(workspace, agentId),
    taskBudgets: createTaskBudgets(store, taskOf),
    trees,
    ...files,
    roles: new RoleFiles({ files: files.files, agents }),
    configuredAgents,
    ...{ store: announced, inboxes, inboxSignals, turnEnds },
    nativeTools: new NativeTools({
      ...{ config, pool, store, agents, configuredAgents, clock, logger, turnEnds, taskOf },
      ...{ settings: config, ...files, logUsage },
    }),
    log: createSessionLog(store, createSessionSnapshots(pool, foldSignature(window)), window),
    tools: new ToolCatalog(requests, logger, () => performance.now()),
    sandbox: new SandboxWatch(requests),
    permits: new CallPermits(ids),
    breakers: new CircuitBreakers({
      ...options,
      store: createCircuitStore(pool),
      onChange: options.onCircuitChange,
    }),
    publish: publishAndReport(createPublishFrames(nats, logger), (sessionId) => turnEnds.notify(sessionId)),
    onAppended: reportAppended(options, hooks),
    readVersions: createReadVersions(pool),
    boundSessions: createBoundedMap<KeyBinding>(MAX_BOUND_SESSIONS),
    agentPrompts: createAgentPrompts(),
    times: { ...DRIVE_TIMES, ...options.times },
    random: options.random ?? Math.random,
    failpoint: options.failpoint ?? ((name, sessionId) => failpoint(name, () => sessionId)),
  };
};

/** Creates the services of one process, with the registry of its sessions. */
export const createAgentServices = (options: AgentRuntimeOptions, hooks: ProcessHooks): AgentServices => {
  const shared = createSharedServices(options, hooks);
  const steps = new TurnSteps(shared);
  const createSession: RegistryDeps['createSession'] = (workspace, sessionId, known) => {
    const actor = new SessionActor(shared, workspace, sessionId, known);
    return { actor, driver: new TurnDriver(shared, steps, actor) };
  };
  const registry = new SessionRegistry({ ...shared, createSession }, MAX_SESSIONS);
  return { ...shared, registry };
};
