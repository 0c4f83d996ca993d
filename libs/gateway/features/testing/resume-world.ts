import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { liveSubject, sessionStream } from '@antiphon/contracts/agent';
import type { Frame, SessionEvent } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { connectNats, ensureStream, openJetStreamManager, STREAMS } from '@antiphon/messaging';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import { attachSocketServer } from '../accept-socket/socket-server.js';
import { shakeHands } from '../accept-socket/handshake.js';
import { createClientConnection } from '../answer-rpc/client-connection.js';
import { methodTable } from '../answer-rpc/rpc-method.js';
import { createRpcSession } from '../answer-rpc/rpc-session.js';
import { createSendBuffers } from '../answer-rpc/send-buffers.js';
import type { SendLimits } from '../answer-rpc/send-buffers.js';
import { createTokenGate } from '../authenticate/token-gate.js';
import { sessionResume } from '../resume-session/session-resume.js';
import { createFrameLog } from '../stream-frames/frame-log.js';
import { createNatsFrameBus } from '../stream-frames/nats-frame-bus.js';
import { createSessionFeeds } from '../stream-frames/session-feeds.js';

const WORKSPACE = 'default';

/** One gateway's sockets, with nothing but `session.resume`. */
export interface ResumeGateway {
  readonly wsUrl: string;
  /** Reads of event streams so far. */
  reads(): number;
  /** Bytes that its slow clients have not read. */
  held(): number;
}

/** What a driver does to a session, and gateways that know nothing of each other. */
export interface ResumeWorld {
  commit(sessionId: string, events: readonly SessionEvent[]): Promise<void>;
  /** Sends frames as a driver does; `LIVE` has them when this settles. */
  send(sessionId: string, frames: readonly Frame[], epoch?: number): Promise<void>;
  /** `LIVE` keeps nothing of what it had. */
  forgetLive(): Promise<void>;
  /** One that reaches NATS at another address if need be: through a link that a spec holds up. */
  gateway(limits?: SendLimits, natsUrl?: string): Promise<ResumeGateway>;
  close(): Promise<void>;
}

/** What `createTestDatabase` of `@antiphon/testing` makes; closing the world drops it. */
export interface WorldDatabase {
  urlFor(role: 'agent' | 'gateway'): string;
  drop(): Promise<void>;
}

const newEvent = ({ type, schemaVersion, data }: SessionEvent) => ({
  eventId: randomUUID(),
  type,
  schemaVersion,
  data: data as unknown as JsonObject,
  metadata: { correlationId: 'spec', service: 'agent' },
});

/** Real PostgreSQL, a NATS server of its own (`LIVE` is emptied), real sockets. */
export const createResumeWorld = async (database: WorldDatabase, natsUrl: string): Promise<ResumeWorld> => {
  const ends: (() => unknown)[] = [() => database.drop()];
  const storeFor = (role: 'agent' | 'gateway') => {
    const pool = createPool({ url: database.urlFor(role), applicationName: 'resume-spec', max: 6 });
    const store = createPostgresEventStore(pool, {});
    ends.push(async () => (await store.close(), await pool.end()));
    return store;
  };
  const link = async (service: string, url = natsUrl) => {
    const connected = await connectNats({ url, service, logger: silentLogger });
    ends.push(() => connected.drain());
    return connected;
  };
  const log = storeFor('agent');
  const nats = await link('agent');
  const manager = await openJetStreamManager(nats.connection);
  await ensureStream(manager, STREAMS.LIVE);
  let sent = 0;

  const listen = async (resumed: ReturnType<typeof sessionResume>, limits?: SendLimits) => {
    const http = createServer();
    const buffers = createSendBuffers(limits);
    const gate = createTokenGate(null, systemClock);
    const common = { logger: silentLogger, ids: uuidIds };
    const server = attachSocketServer(http, {
      ...common,
      gate,
      maxSockets: 100,
      onSocket: (socket, { address, authenticated }) => {
        const identity = { connectionId: randomUUID(), address };
        const connection = createClientConnection(socket, identity, buffers, silentLogger);
        const who = { workspace: WORKSPACE, caller: 'spec', traceparent: undefined };
        const session = createRpcSession({ connection, methods: methodTable([resumed]), ...who, ...common });
        const onReady = () => session.receive;
        const shaking = { socket, connection, gate, authenticated, logger: silentLogger, clock: systemClock };
        shakeHands({ ...shaking, capabilities: [], onReady });
      },
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    ends.push(async () => (await server.close(), http.close()));
    return { wsUrl: `ws://127.0.0.1:${(http.address() as AddressInfo).port}/ws`, held: buffers.total };
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
    send: async (sessionId, frames, epoch = 1) => {
      for (const frame of frames)
        nats.connection.publish(liveSubject(WORKSPACE, sessionId), JSON.stringify({ ...frame, epoch }));
      sent += frames.length;
      while ((await manager.streams.info('LIVE')).state.last_seq < sent) await nats.connection.flush();
    },
    forgetLive: async () => void (await manager.streams.purge('LIVE')),
    gateway: async (limits, url) => {
      const store = storeFor('gateway');
      let reads = 0;
      const counted: Pick<EventStore, 'readStream' | 'streamVersion'> = {
        readStream: (...args) => (reads++, store.readStream(...args)),
        streamVersion: (...args) => (reads++, store.streamVersion(...args)),
      };
      const frameLog = createFrameLog(counted);
      const bus = createNatsFrameBus(await link('gateway', url));
      const feeds = createSessionFeeds(bus, frameLog, () => systemClock.now());
      ends.push(() => feeds.close());
      const resumed = sessionResume({ feeds, frameLog, logger: silentLogger });
      return { ...(await listen(resumed, limits)), reads: () => reads };
    },
    close: async () => {
      for (const end of ends.reverse()) await end();
    },
  };
};
