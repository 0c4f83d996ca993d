import { CLIENT_ERRORS, ClientError } from './errors.js';
import { GatewaySocket, type Incoming, type SocketOptions } from './gateway-socket.js';
import { requireFrameSize } from './web-socket.js';

/** A request with its answers, which may outlive connections. */
export interface Exchange {
  /** Returns the request to send on the current connection. */
  request(): { readonly method: string; readonly params: unknown };
  /** False: it fails when the connection is lost after it was sent, because it may have been done. */
  canRepeat(): boolean;
  onMessage(message: Incoming, length: number): void;
  fail(error: ClientError): void;
}

export interface ConnectionOptions extends SocketOptions {
  /** Gateways, without `/ws`. A lost connection moves on to the next one. */
  readonly urls: readonly string[];
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Time without a connection after which everything open fails, ms. */
  readonly giveUpAfterMs: number;
  /** Called with each frame that no request asked for, such as `gateway.degraded`. */
  readonly onNotification: (message: Incoming) => void;
  /** Called each time a gateway has accepted this client. */
  readonly onConnect: () => void;
}

/** Requests without an answer at one time. The gateway refuses more than 256. */
const MAX_UNANSWERED = 128;

interface Waiter {
  failuresLeft: number;
  resolve(): void;
  reject(error: ClientError): void;
}

/**
 * One connection to any of several gateways. It connects when there is work, and again after each
 * loss, with backoff and jitter. Open exchanges are sent again on the new connection.
 */
