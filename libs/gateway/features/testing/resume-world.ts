import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { liveSubject, sessionStream, speechSubject } from '@antiphon/contracts/agent';
import type { Frame, SessionEvent, SpeechNotification } from '@antiphon/contracts/agent';
import { REST_RULES } from '@antiphon/contracts/events';
import { ALL_WORKSPACES, createPool, inWorkspace } from '@antiphon/database';
import { archiveEvents, createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import {
  connectNats,
  createLogNotifier,
  ensureStream,
  onLogNotification,
  openJetStreamManager,
  STREAMS,
} from '@antiphon/messaging';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import { Authenticator, LOCAL_OPERATOR } from '../access/authenticator.js';
import { NO_IDENTITIES } from '../access/identities.port.js';
import { NO_LIMITS } from '../access/rate-limits.js';
import { ChatStreams } from '../chats/chat-streams.js';
import { AgentStates } from '../events/agent-states.js';
import { AgentStreams } from '../events/agent-streams.js';
import { AgentAccess } from '../access/agent-access.js';
import { HeavyRequests } from '../admission/heavy-requests.js';
import { AgentSubscriptionMethods } from '../events/agent-subscriptions.js';
import { followSpeech } from '../events/follow-speech.js';
import { MemoryFrames } from '../events/memory-frames.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { EventMethods } from '../events/event-methods.js';
import { LogTail } from '../events/log-tail.js';
import { FrameLog } from '../frames/frame-log.js';
import { createDeletedAnswersReader } from '../frames/hidden-frames.js';
import { createNatsFrameBus } from '../frames/nats-frame-bus.js';
import { SessionFeeds } from '../frames/session-feeds.js';
import { ResumeMethod } from '../sessions/resume-session.js';
import { authenticateSocket } from '../sockets/authenticate-socket.js';
import { ClientConnection, createSharedOutput } from '../sockets/client-connection.js';
import type { SendLimits } from '../sockets/outbox.js';
import { handlersOf } from './call-method.js';
import { ConnectionMethods } from '../sockets/connection-methods.js';
import type { MethodTable } from '../sockets/rpc-method.js';
import { RpcSession } from '../sockets/rpc-session.js';
import { attachSocketServer } from '../sockets/socket-server.js';

const WORKSPACE = 'default';

/** Sockets of one gateway that serves `session.resume` and the subscriptions to events. */
export interface ResumeGateway {
  readonly wsUrl: string;
  /** Returns the number of reads of event streams so far. */
  reads(): number;
  /** Returns the bytes that its slow clients have not read. */
  heldBytes(): number;
  /** Streams of events of chats. */
  readonly chats: ChatStreams;
}

/** Writes a session as its driver does, and starts independent gateways. */
export interface ResumeWorld {
  commit(sessionId: string, events: readonly SessionEvent[]): Promise<void>;
  /** Appends one event to a stream. */
  append(streamId: string, type: string, data: JsonObject): Promise<void>;
  /** Returns the id of the event at a position. */
  eventIdAt(position: number): Promise<string>;
  /** Sends frames as a driver does. Resolves once `LIVE` has them. */
  send(sessionId: string, frames: readonly Frame[], epoch?: number): Promise<void>;
  /** Tells gateways of the first text of an answer, as a driver does. */
  announce(speech: SpeechNotification): void;
  /** Moves all sessions whose turns have ended to an archive file. */
  archive(): Promise<void>;
  /** Removes all messages from `LIVE`. */
  purgeLive(): Promise<void>;
  /**
   * Starts a gateway. `natsUrl` may be a link that the spec can delay. Without `memory`, which
   * serves requests to the memory service, the feature is off.
   */
  startGateway(limits?: SendLimits, natsUrl?: string, memory?: GatewayRequests): Promise<ResumeGateway>;
  close(): Promise<void>;
}

/** Database of `createTestDatabase`. Closing the world drops it. */
export interface WorldDatabase {
  urlFor(role: 'agent' | 'gateway' | 'archiver'): string;
  drop(): Promise<void>;
}

const newEvent = ({ type, schemaVersion, data }: SessionEvent) => ({
  eventId: randomUUID(),
  type,
  schemaVersion,
  data: data as unknown as JsonObject,
  metadata: { correlationId: 'spec', service: 'agent' },
});

/**
 * Creates the world on real PostgreSQL, real sockets and a NATS server of its own, whose `LIVE` is
 * purged.
 */
export const createResumeWorld = async (database: WorldDatabase, natsUrl: string): Promise<ResumeWorld> => {
  const ends: (() => unknown)[] = [() => database.drop()];
  const storeFor = (role: 'agent' | 'gateway', onAppended?: (categories: ReadonlySet<string>) => void) => {
    const pool = createPool({ url: database.urlFor(role), applicationName: 'resume-spec', max: 6 });
    const store = createPostgresEventStore(pool, onAppended ? { onAppended } : {});
    ends.push(async () => (await store.close(), await pool.end()));
    return { store, pool };
  };
  const link = async (service: string, url = natsUrl) => {
    const connected = await connectNats({ url, service, logger: silentLogger });
    ends.push(() => connected.drain());
    return connected;
  };
  const nats = await link('agent');
  const { store: log, pool } = storeFor('agent', createLogNotifier(nats));
  const manager = await openJetStreamManager(nats.connection);
  await ensureStream(manager, STREAMS.LIVE);
  let sent = 0;

  const listen = async (methods: MethodTable, limits?: SendLimits, states?: AgentStates) => {
    const http = createServer();
    const shared = createSharedOutput(limits);
    const authenticator = new Authenticator({
      gateway: { token: null, loopbackWithoutToken: true, trustedProxies: [], limits: NO_LIMITS },
      identities: NO_IDENTITIES,
      clock: systemClock,
    });
    const common = { logger: silentLogger, ids: uuidIds };
    const server = attachSocketServer(http, {
      ...common,
      authenticator,
      maxSockets: 100,
      onSocket: (socket, { address, principal }) => {
        const identity = { connectionId: randomUUID(), address };
        const connection = new ClientConnection(socket, identity, shared, silentLogger);
        const who = { principal: LOCAL_OPERATOR, limits: authenticator.limits, traceparent: undefined };
        const onTyped = (): Promise<void> => states?.begin(connection, LOCAL_OPERATOR) ?? Promise.resolve();
        const session = new RpcSession({ connection, methods, onTyped, ...who, ...common });
        const onReady = () => (text: string, bytes: number) => session.receive(text, bytes);
        const logger = silentLogger;
        authenticateSocket({
          socket,
          connection,
          authenticator,
          principal,
          logger,
          capabilities: [],
          onReady,
        });
      },
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    ends.push(async () => (await server.close(), http.close()));
    return {
      wsUrl: `ws://127.0.0.1:${(http.address() as AddressInfo).port}/ws`,
      heldBytes: () => shared.buffers.total(),
    };
  };

  return {
    commit: async (sessionId, events) => {
      const streamId = sessionStream(sessionId);
      for (let from = 0; from < events.length; from += 200) {
        const part = events.slice(from, from + 200).map(newEvent);
        const streams = [{ streamId, expectedVersion: 'any' as const, events: part }];
        await log.append({ workspace: WORKSPACE, streams });
      }
    },
    append: async (streamId, type, data) => {
      const event = { eventId: randomUUID(), type, schemaVersion: 1, data };
      const events = [{ ...event, metadata: { correlationId: 'spec', service: 'agent' } }];
      await log.append({ workspace: WORKSPACE, streams: [{ streamId, expectedVersion: 'any', events }] });
    },
    send: async (sessionId, frames, epoch = 1) => {
      for (const frame of frames)
        nats.connection.publish(liveSubject(WORKSPACE, sessionId), JSON.stringify({ ...frame, epoch }));
      sent += frames.length;
      while ((await manager.streams.info('LIVE')).state.last_seq < sent) await nats.connection.flush();
    },
    announce: (speech) => nats.connection.publish(speechSubject(WORKSPACE), JSON.stringify(speech)),
    archive: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'antiphon-archive-'));
      ends.push(() => rm(folder, { recursive: true }));
      const archiver = createPool({
        url: database.urlFor('archiver'),
        applicationName: 'resume-spec',
        workspace: ALL_WORKSPACES,
      });
      const before = { position: Number.MAX_SAFE_INTEGER };
      await archiveEvents({ pool, archiver, folder, rules: REST_RULES, before });
      await archiver.end();
    },
    eventIdAt: async (position) => {
      const { rows } = await inWorkspace(pool, WORKSPACE).query<{ event_id: string }>(
        'select event_id from events where workspace = $1 and position = $2',
        [WORKSPACE, position],
      );
      return rows[0]?.event_id ?? '';
    },
    purgeLive: async () => void (await manager.streams.purge('LIVE')),
    startGateway: async (limits, url, requests) => {
      const { store, pool: gatewayPool } = storeFor('gateway');
      let reads = 0;
      const counted: Pick<EventStore, 'readStreamPage' | 'streamVersion'> = {
        readStreamPage: (...args) => (reads++, store.readStreamPage(...args)),
        streamVersion: (...args) => (reads++, store.streamVersion(...args)),
      };
      const frameLog = new FrameLog(counted, undefined, createDeletedAnswersReader(gatewayPool));
      const own = await link('gateway', url);
      const bus = createNatsFrameBus(own);
      const feeds = new SessionFeeds(bus, frameLog, () => systemClock.now());
      ends.push(() => feeds.close());
      const log = new LogTail({
        pool: gatewayPool,
        onAppend: (wake) => onLogNotification(nats, wake, { debounceMs: 10 }),
        onError: () => undefined,
      });
      ends.push(() => log.close());
      // Without an agent service: every session of the workspace may have an open turn.
      const findOpenSessions = async (workspace: string): Promise<string[]> => {
        const text = `select stream_id from stream_heads where workspace = $1 and starts_with(stream_id, 'session-')`;
        const found = await inWorkspace(pool, workspace).query<{ stream_id: string }>(text, [workspace]);
        return found.rows.map(({ stream_id: stream }) => stream);
      };
      const onSpeech = followSpeech(own, silentLogger);
      const memory = requests ? new MemoryFrames(requests) : null;
      const features = { agentRuntimeV1: true, workersV1: true, memoryV1: requests !== undefined };
      const agentAccess = new AgentAccess({ request: () => Promise.reject(new Error('no agent service')) });
      const streams = new AgentStreams({ log, findOpenSessions, onSpeech, memory, metrics: null });
      const states = new AgentStates({ features, streams, access: agentAccess, logger: silentLogger });
      const readable = { requireSession: () => Promise.resolve() };
      const methods = handlersOf(
        new ConnectionMethods(() => Promise.reject(new Error('no status')), states),
        new ResumeMethod(feeds, frameLog, store, readable, silentLogger),
        new EventMethods(log, agentAccess, new HeavyRequests(), silentLogger),
        new AgentSubscriptionMethods({ features }, streams, agentAccess),
      );
      const chats = new ChatStreams({
        ...{ feeds, frameLog, store: counted, pool: gatewayPool },
        ...{ identities: NO_IDENTITIES, logger: silentLogger },
      });
      ends.push(() => chats.close());
      return { ...(await listen(methods, limits, states)), reads: () => reads, chats };
    },
    close: async () => {
      for (const end of ends.reverse()) await end();
    },
  };
};
