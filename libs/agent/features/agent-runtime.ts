import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { ModelPort } from '@antiphon/agent-domain';
import type { AntiphonConfig } from '@antiphon/config';
import { runProjection } from '@antiphon/event-store';
import type { EventStore, LeaseStore, RunningProjection } from '@antiphon/event-store';
import { failpoint } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { observeGauges } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { ApprovalEvents, createApprovals } from './approvals/approvals.js';
import type { Approvals } from './approvals/approvals.js';
import type { AnswerApprovalDeps } from './approvals/answer-approval.handler.js';
import { createCancelTurn } from './turns/cancel-turn.handler.js';
import type { CancelTurn } from './turns/cancel-turn.handler.js';
import { createSessionDriver } from './turns/session-driver.js';
import type { DriverDeps } from './turns/session-driver.js';
import { createSessionActor } from './sessions/session-actor.js';
import type { ActorDeps } from './sessions/session-actor.js';
import { createPublishFrames } from './sessions/live-frames.js';
import type { PublishFrames } from './sessions/live-frames.js';
import { createSandboxWatch } from './turns/sandbox-watch.js';
import { createSessionRegistry } from './sessions/session-registry.js';
import type { RegistryDeps, SessionRegistry } from './sessions/session-registry.js';
import { createToolCatalog } from './turns/tool-catalog.js';
import type { ToolRetries } from './turns/tool-retries.js';
import type { Failpoint } from './turns/step-context.js';
import { CircuitBreakers } from './providers/circuit-breaker.js';
import type { CircuitBreakerDeps } from './providers/circuit-breaker.js';
import { createCircuitStore } from './providers/circuit-breaker.store.js';
import { createForkSession } from './sessions/fork-session.handler.js';
import type { ForkSession } from './sessions/fork-session.handler.js';
import { createListAgents } from './sessions/list-agents.handler.js';
import type { ListAgents } from './sessions/list-agents.handler.js';
import { agentSessions } from './projections.js';
import { findAbandoned } from './sessions/find-abandoned.js';
import { onDriverNotification, takeOverAbandoned, untilIdle } from './sessions/recover-sessions.js';
import { retryHere, whoeverRetries } from './turns/who-retries.js';
import type { RetryTool } from './turns/tool-retry.js';
import { createSessionLog, foldSignature } from './sessions/session-log.js';
import { createSessionSnapshots } from './sessions/session-snapshots.js';
import { createReadVersions } from './sessions/stream-versions.js';
import { createStartSession } from './sessions/start-session.handler.js';
import type { StartSession } from './sessions/start-session.handler.js';
import { createSubmitTurn } from './turns/submit-turn.handler.js';
import type { SubmitTurn } from './turns/submit-turn.handler.js';

export { AGENT_RUNTIME } from './agent.tokens.js';

/** Folds of sessions kept in memory. */
const MAX_LANES = 2_000;
const KEEP_UP_MS = 250;
/** What has time is begun once turns that were left behind have had so long for themselves. */
const RESUME_FIRST_MS = 1_000;
/** A fold keeps this much of recent turns for each token of a context: more would never be shown. */
const CHARS_PER_CONTEXT_TOKEN = 8;

/** How this process drives sessions in time, ms. */
export interface DriveTimes {
  /** Life of a lease that is not renewed. */
  readonly leaseMs: number;
  /** Time that an idle session stays with this process. */
  readonly idleMs: number;
  /** Time between two polls for events that other processes appended to our sessions. */
  readonly lookMs: number;
  /** Hard deadline of one model attempt. */
  readonly attemptMs: number;
  /** Time between two sweeps for turns without a driver. */
  readonly sweepMs: number;
  /** Time that running turns have to end when the process stops; a supervisor allows fifteen seconds in all. */
  readonly drainMs: number;
}
const DRIVE_TIMES: DriveTimes = {
  leaseMs: 5_000,
  idleMs: 60_000,
  lookMs: 500,
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
  /** Unique for this incarnation of the process: the owner of its leases. */
  readonly owner: string;
  readonly times?: Partial<DriveTimes>;
  readonly random?: () => number;
  readonly failpoint?: Failpoint;
  /** Called for each circuit that this process opens or closes. */
  readonly onCircuitChange?: CircuitBreakerDeps['onChange'];
  /** Told at once of each turn that ends in this process, after the commit. */
  readonly turnEnded?: (sessionId: string) => void;
}

/** The agent's use cases, and the life of what drives sessions in this process. */
export interface AgentRuntime {
  readonly submitTurn: SubmitTurn;
  readonly cancelTurn: CancelTurn;
  readonly startSession: StartSession;
  readonly forkSession: ForkSession;
  readonly listAgents: ListAgents;
  /** Dependencies of the request handlers. */
  readonly services: AnswerApprovalDeps;
  readonly approvals: Approvals;
  /** Later tries of tool calls. */
  readonly retryTool: RetryTool;
  /** Who waits for the next try of a call, from now on; until then this process does. */
  leaveRetriesTo(retries: ToolRetries): void;
  /** Takes over turns whose driver is gone, now; this process does so every second by itself. */
  takeOver(): Promise<void>;
  /** Sessions at work in this process. */
  working(): number;
  /** Lists the open circuits of providers. */
  readonly openCircuits: CircuitBreakers['openCircuits'];
  /** Resolves when turns that a dead process left behind have ended, or have had a second for themselves. */
  start(): Promise<void>;
  /** Takes no more turns, lets running ones end, gives the leases back. Safe to call twice. */
  stop(): Promise<void>;
}

/** Frames go out after the commit that they tell of, and `done` is a turn's last. */
const publishAndTell =
  (publish: PublishFrames, turnEnded: (sessionId: string) => void): PublishFrames =>
  (workspace, sessionId, epoch, frames) => {
    publish(workspace, sessionId, epoch, frames);
    if (frames.some(({ event }) => event === 'done')) turnEnded(sessionId);
  };

