/**
 * Patches of undocumented library internals. Each makes a library send several messages in one
 * write to its socket. A write is a system call, and costs more than encoding its messages
 * (docs/adr/0025). Order and content stay the library's. Each patch checks the
 * internals when it is applied or at start-up. Where they have changed, it logs a warning and the
 * library works unpatched.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import type { WebSocket } from 'ws';
import type { Logger } from '@antiphon/observability';

const warnInactive = (logger: Logger, library: string, internals: string): void =>
  logger.warn({ library, internals }, 'library patch inactive');

/** The part of nats-core's protocol handler that writes published messages. */
interface NatsOutbox {
  flushPending(): void;
  readonly outbound: { size(): number };
  readonly pendingLimit: number;
}

const natsOutboxOf = (connection: NatsConnection): NatsOutbox | null => {
  const { protocol } = connection as unknown as { readonly protocol?: Partial<NatsOutbox> };
  const isKnown =
    typeof protocol?.flushPending === 'function' &&
    typeof protocol.outbound?.size === 'function' &&
    typeof protocol.pendingLimit === 'number';
  return isKnown ? (protocol as NatsOutbox) : null;
};

/**
 * Batches all messages published in one round of the event loop into one write; the library writes
 * after every microtask that publishes. Returns a function that removes the patch and flushes, for
 * the end of the connection.
 */
export const batchNatsWrites = (connection: NatsConnection, logger: Logger): (() => void) => {
  const outbox = natsOutboxOf(connection);
  if (outbox === null) {
    warnInactive(logger, '@nats-io/nats-core', 'protocol.flushPending');
    return () => undefined;
  }
  const flush = outbox.flushPending.bind(outbox);
  let isScheduled = false;
  const flushScheduled = (): void => {
    isScheduled = false;
    flush();
  };
  outbox.flushPending = () => {
    // A full buffer is written at once.
    if (outbox.outbound.size() >= outbox.pendingLimit) return flush();
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(flushScheduled);
  };
  return () => {
    outbox.flushPending = flush;
    flush();
  };
};

interface Corkable {
  cork(): void;
  uncork(): void;
}

const isCorkable = (stream: Partial<Corkable> | null | undefined): stream is Corkable =>
  typeof stream?.cork === 'function' && typeof stream.uncork === 'function';

/** Returns the TCP socket of a ws connection, null once the connection is closed. */
const tcpSocketOf = (socket: WebSocket): Corkable | null => {
  const { _socket: tcpSocket } = socket as unknown as { readonly _socket?: Partial<Corkable> | null };
  return isCorkable(tcpSocket) ? tcpSocket : null;
};

/** Logs a warning if `createFrameBatcher` has no effect with this class of sockets. */
export const checkWebSocketPatch = (socketClass: typeof WebSocket, logger: Logger): void => {
  // The constructor call of a ws server: without an address nothing connects.
  const Unconnected = socketClass as unknown as new (
    address: null,
    protocols: undefined,
    options: object,
  ) => object;
  if (!Object.hasOwn(new Unconnected(null, undefined, {}), '_socket')) warnInactive(logger, 'ws', '_socket');
};

/**
 * Batches the frames sent to a client in one round of the event loop into one write; ws writes each
 * by itself. The returned function must be called before a frame is sent, and before
 * `bufferedAmount` is read. It flushes once `maxBytes` are held back, or a fast client would look
 * like a slow one.
 */
export const createFrameBatcher = (socket: WebSocket, maxBytes: number): (() => void) => {
  let corked: Corkable | null = null;
  let isScheduled = false;
  const flush = (): void => {
    const tcpSocket = corked;
    corked = null;
    tcpSocket?.uncork();
  };
  const flushScheduled = (): void => {
    isScheduled = false;
    flush();
  };
  return () => {
    if (corked !== null && socket.bufferedAmount >= maxBytes) flush();
    if (corked !== null) return;
    corked = tcpSocketOf(socket);
    corked?.cork();
    if (corked === null || isScheduled) return;
    isScheduled = true;
    setImmediate(flushScheduled);
  };
};

const postgresStreamOf = (client: pg.ClientBase): Corkable | null => {
  const { connection } = client as unknown as {
    readonly connection?: { readonly stream?: Partial<Corkable> };
  };
  return isCorkable(connection?.stream) ? connection.stream : null;
};

/** Logs a warning if `sendInOneWrite` has no effect. `probe` is a client without a connection. */
export const checkPostgresPatch = (probe: pg.ClientBase, logger: Logger): void => {
  if (postgresStreamOf(probe) === null) warnInactive(logger, 'pg', 'connection.stream');
};

/** Sends the queries that `work` issues before its first wait in one write to the socket. */
export const sendInOneWrite = <T>(client: pg.PoolClient, work: () => T): T => {
  const stream = postgresStreamOf(client);
  stream?.cork();
  // After callbacks of promises that are already settled: `work` may run on in them without a wait.
  if (stream) process.nextTick(() => stream.uncork());
  return work();
};