export class GatewayConnection {
  readonly #options: ConnectionOptions;
  readonly #exchanges = new Set<Exchange>();
  readonly #byId = new Map<number, Exchange>();
  readonly #idOf = new Map<Exchange, number>();
  readonly #unanswered = new Set<number>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  readonly #waiters = new Set<Waiter>();
  #unsent: Exchange[] = [];
  #socket: GatewaySocket | null = null;
  #state: 'idle' | 'connecting' | 'ready' | 'closed' = 'idle';
  #urlIndex = 0;
  #failures = 0;
  #downSince = 0;
  #nextId = 1;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /** Resolves once a gateway has accepted this client. Rejects once each was tried without effect. */
  connect(): Promise<void> {
    if (this.isReady) return Promise.resolve();
    if (this.#state === 'closed') return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      this.#waiters.add({ failuresLeft: this.#options.urls.length, resolve, reject });
      this.#wake();
    });
  }

  /** Sends an exchange now, or once there is a connection. */
  add(exchange: Exchange): void {
    if (this.#state === 'closed') return exchange.fail(closedError());
    this.#exchanges.add(exchange);
    this.#enqueue(exchange);
  }

  /** Ends an exchange: later messages for it are dropped. */
  remove(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    this.detach(exchange);
  }

  /** Drops messages for an exchange until it is sent again. Returns the id that it had. */
  detach(exchange: Exchange): number | undefined {
    const id = this.#idOf.get(exchange);
    this.#unsent = this.#unsent.filter((unsent) => unsent !== exchange);
    if (id === undefined) return undefined;
    this.#idOf.delete(exchange);
    this.#byId.delete(id);
    this.#markAnswered(id);
    return id;
  }

  /** Sends an exchange again, under a new id. */
  resend(exchange: Exchange, delayMs = 0): void {
    this.detach(exchange);
    if (delayMs > 0) this.#after(delayMs, () => this.resend(exchange));
    else if (this.#exchanges.has(exchange)) this.#enqueue(exchange);
  }

  /** Fails everything that is open, and leaves no timer. */
  close(): void {
    this.#state = 'closed';
    this.#failAll(closedError());
  }

  #enqueue(exchange: Exchange): void {
    this.#unsent.push(exchange);
    this.#pump();
    this.#wake();
  }

  #wake(): void {
    if (this.#state !== 'idle' || (this.#exchanges.size === 0 && this.#waiters.size === 0)) return;
    this.#state = 'connecting';
    this.#open();
  }

  #open(): void {
    const url = this.#options.urls[this.#urlIndex % this.#options.urls.length] ?? '';
    this.#socket = new GatewaySocket(url, this.#options, {
      onReady: () => this.#onReady(),
      onMessage: (message, length) => this.#receive(message, length),
      onLost: (cause) => this.#onLost(unreachable(url, cause)),
      onRefused: (error) => this.#giveUp(error),
    });
  }

  #onReady(): void {
    this.#state = 'ready';
    for (const waiter of this.#waiters) waiter.resolve();
    this.#waiters.clear();
    this.#pump();
    this.#options.onConnect();
  }

  #receive(message: Incoming, length: number): void {
    if (message.type !== undefined) return this.#options.onNotification(message);
    if (typeof message.id !== 'number') return;
    // Not before an answer: a gateway that accepts and closes at once is a failure, too.
    this.#failures = 0;
    this.#downSince = 0;
    this.#markAnswered(message.id);
    this.#byId.get(message.id)?.onMessage(message, length);
  }

  #pump(): void {
    while (this.isReady && this.#unanswered.size < MAX_UNANSWERED) {
      const exchange = this.#unsent.shift();
      if (!exchange) return;
      this.#send(exchange);
    }
  }

  #send(exchange: Exchange): void {
    const id = this.#nextId++;
    const text = JSON.stringify({ id, ...exchange.request() });
    try {
      requireFrameSize(text);
    } catch (error) {
      this.remove(exchange);
      return exchange.fail(error as ClientError);
    }
    this.#byId.set(id, exchange);
    this.#idOf.set(exchange, id);
    this.#unanswered.add(id);
    this.#socket?.send(text);
  }

  #markAnswered(id: number): void {
    if (this.#unanswered.delete(id)) this.#pump();
  }

  #onLost(error: ClientError): void {
    this.#socket = null;
    this.#state = 'connecting';
    this.#urlIndex++;
    for (const waiter of this.#waiters) {
      if (--waiter.failuresLeft > 0) continue;
      this.#waiters.delete(waiter);
      waiter.reject(error);
    }
    const sent = [...this.#idOf.keys()];
    this.#forgetIds();
    this.#unsent.unshift(...sent.filter((exchange) => exchange.canRepeat()));
    for (const exchange of sent) if (!exchange.canRepeat()) this.#failLost(exchange);
    this.#reconnectLater(error);
  }

  #failLost(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    const message = 'the connection was lost before the answer; the request may have been done';
    exchange.fail(new ClientError(CLIENT_ERRORS.disconnected, message));
  }

  #reconnectLater(error: ClientError): void {
    if (this.#exchanges.size === 0 && this.#waiters.size === 0) {
      this.#state = 'idle';
      return;
    }
    const { firstDelayMs, maxDelayMs, giveUpAfterMs } = this.#options;
    const now = performance.now();
    this.#downSince ||= now;
    if (now - this.#downSince > giveUpAfterMs) return this.#giveUp(error);
    const delayMs = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(this.#failures++, 20));
    // Full jitter: clients of a gateway that was lost do not return at the same moment.
    this.#after(delayMs * Math.random(), () => this.#open());
  }

  /** Fails everything that is open. A later exchange connects again. */
  #giveUp(error: ClientError): void {
    this.#state = 'idle';
    this.#failures = 0;
    this.#downSince = 0;
    this.#failAll(error);
  }

  #failAll(error: ClientError): void {
    this.#socket?.close();
    this.#socket = null;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    const [waiters, exchanges] = [[...this.#waiters], [...this.#exchanges]];
    this.#waiters.clear();
    this.#exchanges.clear();
    this.#unsent = [];
    this.#forgetIds();
    for (const waiter of waiters) waiter.reject(error);
    for (const exchange of exchanges) exchange.fail(error);
  }

  #forgetIds(): void {
    this.#byId.clear();
    this.#idOf.clear();
    this.#unanswered.clear();
  }

  /** Calls back after a delay, unless the client fails or is closed before. */
  #after(delayMs: number, callback: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, delayMs);
    this.#timers.add(timer);
  }
}

const closedError = (): ClientError => new ClientError(CLIENT_ERRORS.closed, 'the client is closed');

const unreachable = (url: string, cause: unknown): ClientError =>
  new ClientError(CLIENT_ERRORS.unreachable, `no gateway answers at ${url}`, { cause });