/** All dependencies of the use cases; each module names those that it uses. */
interface RuntimeServices extends DriverDeps, ActorDeps, Omit<RegistryDeps, 'createSession' | 'log'> {
  readonly times: DriveTimes;
}

const toServices = (
  options: AgentRuntimeOptions,
  takesTurns: () => boolean,
  own: Pick<RuntimeServices, 'retries' | 'onApprovalChange'>,
): RuntimeServices => {
  const { config, pool, store, nats, logger, requests } = options;
  const { episodicWindow, contextTokens } = config.memory;
  const window = { turns: episodicWindow, chars: contextTokens * CHARS_PER_CONTEXT_TOKEN };
  return {
    ...options,
    ...own,
    log: createSessionLog(store, createSessionSnapshots(pool, foldSignature(window)), window),
    tools: createToolCatalog(requests, logger, () => performance.now()),
    sandbox: createSandboxWatch(requests),
    breakers: new CircuitBreakers({
      ...options,
      store: createCircuitStore(pool),
      onChange: options.onCircuitChange,
    }),
    publish: publishAndTell(createPublishFrames(nats, logger), options.turnEnded ?? (() => undefined)),
    readVersions: createReadVersions(pool),
    times: { ...DRIVE_TIMES, ...options.times },
    random: options.random ?? Math.random,
    failpoint: options.failpoint ?? failpoint,
    takesTurns,
  };
};

/** Does it again and again, with a pause after each round, until the signal says so. */
const repeat = async (work: () => Promise<void>, everyMs: number, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await work();
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
  }
};

/** Keeps the rows that sweeps and listings read equal to the log. */
const projectSessions = ({ pool, nats, logger }: AgentRuntimeOptions): RunningProjection =>
  runProjection({
    ...agentSessions,
    pool,
    logger,
    subscribe: (wake) => onLogNotification(nats, wake),
  });

const takeOver = ({ pool, logger }: AgentRuntimeOptions, registry: SessionRegistry): Promise<void> =>
  takeOverAbandoned((limit) => findAbandoned(pool, limit), registry, logger);

/** Takes over what has no driver, until the signal says so: at once, at hints, and every second. */
const recover = async (
  options: AgentRuntimeOptions,
  registry: SessionRegistry,
  sweepMs: number,
  stopping: AbortSignal,
  swept: () => void,
): Promise<void> => {
  const { nats, owner, logger } = options;
  const unsubscribe = onDriverNotification(nats, owner, registry, logger);
  const sweep = () =>
    takeOver(options, registry)
      .catch((error: unknown) =>
        logger.warn({ err: error }, 'abandoned sessions could not be looked for; they will be again'),
      )
      .then(swept);
  await repeat(sweep, sweepMs, stopping);
  unsubscribe();
};

const observeTurns = (registry: SessionRegistry): (() => void) =>
  observeGauges(
    {
      antiphon_turns_open: 'Turns that this process is working on',
      antiphon_turns_waiting: 'Accepted turns that wait for the one before them in their session',
    },
    (report) => {
      const { open, waiting } = registry.turns();
      report('antiphon_turns_open', open);
      report('antiphon_turns_waiting', waiting);
    },
  );

export const createAgentRuntime = (options: AgentRuntimeOptions): AgentRuntime => {
  const stopping = new AbortController();
  const drained = new AbortController();
  const [approvalEvents, retries] = [new ApprovalEvents(), whoeverRetries()];
  const waits = { retries, onApprovalChange: approvalEvents.publish };
  const services = toServices(options, () => !stopping.signal.aborted, waits);
  const createSession: RegistryDeps['createSession'] = (workspace, sessionId, known) => {
    const actor = createSessionActor(services, workspace, sessionId, known);
    return { actor, driver: createSessionDriver(services, actor) };
  };
  const registry = createSessionRegistry({ ...services, createSession }, MAX_LANES);
  const handlerServices = { ...services, registry, pool: options.pool };
  const retryTool = retryHere(services, registry, retries, stopping.signal);
  let running: Promise<unknown> = Promise.resolve();
  let projection: RunningProjection | null = null;
  let unobserve: () => void = () => undefined;
  let stopped: Promise<void> | null = null;

  const start = async (): Promise<void> => {
    const swept = Promise.withResolvers<void>();
    projection = projectSessions(options);
    unobserve = observeTurns(registry);
    running = Promise.all([
      recover(options, registry, services.times.sweepMs, stopping.signal, swept.resolve),
      // Turns that are running when the process is told to stop need their leases until they have ended.
      repeat(() => registry.keepUp(), KEEP_UP_MS, drained.signal),
      services.breakers.follow(drained.signal),
    ]);
    await swept.promise;
    await untilIdle(registry, RESUME_FIRST_MS);
  };
  const stop = async (): Promise<void> => {
    stopping.abort();
    unobserve();
    await registry.drain(services.times.drainMs);
    drained.abort();
    await Promise.all([running, projection?.stop()]);
  };

  return {
    submitTurn: createSubmitTurn(services, registry),
    cancelTurn: createCancelTurn(services, registry),
    startSession: createStartSession(services, registry),
    forkSession: createForkSession(services, registry),
    listAgents: createListAgents(options.config, options.pool),
    services: handlerServices,
    approvals: createApprovals(handlerServices, approvalEvents),
    retryTool,
    leaveRetriesTo: retries.leaveTo,
    takeOver: () => takeOver(options, registry),
    working: () => registry.working(),
    openCircuits: () => services.breakers.openCircuits(),
    start,
    stop: () => (stopped ??= stop()),
  };
};
