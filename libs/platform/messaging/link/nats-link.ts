import { connect } from '@nats-io/transport-node';
import type { NatsConnection, Status } from '@nats-io/transport-node';
import { retry, transient } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { avoidRequestErrors, batchNatsWrites } from '@antiphon/unsafe';

/** The one connection of a process to NATS, and its present state. */
export interface NatsLink {
  /**
   * For subscriptions, publishing and JetStream. Messages published while it is down are lost:
   * check `isConnected` first.
   */
  readonly connection: NatsConnection;
  /** Name of the service whose credential it uses. */
  readonly service: string;
  isConnected(): boolean;
  /** Calls `listener` each time the connection is lost; returns a function that unsubscribes it. */
  onDisconnect(listener: () => void): () => void;
  /**
   * Calls `listener` each time the connection is restored; returns a function that unsubscribes it.
   */
  onReconnect(listener: () => void): () => void;
  /**
   * Resolves when the connection is closed for good; with the reason unless this process closed it.
   */
  readonly closed: Promise<Error | undefined>;
  /**
   * Ends every subscription after the messages it has received, flushes, closes. Safe to call
   * twice.
   */
  drain(): Promise<void>;
}

/** Paths of PEM files: the server's authority, and the certificate and key of this client. */
export interface NatsTls {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
}

/**
 * Reads `ANTIPHON_NATS_CA_FILE`, `ANTIPHON_NATS_CERT_FILE` and `ANTIPHON_NATS_KEY_FILE`. Returns
 * undefined without any. A connection with one of them refuses a server without TLS.
 */
export const readNatsTls = (env: Readonly<Record<string, string | undefined>>): NatsTls | undefined => {
  const [caFile, certFile, keyFile] = ['CA', 'CERT', 'KEY'].map((name) => env[`ANTIPHON_NATS_${name}_FILE`]);
  if (!caFile && !certFile && !keyFile) return undefined;
  return {
    ...(caFile ? { caFile } : {}),
    ...(certFile ? { certFile } : {}),
    ...(keyFile ? { keyFile } : {}),
  };
};

export interface NatsLinkOptions {
  readonly url: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** Files of TLS; undefined leaves TLS to the server and the system's authorities. */
  readonly tls?: NatsTls | undefined;
  /**
   * Also names the connection and its inbox: replies go to `_INBOX.<service>.>` and nowhere else.
   */
  readonly service: string;
  /** Name of this connection on the server. Default: the service. */
  readonly name?: string;
  readonly logger: Logger;
  /** Time limit for the first connection, retries included. Default: 30,000 ms. */
  readonly connectTimeoutMs?: number;
}

const RETRY_MS = 250;
const PING_MS = 5_000;

/**
 * Returns the subject prefix of replies to a service; the permissions of its credential name it.
 */
export const inboxPrefix = (service: string): string => `_INBOX.${service}`;

const connectOnce = (options: NatsLinkOptions): Promise<NatsConnection> =>
  connect({
    servers: options.url,
    name: options.name ?? options.service,
    inboxPrefix: inboxPrefix(options.service),
    ...(options.user === undefined ? {} : { user: options.user, pass: options.password ?? '' }),
    // `tls://` asks for TLS as well: the client library ignores the scheme.
    ...(options.tls ? { tls: options.tls } : options.url.startsWith('tls:') ? { tls: {} } : {}),
    timeout: 2_000,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RETRY_MS,
    reconnectJitter: RETRY_MS,
    // A server that misses two pings counts as dead.
    pingInterval: PING_MS,
    maxPingOut: 2,
    // A restarted server refuses every credential until it has read its configuration.
    ignoreAuthErrorAbort: true,
    // A stack trace captured for each request costs more than the request's encoding.
    noAsyncTraces: true,
  });

const isAuthError = (error: unknown): boolean =>
  error instanceof Error && error.name === 'AuthorizationError';

/**
 * Connects with retries until the deadline. A refused credential fails at once: no retry can fix
 * it.
 */
