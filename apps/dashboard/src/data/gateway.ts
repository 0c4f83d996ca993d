import { createClient, type Client, type Notification, type WebSocketLike } from '@antiphon/client';
import { createStore } from './store.js';

/** State of the connection of this tab to the gateway. */
export interface Connection {
  readonly state: 'connecting' | 'connected' | 'lost';
  /** Time of the loss, ms; null while connected. */
  readonly lostAt: number | null;
}

export const connection = createStore<Connection>({ state: 'connecting', lostAt: null });

/** True once the gateway has refused this tab for lack of a session. */
export const isSignedOut = createStore(false);

const IDENTITY_PATH = '/api/v1/me';
const SESSION_PATHS: ReadonlySet<string> = new Set([IDENTITY_PATH, '/api/v1/dashboard/session']);

/** Number of signs that the session may have ended: another tab may also have replaced it. */
export const sessionDoubts = createStore(0);
/** Settles once the session is known to be valid; null while there is no doubt. */
let isConfirmed: Promise<void> | null = null;
let confirm: () => void = () => undefined;

const doubtSession = (): void => {
  isConfirmed ??= new Promise((resolve) => (confirm = resolve));
  sessionDoubts.update((count) => count + 1);
};

/** Lets the requests continue that wait for a valid session. */
export const confirmSession = (): void => {
  isConfirmed = null;
  confirm();
};

let serverAheadMs = 0;
/** Returns the time of the gateway, ms, to about a second. The clock of this machine may differ. */
export const serverNow = (): number => Date.now() + serverAheadMs;
const readServerTime = (date: string | null): void => {
  const time = Date.parse(date ?? '');
  if (!Number.isNaN(time)) serverAheadMs = time - Date.now();
};

const markLost = (): void =>
  connection.update((current) =>
    current.state === 'lost' ? current : { state: 'lost', lostAt: Date.now() },
  );

const openWebSocket = (url: string): WebSocketLike => {
  const socket = new WebSocket(url);
  socket.addEventListener('close', (event) => {
    if (event.code === 4401 || event.code === 4403) doubtSession();
    markLost();
  });
  // The client closes a silent connection itself. Its close event may come a minute later.
  const close = socket.close.bind(socket);
  socket.close = () => {
    markLost();
    close();
  };
  return socket as unknown as WebSocketLike;
};

/** Proves that a script of this origin made the request: no form of another page can send it. */
const CSRF_HEADER = 'x-antiphon-csrf';

const send: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set(CSRF_HEADER, '1');
  const { pathname } = new URL(input instanceof Request ? input.url : input, location.origin);
  const isOfSession = SESSION_PATHS.has(pathname);
  // A request of an ended session would only fail what the page shows.
  if (isConfirmed && !isOfSession) await isConfirmed;
  const response = await fetch(input, { ...init, headers, credentials: 'same-origin', cache: 'no-store' });
  readServerTime(response.headers.get('date'));
  if (response.status === 401) {
    if (pathname === IDENTITY_PATH) isSignedOut.set(true);
    else if (!isOfSession) doubtSession();
  }
  return response;
};

const frameListeners = new Set<(frame: Notification) => void>();
/** Calls back with each frame that no request asked for. */
export const onFrame = (listener: (frame: Notification) => void): void => void frameListeners.add(listener);

/** Client of the gateway that served this page. */
export const client: Client = createClient({
  url: location.origin,
  fetch: send,
  uploadHeaders: { [CSRF_HEADER]: '1' },
  openWebSocket,
  backoff: { firstMs: 500, maxMs: 15_000 },
  giveUpAfterMs: Number.POSITIVE_INFINITY,
  // A silent connection shows as lost after two to three of these: within 2 s.
  heartbeatMs: 650,
  onNotification: (frame) => {
    for (const listener of frameListeners) listener(frame);
  },
  onConnect: () => connection.set({ state: 'connected', lostAt: null }),
});

addEventListener('offline', markLost);
addEventListener('online', () => {
  // A short loss of the network leaves the connection open. The heartbeat finds a dead one.
  if (client.isConnected) connection.set({ state: 'connected', lostAt: null });
});

/** Sends a request that the reference of the client does not have. Throws the gateway's problem. */
export const fetchJson = async <T>(path: string, init: RequestInit = {}): Promise<T> => {
  const response = await send(path, {
    ...init,
    headers: { ...(init.body ? { 'content-type': 'application/json' } : {}), ...init.headers },
  });
  const text = await response.text();
  const body: unknown = text === '' ? null : JSON.parse(text);
  if (!response.ok) {
    const { detail, title, code } = (body ?? {}) as Record<string, string>;
    throw Object.assign(new Error(detail ?? title ?? `status ${response.status}`), {
      code,
      status: response.status,
    });
  }
  return body as T;
};
