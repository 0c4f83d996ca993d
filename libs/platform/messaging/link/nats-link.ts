import { connect } from '@nats-io/transport-node';
import type { NatsConnection, Status } from '@nats-io/transport-node';
import { transient } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { gatherWrites } from '../gather-writes.js';
import { spareErrors } from '../spare-errors.js';

/** The one connection of a process to NATS, and whether it stands right now. */
export interface NatsLink {
  /** For subscriptions, publishing and JetStream. What is published while it is down is lost: check first. */
  readonly connection: NatsConnection;
  /** Name of the service whose credential it uses. */
  readonly service: string;
  isConnected(): boolean;
  /** Called each time that the connection is lost; answers how to stop listening. */
  onDisconnect(listener: () => void): () => void;
  /** Called each time that the connection is back. */
  onReconnect(listener: () => void): () => void;
  /** Settles when the connection is closed for good: with the reason if nobody here asked for it. */
  readonly closed: Promise<Error | undefined>;
  /** Ends every subscription after what it has received already, flushes, closes. Safe to call twice. */
  drain(): Promise<void>;
}

export interface NatsLinkOptions {
  readonly url: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** Also names the connection and its inbox: replies go to `_INBOX.<service>.>` and nowhere else. */
  readonly service: string;
  /** What the server shows for this connection, default the service. */
  readonly name?: string;
  readonly logger: Logger;
  /** How long the first connection may take in all, default 30,000 ms. */
  readonly connectTimeoutMs?: number;
}

const RETRY_MS = 250;
const PING_MS = 5_000;

/** Where replies to a service arrive; part of the permissions of its credential. */
export const inboxPrefix = (service: string): string => `_INBOX.${service}`;

const connectOnce = (options: NatsLinkOptions): Promise<NatsConnection> =>
  connect({
    servers: options.url,
    name: options.name ?? options.service,
    inboxPrefix: inboxPrefix(options.service),
    ...(options.user === undefined ? {} : { user: options.user, pass: options.password ?? '' }),
    timeout: 2_000,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RETRY_MS,
    reconnectJitter: RETRY_MS,
    // A server that answers no ping for two rounds is taken for dead.
    pingInterval: PING_MS,
    maxPingOut: 2,
    // While a restarted server reads its configuration it may refuse everybody; that is no reason to give up.
    ignoreAuthErrorAbort: true,
    // A stack for each request, captured in advance, costs more than the request's encoding.
    noAsyncTraces: true,
  });

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const isAuthError = (error: unknown): boolean =>
  error instanceof Error && error.name === 'AuthorizationError';

/** Tries until the deadline; a refused credential ends it at once, since trying again does not help. */
const connectBefore = async (deadline: number, options: NatsLinkOptions): Promise<NatsConnection> => {
  try {
    return await connectOnce(options);
  } catch (cause) {
    if (isAuthError(cause) || performance.now() + RETRY_MS > deadline)
      throw transient('MESSAGING.UNAVAILABLE', 'NATS cannot be reached', { cause });
    options.logger.warn({ err: cause }, 'NATS cannot be reached yet; trying again');
  }
  await pause(RETRY_MS);
  return connectBefore(deadline, options);
};

type Listeners = Set<() => void>;
const listen = (listeners: Listeners, listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

interface Watch {
  connected: boolean;
  readonly lost: Listeners;
  readonly back: Listeners;
}

const report = (status: Status, watch: Watch, logger: Logger): void => {
  switch (status.type) {
    case 'disconnect':
      if (!watch.connected) return;
      watch.connected = false;
      logger.warn('the connection to NATS is lost; reconnecting');
      for (const listener of watch.lost) listener();
      return;
    case 'reconnect':
      watch.connected = true;
      logger.info('the connection to NATS is back');
      for (const listener of watch.back) listener();
      return;
    case 'error':
      logger.error({ err: status.error }, 'NATS reports an error');
      return;
    case 'slowConsumer':
      logger.warn({ subject: status.sub.getSubject(), pending: status.pending }, 'a subscriber is slow');
      return;
    default:
      return;
  }
};

const follow = async (connection: NatsConnection, watch: Watch, logger: Logger): Promise<void> => {
  for await (const status of connection.status()) report(status, watch, logger);
};

/**
 * Connects to NATS and stays connected: reconnects for ever, with a quarter to half a second between attempts.
 * Fails with `MESSAGING.UNAVAILABLE` (transient) when the first connection does not come about in time.
 */
export const connectNats = async (options: NatsLinkOptions): Promise<NatsLink> => {
  const { logger, service, connectTimeoutMs = 30_000 } = options;
  const connection = await connectBefore(performance.now() + connectTimeoutMs, options);
  const watch: Watch = { connected: true, lost: new Set(), back: new Set() };
  void follow(connection, watch, logger);
  spareErrors(connection);
  const writeAtOnce = gatherWrites(connection);
  const closed = connection.closed().then((reason) => {
    watch.connected = false;
    return reason instanceof Error ? reason : undefined;
  });
  return {
    connection,
    service,
    isConnected: () => watch.connected && !connection.isClosed(),
    onDisconnect: (listener) => listen(watch.lost, listener),
    onReconnect: (listener) => listen(watch.back, listener),
    closed,
    drain: async () => {
      if (connection.isClosed() || connection.isDraining()) return void (await closed);
      writeAtOnce();
      // A drain waits for the server; with no server there is nothing to wait for.
      await (watch.connected ? connection.drain() : connection.close());
    },
  };
};

/** What everything that needs NATS answers while it is away. */
export const natsUnavailable = (cause?: unknown): AppError =>
  transient('MESSAGING.UNAVAILABLE', 'NATS cannot be reached at the moment', { cause });

/**
 * Asks something of NATS, but only while it is there, and waits no longer than it is: what is sent during an outage
 * is dropped by the client library, and an answer that comes then goes to nobody.
 */
export const callWhileConnected = <T>(link: NatsLink, ask: () => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    if (!link.isConnected()) return reject(natsUnavailable());
    const stop = link.onDisconnect(() => reject(natsUnavailable()));
    ask().then(resolve, reject).finally(stop);
  });
