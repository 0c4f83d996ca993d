import { CLIENT_ERRORS, ClientError, errorOfResponse, errorOfRpc, type RpcErrorBody } from './errors.js';
import { readToken, toSocketUrl, type OpenWebSocket, type Token, type WebSocketLike } from './web-socket.js';

/** A message of the gateway. */
export interface Incoming {
  readonly type?: string;
  readonly id?: number | string | null;
  readonly event?: string;
  readonly data?: unknown;
  readonly offset?: number;
  readonly cursor?: string;
  readonly result?: unknown;
  readonly error?: RpcErrorBody;
}

export interface SocketOptions {
  readonly token: Token | undefined;
  /** Sends the token in a header of the upgrade, else in a `connect` frame. */
  readonly usesHeader: boolean;
  readonly openWebSocket: OpenWebSocket;
  readonly fetch: typeof fetch;
  /** Time in which a connection has to be ready, ms. */
  readonly connectMs: number;
  /** A connection that is silent for two to three intervals counts as lost, ms. */
  readonly heartbeatMs: number;
}

export interface SocketEvents {
  readonly onReady: () => void;
  readonly onMessage: (message: Incoming, length: number) => void;
  /** The gateway is gone; another one, or this one later, may accept the client. */
  readonly onLost: (cause: unknown) => void;
  /** The gateway refuses this client, and will do so again. */
  readonly onRefused: (error: ClientError) => void;
}

/** Close codes after which the same credential is refused again. */
export const FATAL_CLOSES: ReadonlySet<number> = new Set([4401, 4403]);
const FATAL_STATUSES = new Set([401, 403]);
const TOO_MANY_FAILURES = 'GATEWAY.TOO_MANY_FAILURES';
/** A small resource that needs a valid credential. */
const PROBE_PATH = '/docs/reference.js';
const PROBE_MS = 2_000;
const HEARTBEAT_ID = 'heartbeat';
const CONNECT_ID = 'connect';

const noop = (): void => undefined;

const parseMessage = (text: string): Incoming | undefined => {
  try {
    return JSON.parse(text) as Incoming;
  } catch {
    return undefined;
  }
};

/** One authenticated WebSocket to one gateway. It calls no event after its end. */
export class GatewaySocket {
  readonly #options: SocketOptions;
  readonly #url: string;
  readonly #events: SocketEvents;
  #socket: WebSocketLike | null = null;
  #refusal: ClientError | null = null;
  #isReady = false;
  #isEnded = false;
  #hasOpened = false;
  #hasReceived = false;
  #timeout: ReturnType<typeof setTimeout> | undefined;
  #heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(url: string, options: SocketOptions, events: SocketEvents) {
    this.#url = url;
    this.#options = options;
    this.#events = events;
    this.#timeout = setTimeout(() => this.#lose('no answer in time'), options.connectMs);
    this.#open().catch((cause: unknown) => this.#lose(cause));
  }

  send(text: string): void {
    this.#socket?.send(text);
  }

  close(): void {
    this.#isEnded = true;
    clearTimeout(this.#timeout);
    clearInterval(this.#heartbeat);
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onmessage = socket.onclose = null;
    socket.onopen = () => socket.close();
    if (socket.terminate) socket.terminate();
    else socket.close();
  }

  async #open(): Promise<void> {
    const { usesHeader, openWebSocket } = this.#options;
    const token = await readToken(this.#options.token);
    if (this.#isEnded) return;
    const headers: Record<string, string> =
      token !== undefined && usesHeader ? { authorization: `Bearer ${token}` } : {};
    const socket = openWebSocket(toSocketUrl(this.#url), headers);
    this.#socket = socket;
    socket.onopen = () => {
      this.#hasOpened = true;
      if (token === undefined || usesHeader) return;
      socket.send(JSON.stringify({ id: CONNECT_ID, method: 'connect', params: { token } }));
    };
    socket.onmessage = ({ data }: { readonly data: unknown }) => this.#receive(String(data));
    socket.onerror = noop;
    socket.onclose = ({ code }: { readonly code: number }) => void this.#onClose(code);
  }

  #receive(text: string): void {
    this.#hasReceived = true;
    const message = parseMessage(text);
    if (!message) return this.#lose('a message is not JSON');
    if (message.type === 'session.ack') return this.#becomeReady();
    if (!this.#isReady && message.error) this.#refusal = errorOfRpc(message.error);
    this.#events.onMessage(message, text.length);
  }

  #becomeReady(): void {
    clearTimeout(this.#timeout);
    this.#isReady = true;
    this.#startHeartbeat();
    this.#events.onReady();
  }

  async #onClose(code: number): Promise<void> {
    if (FATAL_CLOSES.has(code)) return this.#refuse(this.#refusal ?? closedWith(code));
    const { token, fetch: send } = this.#options;
    const refusal = this.#hasOpened ? null : await probeRefusal(this.#url, token, send);
    if (refusal) this.#refuse(refusal);
    else this.#lose(`closed with ${code}`);
  }

  #lose(cause: unknown): void {
    if (this.#isEnded) return;
    this.close();
    this.#events.onLost(cause);
  }

  #refuse(error: ClientError): void {
    if (this.#isEnded) return;
    this.close();
    this.#events.onRefused(error);
  }

  /** Finds a connection whose peer is gone without a close, as after a change of the network. */
  #startHeartbeat(): void {
    let isWaiting = false;
    this.#heartbeat = setInterval(() => {
      if (isWaiting && !this.#hasReceived) return this.#lose('no answer to a heartbeat');
      isWaiting = !this.#hasReceived;
      this.#hasReceived = false;
      if (isWaiting) this.send(JSON.stringify({ id: HEARTBEAT_ID, method: 'ping', params: {} }));
    }, this.#options.heartbeatMs);
  }
}

/**
 * Returns the reason why a gateway refused an upgrade, as far as a request finds one. The WebSocket
 * API does not show it.
 */
export const probeRefusal = async (
  url: string,
  givenToken: Token | undefined,
  send: typeof fetch,
): Promise<ClientError | null> => {
  try {
    const token = await readToken(givenToken);
    const response = await send(url + PROBE_PATH, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(PROBE_MS),
    });
    const text = await response.text();
    const refusal = errorOfResponse(response.status, text, response.headers.get('retry-after'));
    return FATAL_STATUSES.has(response.status) || refusal.code === TOO_MANY_FAILURES ? refusal : null;
  } catch {
    return null;
  }
};

const closedWith = (code: number): ClientError =>
  new ClientError(CLIENT_ERRORS.refused, `the gateway closed the connection with ${code}`);
