import { ClientError, CLIENT_ERRORS } from './errors.js';

/** Part of a WebSocket that the client uses: browsers, Node and the package `ws` have it. */
export interface WebSocketLike {
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(text: string): void;
  close(): void;
  /** Only outside browsers: ends the connection without a handshake. */
  terminate?(): void;
}

/** Opens a WebSocket. `headers` are empty where the runtime cannot send them. */
export type OpenWebSocket = (url: string, headers: Readonly<Record<string, string>>) => WebSocketLike;

/** A credential, or a function that returns the current one before each connection. */
export type Token = string | (() => string | Promise<string>);

type SocketConstructor = new (url: string, options?: unknown) => WebSocketLike;

/** Returns true where the global WebSocket can send headers. */
export const isNode = (): boolean =>
  (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined;

/** Opens the WebSocket of the runtime. */
export const openGlobalWebSocket: OpenWebSocket = (url, headers) => {
  const { WebSocket } = globalThis as { WebSocket?: SocketConstructor };
  if (!WebSocket)
    throw new ClientError(CLIENT_ERRORS.refused, 'this runtime has no WebSocket: pass `openWebSocket`');
  return Object.keys(headers).length > 0 ? new WebSocket(url, { headers }) : new WebSocket(url);
};

export const readToken = async (token: Token | undefined): Promise<string | undefined> =>
  typeof token === 'function' ? await token() : token;

/** Returns the `/ws` address of a gateway. */
export const toSocketUrl = (gatewayUrl: string): string => `${gatewayUrl.replace(/^http/, 'ws')}/ws`;

/** Returns the HTTP address of a gateway, without a slash at its end. */
export const toGatewayUrl = (url: string): string =>
  url
    .replace(/^ws/, 'http')
    .replace(/\/ws\/?$/, '')
    .replace(/(?<!\/)\/+$/, '');

const MAX_FRAME_BYTES = 1024 * 1024;
const encoder = new TextEncoder();

/** Throws for a frame that the gateway would refuse: it is over 1 MiB. */
export const requireFrameSize = (text: string): void => {
  // A UTF-16 unit has at most three bytes of UTF-8.
  if (text.length * 3 <= MAX_FRAME_BYTES || encoder.encode(text).length <= MAX_FRAME_BYTES) return;
  throw new ClientError(CLIENT_ERRORS.tooLarge, `a request has at most ${MAX_FRAME_BYTES} bytes`);
};

/** Returns a new idempotency key. A page without TLS has no `randomUUID`. */
export const createKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
