import type { BufferLimits } from './buffered-stream.js';
import { ChatStream, type ChatStreamOptions } from './chat-stream.js';
import { GatewayConnection, type ConnectionOptions, type Exchange } from './connection.js';
import type { Incoming } from './gateway-socket.js';
import { errorOfRpc, isTransient, type ClientError } from './errors.js';
import { EventStream, type EventStreamOptions } from './event-stream.js';
import { createHttpClient, type SendHttp } from './http.js';
import { sendWithProgress } from './upload.js';
import { METHODS } from './reference-table.js';
import type { CallName, HttpClient, MethodName, MethodParams, MethodResult } from './reference.js';
import { SessionStream, TurnStream, type TurnOptions } from './turn-stream.js';
import {
  createKey,
  isNode,
  openGlobalWebSocket,
  toGatewayUrl,
  type OpenWebSocket,
  type Token,
} from './web-socket.js';

export interface ClientOptions {
  /** Address of the gateway, or of several that serve the same installation. */
  readonly url: string | readonly string[];
  /** API key or configured token. A function is called before each connection. */
  readonly token?: Token | undefined;
  /**
   * Sends the token by a header of the upgrade, which is the default in Node. Browsers cannot send
   * headers: there the default is a `connect` frame.
   */
  readonly sendTokenBy?: 'header' | 'frame';
  /** Default: the WebSocket of the runtime. */
  readonly openWebSocket?: OpenWebSocket;
  /** Default: the `fetch` of the runtime. */
  readonly fetch?: typeof fetch;
  /** Adds headers to uploads whose progress is reported, which `fetch` does not send. */
  readonly uploadHeaders?: Readonly<Record<string, string>>;
  /** First and longest delay between two attempts to connect, ms. Default: 100 and 5,000. */
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number };
  /** Time without a connection after which open streams and calls fail, ms. Default: 5 minutes. */
  readonly giveUpAfterMs?: number;
  /** Interval of the check for a silent connection, ms. Default: 15,000. */
  readonly heartbeatMs?: number;
  /** Limits of each stream's buffer. Default: 1,000 frames or 4 Mi characters. */
  readonly buffer?: BufferLimits;
  /** Called with each frame that no request asked for, such as `gateway.degraded`. */
  readonly onNotification?: (notification: Notification) => void;
  /**
   * Called each time a gateway has accepted this client: the place to repeat `agent.subscribe`,
   * which belongs to one connection.
   */
  readonly onConnect?: () => void;
}

/** A frame that no request asked for. */
export type Notification = Incoming & { readonly [field: string]: unknown };

export interface Approvals {
  list(query?: MethodParams<'approval.list'>): Promise<MethodResult<'approval.list'>>;
  get(approvalId: string): Promise<MethodResult<'approval.get'>>;
  answer(params: MethodParams<'approval.answer'>): Promise<MethodResult<'approval.answer'>>;
}

/** Client library of one installation. It connects on use, and again after each loss. */
export interface Client {
  /** Connects now. Rejects if no gateway accepts this client; later uses try again. */
  connect(): Promise<void>;
  /** Sends a message from a channel address. The address determines the session. */
  chat(params: MethodParams<'chat.send'>, options?: TurnOptions): TurnStream;
  /** Sends a message to a session. */
  send(params: MethodParams<'session.send'>, options?: TurnOptions): TurnStream;
  /** Reads the frames of a session after an offset, and then as they come. */
  follow(sessionId: string, after?: number): SessionStream;
  /** Reads the events of a chat, and then as they come, through lost connections. */
  followChat(options: ChatStreamOptions): ChatStream;
  /** Reads events of the log. */
  events(options?: EventStreamOptions): EventStream;
  /** Calls a method of the WebSocket that returns one result. */
  call<N extends CallName>(name: N, params?: MethodParams<N>): Promise<MethodResult<N>>;
  readonly approvals: Approvals;
  /** Every HTTP route, such as `client.http.listAgents()`. */
  readonly http: HttpClient;
  readonly isConnected: boolean;
  /** Ends all streams and calls with `CLIENT.CLOSED`, and leaves no timer. */
  close(): void;
}

/** Facts about a method that a call needs. */
export interface MethodFacts {
  /** True for methods that change nothing. */
  readonly reads?: boolean;
  /** True for methods with an idempotency key. */
  readonly keyed?: boolean;
}

/** Methods that have the same effect when they are repeated. */
const REPEATABLE: ReadonlySet<MethodName> = new Set(['session.cancel', 'approval.answer']);
const DEFAULT_BUFFER: BufferLimits = { items: 1_000, length: 4 * 1024 * 1024 };
const DEFAULT_BACKOFF = { firstMs: 100, maxMs: 5_000 };
const CONNECT_MS = 10_000;
const HTTP_MS = 60_000;
const RETRY_MS = 1_000;

/** One request with one result. */
class Call implements Exchange {
  #sent = 0;

  constructor(
    private readonly connection: GatewayConnection,
    private readonly method: string,
    private readonly params: unknown,
    private readonly facts: { readonly canRepeat: boolean },
    private readonly resolve: (result: unknown) => void,
    readonly fail: (error: ClientError) => void,
  ) {}

