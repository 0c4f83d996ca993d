import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { LIMITS } from '@antiphon/contracts/gateway';
import type { Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { checkWebSocketPatch } from '@antiphon/unsafe';
import { WebSocket, WebSocketServer } from 'ws';
import { admitUpgrade, type Admission } from '../access/request-guard.js';
import type { TokenGate } from '../access/token-gate.js';

export interface SocketServerOptions {
  readonly gate: TokenGate;
  readonly logger: Logger;
  readonly ids: Ids;
  /** Maximum number of open sockets. */
  readonly maxSockets: number;
  readonly onSocket: (socket: WebSocket, peer: SocketPeer) => void;
}

export interface SocketPeer {
  readonly address: string;
  readonly authenticated: boolean;
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
  socket.once('error', () => socket.destroy());
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
 * Serves `/ws` on an HTTP server: guards upgrades, limits sockets and frames, and closes dead
 * peers.
 */
export const attachSocketServer = (
  http: Server,
  options: SocketServerOptions,
): { close(): Promise<void> } => {
  const { gate, logger, ids, maxSockets, onSocket } = options;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: LIMITS.closeBytes,
    maxFragments: MAX_FRAGMENTS,
    perMessageDeflate: false,
    clientTracking: true,
  });
  checkWebSocketPatch(WebSocket, logger);
  const heartbeat = startHeartbeat(server);

  const admit = (request: IncomingMessage): Admission =>
    server.clients.size >= maxSockets
      ? { status: 429, reason: 'too many connections', retryAfter: 5 }
      : admitUpgrade(request, gate);

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const admission = admit(request);
    const address = request.socket.remoteAddress ?? '';
    if (admission.status !== 101) {
      const requestId = ids.next();
      const { status, reason } = admission;
      logger.info({ requestId, address, status, reason }, 'upgrade refused');
      return rejectUpgrade(socket, requestId, admission);
    }
    server.handleUpgrade(request, socket, head, (accepted) => {
      accepted.on('error', (error) => logger.info({ address, reason: error.message }, 'socket failed'));
      server.emit('connection', accepted, request);
      const { traceparent } = request.headers;
      onSocket(accepted, {
        address,
        authenticated: admission.authenticated,
        traceparent: typeof traceparent === 'string' ? traceparent : undefined,
      });
    });
  };
  http.on('upgrade', onUpgrade);

  return {
    close: async () => {
      clearInterval(heartbeat);
      http.off('upgrade', onUpgrade);
      // 1012, service restart: clients reconnect and resume.
      for (const socket of server.clients) socket.close(1012, 'restarting');
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
};
