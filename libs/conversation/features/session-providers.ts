import { ModuleRef } from '@nestjs/core';
import { AGENT_STORE, AgentMetricsSampler, LEASE_OWNER } from '@antiphon/agents-features';
import * as platform from '@antiphon/service-host';
import { createToken, provide, provideClass } from '@antiphon/service-host';
import * as tokens from './conversation.tokens.js';
import { createPublishFrames, publishAndReport } from './sessions/live-frames.js';
import type { PublishFrames } from './sessions/live-frames.js';
import { SessionActors } from './sessions/session-actor.js';
import { createSessionLog, createSessionSnapshots, foldSignature } from './sessions/session-log.js';
import { createReadVersions } from './sessions/session-queries.js';
import { SessionRecovery } from './sessions/session-recovery.js';
import { SessionRegistry } from './sessions/session-registry.js';
import type { RegistryDeps } from './sessions/session-registry.js';
import type { StreamDeps } from './sessions/session-stream.js';
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

const ON_APPENDED = createToken<StreamDeps['onAppended']>('ON_APPENDED');
const CREATE_SESSION = createToken<RegistryDeps['createSession']>('CREATE_SESSION');
const PUBLISH_FRAMES = createToken<PublishFrames>('PUBLISH_FRAMES');
const READ_VERSIONS = createToken<RegistryDeps['readVersions']>('READ_VERSIONS');
const SESSION_FACTORY = createToken<RegistryDeps['createSession']>('SESSION_FACTORY');

/** Provides the sessions of this process. */
export const sessionProviders = [
  Shutdown,
  provide(tokens.DRIVE_TIMES, [], () => tokens.defaultDriveTimes),
  provide(SESSION_LOG, [EVENT_STORE, DATABASE_POOL, CONFIG], (store, pool, { memory }) => {
    const window = {
      turns: memory.episodicWindow,
      chars: memory.contextTokens * CHARS_PER_CONTEXT_TOKEN,
    };
    return createSessionLog(store, createSessionSnapshots(pool, foldSignature(window)), window);
  }),
  provideClass(TurnEndWatcher, { pool: DATABASE_POOL, nats: NATS, logger: LOGGER }),
  provide(ON_APPENDED, [CLOCK, AgentMetricsSampler, NATS, tokens.ON_DRIVERS_LOST], createReportAppended),
  provide(PUBLISH_FRAMES, [NATS, LOGGER, TurnEndWatcher], (nats, logger, turnEnds) =>
    publishAndReport(createPublishFrames(nats, logger), (sessionId) => turnEnds.notify(sessionId)),
  ),
  provideClass(SessionActors, {
    publish: PUBLISH_FRAMES,
    leases: LEASE_STORE,
    owner: LEASE_OWNER,
    times: DRIVE_TIMES,
    store: AGENT_STORE,
    log: SESSION_LOG,
    ids: IDS,
    onAppended: ON_APPENDED,
  }),
  provide(
    SESSION_FACTORY,
    [SessionActors, TurnDrivers],
    (actors, drivers) => (workspace, sessionId, known) => {
      const actor = actors.create(workspace, sessionId, known);
      return { actor, driver: drivers.create(actor) };
    },
  ),
  // A driver submits turns by its tools, so the registry gets the drivers when it needs the first.
  provide(CREATE_SESSION, [ModuleRef], (modules) => (...session) => {
    const create = modules.get<RegistryDeps['createSession']>(SESSION_FACTORY, { strict: false });
    return create(...session);
  }),
  provide(READ_VERSIONS, [DATABASE_POOL], createReadVersions),
  provide(TAKES_TURNS, [Shutdown], ({ takesTurns }) => takesTurns),
  provideClass(SessionRegistry, {
    createSession: CREATE_SESSION,
    log: SESSION_LOG,
    readVersions: READ_VERSIONS,
    nats: NATS,
    logger: LOGGER,
    takesTurns: TAKES_TURNS,
    leases: LEASE_STORE,
    owner: LEASE_OWNER,
    times: DRIVE_TIMES,
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