const connectWithRetry = async (options: NatsLinkOptions): Promise<NatsConnection> => {
  try {
    return await retry(() => connectOnce(options), {
      firstMs: RETRY_MS,
      maxMs: RETRY_MS,
      withinMs: options.connectTimeoutMs ?? 30_000,
      isRetryable: (error) => !isAuthError(error),
      onRetry: (err) => options.logger.warn({ err }, 'NATS unreachable at start, retrying'),
    });
  } catch (cause) {
    throw transient('MESSAGING.UNAVAILABLE', 'NATS cannot be reached', { cause });
  }
};

/** Follows the status of a connection and calls listeners on each loss and return. */
class ConnectionMonitor {
  #connected = true;
  readonly #onLost = new Set<() => void>();
  readonly #onRestored = new Set<() => void>();

  constructor(
    private readonly connection: NatsConnection,
    private readonly logger: Logger,
  ) {}

  get isConnected(): boolean {
    return this.#connected && !this.connection.isClosed();
  }

  onDisconnect(listener: () => void): () => void {
    this.#onLost.add(listener);
    return () => void this.#onLost.delete(listener);
  }

  onReconnect(listener: () => void): () => void {
    this.#onRestored.add(listener);
    return () => void this.#onRestored.delete(listener);
  }

  async run(): Promise<void> {
    for await (const status of this.connection.status()) this.#handle(status);
  }

  async waitForClose(): Promise<Error | undefined> {
    const reason = await this.connection.closed();
    this.#connected = false;
    return reason instanceof Error ? reason : undefined;
  }

  #handle(status: Status): void {
    switch (status.type) {
      case 'disconnect':
        if (!this.#connected) return;
        this.#connected = false;
        this.logger.warn('NATS connection lost');
        for (const listener of this.#onLost) listener();
        return;
      case 'reconnect':
        this.#connected = true;
        this.logger.info('NATS connection restored');
        for (const listener of this.#onRestored) listener();
        return;
      case 'error':
        this.logger.error({ err: status.error }, 'NATS reported an error');
        return;
      case 'slowConsumer': {
        const fields = { subject: status.sub.getSubject(), pending: status.pending };
        this.logger.warn(fields, 'NATS subscriber too slow');
        return;
      }
      default:
        return;
    }
  }
}

/**
 * Connects to NATS and reconnects without limit, 250 to 500 ms between attempts. Fails with
 * `MESSAGING.UNAVAILABLE` (transient) when the first connection is not established in time.
 */
export const connectNats = async (options: NatsLinkOptions): Promise<NatsLink> => {
  const { logger, service } = options;
  const connection = await connectWithRetry(options);
  const monitor = new ConnectionMonitor(connection, logger);
  void monitor.run();
  const stopBatching = batchNatsWrites(connection, logger);
  avoidRequestErrors(connection, logger);
  const closed = monitor.waitForClose();
  return {
    connection,
    service,
    isConnected: () => monitor.isConnected,
    onDisconnect: (listener) => monitor.onDisconnect(listener),
    onReconnect: (listener) => monitor.onReconnect(listener),
    closed,
    drain: async () => {
      if (connection.isClosed() || connection.isDraining()) return void (await closed);
      stopBatching();
      // A drain waits for the server; without a connection it would wait for the timeout.
      await (monitor.isConnected ? connection.drain() : connection.close());
    },
  };
};

/** Makes the error of every operation that needs NATS while the connection is down. */
export const natsUnavailable = (cause?: unknown): AppError =>
  transient('MESSAGING.UNAVAILABLE', 'NATS cannot be reached at the moment', { cause });

/**
 * Runs an operation only while NATS is connected, and rejects as soon as the connection is lost.
 * The client library drops messages sent during an outage, and their replies have no receiver.
 */
export const callWhileConnected = <T>(link: NatsLink, operation: () => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    if (!link.isConnected()) return reject(natsUnavailable());
    const unsubscribe = link.onDisconnect(() => reject(natsUnavailable()));
    operation().then(resolve, reject).finally(unsubscribe);
  });
