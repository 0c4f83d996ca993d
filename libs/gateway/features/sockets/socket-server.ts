import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { LIMITS } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import type { Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { checkWebSocketPatch } from '@antiphon/unsafe';
import { WebSocket, WebSocketServer } from 'ws';
import type { Authenticator } from '../access/authenticator.js';
import { addressGroup } from '../access/client-address.js';
import { admitUpgrade, type Admission } from './admit-upgrade.js';
import {
  limitFirstMessage,
  UnauthenticatedSockets,
  type UnauthenticatedLimits,
} from './unauthenticated-sockets.js';

export interface SocketServerOptions {
  readonly authenticator: Authenticator;
  readonly logger: Logger;
  readonly ids: Ids;
  /** Maximum number of open sockets. */
  readonly maxSockets: number;
  /** Limits of sockets that have not authenticated. Default: `UNAUTHENTICATED_LIMITS`. */
  readonly unauthenticated?: UnauthenticatedLimits;
  readonly onSocket: (socket: WebSocket, peer: SocketPeer) => void;
}

export interface SocketPeer {
  readonly address: string;
  /** Null if the client has to authenticate by its first frame. */
  readonly principal: Principal | null;
  /** True for a page of another origin, which the configuration allows. */
  readonly isForeign: boolean;
  /** Lifts the limits of an unauthenticated socket. Called once the client is authenticated. */
  readonly onAuthenticated: () => void;
  /** Path and query of the upgrade. */
  readonly url: string;
  /** W3C trace context of the upgrade. */
  readonly traceparent: string | undefined;
}

/** Interval of pings, ms. A dead peer is closed within two intervals. */
const HEARTBEAT_MS = 30_000;
/**
 * A frame of 4 MiB needs 64 fragments of 64 KiB. A flood of tiny fragments exhausts memory
 * (CVE-2026-48779).
 */
const MAX_FRAGMENTS = 1_024;
/** Time for a refusal to be written before its socket is destroyed, ms. */
const REFUSAL_MS = 2_000;
/** Time for a client to complete the close handshake before its socket is destroyed, ms. */
const CLOSE_MS = 2_500;

const TOO_MANY: Admission = { status: 429, reason: 'too many connections', retryAfter: 5 };

const rejectUpgrade = (
  socket: Duplex,
  requestId: string,
  admission: Exclude<Admission, { status: 101 }>,
): void => {
  const { status, reason, retryAfter } = admission;
  const title = STATUS_CODES[status] ?? 'Error';
  const body = JSON.stringify({
    type: 'about:blank',
    title,
    status,
    detail: reason,
    instance: requestId,
    code: `GATEWAY.UPGRADE_${status}`,
  });
  const lines = [
    `HTTP/1.1 ${status} ${title}`,
    'Connection: close',
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`]),
  ];
  // A peer that never ends its side, or never reads, would hold the descriptor for ever.
  const cut = setTimeout(() => socket.destroy(), REFUSAL_MS).unref();
  socket.once('close', () => clearTimeout(cut));
  socket.once('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
};

const startHeartbeat = (server: WebSocketServer): NodeJS.Timeout => {
  const silent = new WeakSet<WebSocket>();
  server.on('connection', (socket) => socket.on('pong', () => silent.delete(socket)));
  return setInterval(() => {
    for (const socket of server.clients) {
      if (silent.has(socket)) socket.terminate();
      silent.add(socket);
      socket.ping();
    }
  }, HEARTBEAT_MS).unref();
};

/**
 * Limits a socket until its client is authenticated: its bytes, its time and its slot. Returns the
 * function that lifts the limits.
 */
const limitUntilAuthenticated = (socket: WebSocket, wire: Duplex, release: () => void): (() => void) => {
  const lift = limitFirstMessage(socket, wire);
  // The client is told to leave after `connectMs`. One that does not answer is cut off.
  const cut = setTimeout(() => socket.terminate(), LIMITS.connectMs + CLOSE_MS).unref();
  const end = (): void => {
    clearTimeout(cut);
    lift();
    release();
  };
  socket.once('close', end);
  return end;
};

/** Closes all sockets so that clients reconnect and resume; destroys those that do not answer. */
const closeAll = async (server: WebSocketServer): Promise<void> => {
  // 1012: service restart.
  for (const socket of server.clients) socket.close(1012, 'restarting');
  const cut = setTimeout(() => {
    for (const socket of server.clients) socket.terminate();
  }, CLOSE_MS);
  await new Promise<void>((done) => server.close(() => done()));
  clearTimeout(cut);
};

/**
 * Serves `/ws` on an HTTP server: guards upgrades, limits sockets and frames, and closes dead
 * peers.
 */
class SocketServer {
  readonly #http: Server;
  readonly #options: SocketServerOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: LIMITS.closeBytes,
    maxFragments: MAX_FRAGMENTS,
    perMessageDeflate: false,
    clientTracking: true,
  });
  readonly #heartbeat = startHeartbeat(this.#server);
  readonly #slots: UnauthenticatedSockets;

  constructor(http: Server, options: SocketServerOptions) {
    this.#http = http;
    this.#options = options;
    this.#slots = new UnauthenticatedSockets(options.unauthenticated);
    http.on('upgrade', this.#onUpgrade);
  }

  async close(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#http.off('upgrade', this.#onUpgrade);
    await closeAll(this.#server);
  }

  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const destroy = (): void => void socket.destroy();
    socket.on('error', destroy);
    const { authenticator, logger } = this.#options;
    const address = authenticator.clientAddress(request.socket.remoteAddress, request.headers);
    this.#admit(request)
      .then((admitted) => {
        if (socket.destroyed) return;
        const admission = this.#requireSlot(admitted, address);
        if (admission.status !== 101) return this.#refuse(socket, address, admission);
        socket.off('error', destroy);
        this.#server.handleUpgrade(request, socket, head, (accepted) =>
          this.#accept(accepted, request, socket, address, admission),
        );
      })
      .catch((err: unknown) => {
        logger.error({ err }, 'upgrade failed');
        socket.destroy();
      });
  };

  async #admit(request: IncomingMessage): Promise<Admission> {
    const { authenticator, maxSockets } = this.#options;
    return this.#server.clients.size >= maxSockets ? TOO_MANY : admitUpgrade(request, authenticator);
  }

  /** Refuses a client that has to authenticate while too many others have to. */
  #requireSlot(admission: Admission, address: string): Admission {
    const isOpen = admission.status === 101 && admission.principal === null;
    return isOpen && !this.#slots.hasRoom(addressGroup(address)) ? TOO_MANY : admission;
  }

  #refuse(socket: Duplex, address: string, admission: Exclude<Admission, { status: 101 }>): void {
    const { ids, logger } = this.#options;
    const requestId = ids.next();
    const { status, reason } = admission;
    logger.info({ requestId, address, status, reason }, 'upgrade refused');
    rejectUpgrade(socket, requestId, admission);
  }

  #accept(
    accepted: WebSocket,
    request: IncomingMessage,
    wire: Duplex,
    address: string,
    { principal, isForeign }: Extract<Admission, { status: 101 }>,
  ): void {
    const { logger, onSocket } = this.#options;
    accepted.on('error', (error) => logger.info({ address, reason: error.message }, 'socket failed'));
    this.#server.emit('connection', accepted, request);
    const { traceparent } = request.headers;
    onSocket(accepted, {
      address,
      principal,
      isForeign,
      url: request.url ?? '',
      onAuthenticated: principal
        ? () => undefined
        : limitUntilAuthenticated(accepted, wire, this.#slots.add(addressGroup(address))),
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    });
  }
}

/** Attaches the socket server to an HTTP server. */
export const attachSocketServer = (
  http: Server,
  options: SocketServerOptions,
): { close(): Promise<void> } => {
  checkWebSocketPatch(WebSocket, options.logger);
  return new SocketServer(http, options);
};
