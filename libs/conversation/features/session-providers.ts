import { ModuleRef } from '@nestjs/core';
import { AGENT_STORE, AgentMetricsSampler, LEASE_OWNER } from '@antiphon/agents-features';
import * as platform from '@antiphon/service-host';
import { createToken, provide, provideClass } from '@antiphon/service-host';
import * as tokens from './conversation.tokens.js';
import { createPublishFrames, publishAndReport } from './sessions/live-frames.js';
import type { PublishFrames } from './sessions/live-frames.js';
import { createLocalSession } from './sessions/local-session.js';
import type { CreateSession } from './sessions/local-session.js';
import { LocalSessions } from './sessions/local-sessions.js';
import { createSessionLog, createSessionSnapshots, foldSignature } from './sessions/session-log.js';
import { createReadVersions } from './sessions/session-queries.js';
import type { ReadVersions } from './sessions/session-queries.js';
import { SessionRecovery } from './sessions/session-recovery.js';
import { SessionRegistry } from './sessions/session-registry.js';
import type { StreamDeps } from './sessions/session-stream.js';
import { SessionUpkeep } from './sessions/session-upkeep.js';
import { Shutdown } from './sessions/shutdown.js';
import { TurnEndWatcher } from './sessions/turn-ends.js';
import { createReportAppended } from './turns/report-appended.js';
import { SessionWork } from './turns/session-work.js';
import { ToolRetry } from './turns/tool-retry.js';
import { TurnDrivers } from './turns/turn-driver.js';

const { CLOCK, CONFIG, DATABASE_POOL, EVENT_STORE, IDS, LEASE_STORE, LOGGER, NATS } = platform;
const { DRIVE_TIMES, SESSION_LOG, TAKES_TURNS } = tokens;

/**
 * Length of recent turns that a fold holds for each token of a context. Longer ones are never
 * shown.
 */
const CHARS_PER_CONTEXT_TOKEN = 8;

/** Size of the context for which a session keeps turns if no setting says it, tokens. */
const KEPT_TOKENS = 16_384;

const ON_APPENDED = createToken<StreamDeps['onAppended']>('ON_APPENDED');
const CREATE_SESSION = createToken<CreateSession>('CREATE_SESSION');
const PUBLISH_FRAMES = createToken<PublishFrames>('PUBLISH_FRAMES');
const READ_VERSIONS = createToken<ReadVersions>('READ_VERSIONS');
const STREAM_DEPS = createToken<StreamDeps>('STREAM_DEPS');
const SESSION_FACTORY = createToken<CreateSession>('SESSION_FACTORY');

/** Provides the sessions of this process. */
export const sessionProviders = [
  Shutdown,
  provide(tokens.DRIVE_TIMES, [], () => tokens.defaultDriveTimes),
  provide(SESSION_LOG, [EVENT_STORE, DATABASE_POOL, CONFIG], (store, pool, { memory }) => {
    const window = {
      turns: memory.episodicWindow,
      chars: (memory.contextTokens ?? KEPT_TOKENS) * CHARS_PER_CONTEXT_TOKEN,
    };
    return createSessionLog(store, createSessionSnapshots(pool, foldSignature(window)), window);
  }),
  provideClass(TurnEndWatcher, { pool: DATABASE_POOL, nats: NATS, logger: LOGGER }),
  provide(ON_APPENDED, [CLOCK, AgentMetricsSampler, NATS, tokens.ON_TURN_SETTLED], createReportAppended),
  provide(PUBLISH_FRAMES, [NATS, LOGGER, TurnEndWatcher], (nats, logger, turnEnds) =>
    publishAndReport(createPublishFrames(nats, logger), (sessionId) => turnEnds.notify(sessionId)),
  ),
  provide(STREAM_DEPS, [AGENT_STORE, SESSION_LOG, IDS, ON_APPENDED], (store, log, ids, onAppended) => ({
    ...{ store, log, ids, onAppended },
  })),
  provide(
    SESSION_FACTORY,
    [STREAM_DEPS, LEASE_STORE, LEASE_OWNER, DRIVE_TIMES, PUBLISH_FRAMES, TurnDrivers],
    (stream, leases, owner, times, publish, drivers) =>
      createLocalSession({ ...stream, leases, owner, times, publish, drivers }),
  ),
  // A driver submits turns by its tools, so the sessions get the factory when they need the first.
  provide(CREATE_SESSION, [ModuleRef], (modules) => (...session) => {
    const create = modules.get<CreateSession>(SESSION_FACTORY, { strict: false });
    return create(...session);
  }),
  provide(LocalSessions, [CREATE_SESSION], (createSession) => new LocalSessions(createSession)),
  provide(READ_VERSIONS, [DATABASE_POOL], createReadVersions),
  provide(TAKES_TURNS, [Shutdown], ({ takesTurns }) => takesTurns),
  provideClass(SessionUpkeep, {
    sessions: LocalSessions,
    leases: LEASE_STORE,
    log: SESSION_LOG,
    readVersions: READ_VERSIONS,
    logger: LOGGER,
    times: DRIVE_TIMES,
  }),
  provideClass(SessionRegistry, {
    sessions: LocalSessions,
    upkeep: SessionUpkeep,
    nats: NATS,
    logger: LOGGER,
    takesTurns: TAKES_TURNS,
    leases: LEASE_STORE,
    owner: LEASE_OWNER,
  }),
  provideClass(SessionRecovery, {
    registry: SessionRegistry,
    pool: DATABASE_POOL,
    nats: NATS,
    owner: LEASE_OWNER,
    logger: LOGGER,
  }),
  provideClass(SessionWork, {
    registry: SessionRegistry,
    recovery: SessionRecovery,
    retryTool: ToolRetry,
    shutdown: Shutdown,
    times: DRIVE_TIMES,
    nats: NATS,
    owner: LEASE_OWNER,
    logger: LOGGER,
  }),
];