  request(): { readonly method: string; readonly params: unknown } {
    this.#sent++;
    return { method: this.method, params: this.params };
  }

  canRepeat(): boolean {
    return this.facts.canRepeat;
  }

  onMessage({ error, result }: Incoming): void {
    const refusal = error ? errorOfRpc(error) : null;
    if (refusal && isTransient(refusal) && this.#sent > 1)
      return this.connection.resend(this, refusal.retryAfterMs ?? RETRY_MS);
    this.connection.remove(this);
    if (refusal) this.fail(refusal);
    else this.resolve(result);
  }
}

const withKey = <P extends { readonly idempotencyKey?: string | undefined }>(params: P) => ({
  ...params,
  idempotencyKey: params.idempotencyKey ?? createKey(),
});

const withHeaders =
  (send: SendHttp, headers: ClientOptions['uploadHeaders']): SendHttp =>
  (url, init) =>
    send(url, { ...init, headers: { ...init.headers, ...headers } });

class GatewayClient implements Client {
  readonly http: HttpClient;
  readonly #connection: GatewayConnection;
  readonly #buffer: BufferLimits;
  readonly #options: ConnectionOptions;

  constructor(options: ClientOptions) {
    const connection = connectionOptions(options);
    this.#options = connection;
    this.#connection = new GatewayConnection(connection);
    this.#buffer = options.buffer ?? DEFAULT_BUFFER;
    const { urls, token, fetch: send } = connection;
    const upload = withHeaders(sendWithProgress(send), options.uploadHeaders);
    this.http = createHttpClient({ urls, token, fetch: send, upload, timeoutMs: HTTP_MS });
  }

  readonly approvals: Approvals = {
    list: (query = {}) => this.call('approval.list', query),
    get: (approvalId) => this.call('approval.get', { approvalId }),
    answer: (params) => this.call('approval.answer', params),
  };

  get isConnected(): boolean {
    return this.#connection.isReady;
  }

  connect(): Promise<void> {
    return this.#connection.connect();
  }

  chat(params: MethodParams<'chat.send'>, options: TurnOptions = {}): TurnStream {
    return this.#startTurn({ method: 'chat.send', params: withKey(params) }, options);
  }

  send(params: MethodParams<'session.send'>, options: TurnOptions = {}): TurnStream {
    return this.#startTurn({ method: 'session.send', params: withKey(params) }, options);
  }

  follow(sessionId: string, after = 0): SessionStream {
    return this.#start(new SessionStream(this.#connection, this.#buffer, sessionId, after));
  }

  followChat(options: ChatStreamOptions): ChatStream {
    return new ChatStream(this.#options, options);
  }

  events(options: EventStreamOptions = {}): EventStream {
    const unsubscribe = (subscription: number): void => this.#unsubscribe(subscription);
    return this.#start(new EventStream(this.#connection, this.#buffer, options, unsubscribe));
  }

  call<N extends CallName>(name: N, params?: MethodParams<N>): Promise<MethodResult<N>> {
    const { reads = false, keyed = false }: MethodFacts = METHODS[name] ?? {};
    const given = params ?? {};
    const canRepeat = reads || keyed || REPEATABLE.has(name);
    return this.#request(name, keyed ? withKey(given) : given, canRepeat) as Promise<MethodResult<N>>;
  }

  close(): void {
    this.#connection.close();
  }

  #startTurn(request: ConstructorParameters<typeof TurnStream>[2], options: TurnOptions): TurnStream {
    const cancel = ({ sessionId, turnId }: { readonly sessionId: string; readonly turnId: string }) =>
      this.call('session.cancel', { sessionId, turnId });
    return this.#start(new TurnStream(this.#connection, this.#buffer, request, options, cancel));
  }

  #start<S extends Exchange>(stream: S): S {
    this.#connection.add(stream);
    return stream;
  }

  #request(method: string, params: unknown, canRepeat: boolean): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#connection.add(new Call(this.#connection, method, params, { canRepeat }, resolve, reject));
    });
  }

  /** Ends a subscription of this connection. A lost connection has ended it already. */
  #unsubscribe(subscription: number): void {
    if (!this.#connection.isReady) return;
    this.#request('events.unsubscribe', { subscription }, false).catch(() => undefined);
  }
}

const connectionOptions = (options: ClientOptions): ConnectionOptions => {
  const { url, token, sendTokenBy, openWebSocket = openGlobalWebSocket } = options;
  const { backoff = DEFAULT_BACKOFF, giveUpAfterMs = 5 * 60_000, heartbeatMs = 15_000 } = options;
  return {
    urls: (typeof url === 'string' ? [url] : url).map(toGatewayUrl),
    token,
    usesHeader: (sendTokenBy ?? (isNode() ? 'header' : 'frame')) === 'header',
    openWebSocket,
    fetch: options.fetch ?? ((...request) => fetch(...request)),
    firstDelayMs: backoff.firstMs,
    maxDelayMs: backoff.maxMs,
    giveUpAfterMs,
    connectMs: CONNECT_MS,
    heartbeatMs,
    onConnect: () => options.onConnect?.(),
    onNotification: (message) => options.onNotification?.(message as Notification),
  };
};

/** Creates a client of one installation. */
export const createClient = (options: ClientOptions): Client => new GatewayClient(options);
