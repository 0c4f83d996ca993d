import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { LIMITS } from '@antiphon/contracts/gateway';
import type { Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { WebSocketServer, type WebSocket } from 'ws';
import type { TokenGate } from '../authenticate/token-gate.js';
import { admitUpgrade, type Admission } from './upgrade-guard.js';

export interface SocketServerOptions {
  readonly gate: TokenGate;
  readonly logger: Logger;
  readonly ids: Ids;
  /** Open sockets at most. */
  readonly maxSockets: number;
  readonly onSocket: (socket: WebSocket, peer: SocketPeer) => void;
}

export interface SocketPeer {
  readonly address: string;
  readonly authenticated: boolean;
  /** W3C trace context that the upgrade came with. */
  readonly traceparent: string | undefined;
}

/** Dead peers are noticed within two of these. */
const HEARTBEAT_MS = 30_000;
/** A frame of 4 MiB needs 64 fragments of 64 KiB; a flood of tiny ones pins memory (CVE-2026-48779). */
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

const keepAlive = (server: WebSocketServer): NodeJS.Timeout => {
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

/** Serves `/ws` on an HTTP server: guards each upgrade, bounds sockets and frames, notices the dead. */
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
  const heartbeat = keepAlive(server);

  const admit = (request: IncomingMessage): Admission =>
    server.clients.size >= maxSockets
      ? { status: 429, reason: 'too many connections', retryAfter: 5 }
      : admitUpgrade(request, gate);

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const admission = admit(request);
    const address = request.socket.remoteAddress ?? '';
    if (admission.status !== 101) {
      const requestId = ids.next();
      logger.info({ requestId, address, status: admission.status }, `upgrade refused: ${admission.reason}`);
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
      // 1012: the service restarts; a client comes back and resumes.
      for (const socket of server.clients) socket.close(1012, 'restarting');
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
};
