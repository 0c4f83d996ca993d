import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { silentLogger, systemClock, uuidIds } from '@antiphon/observability';
import { Authenticator } from '../access/authenticator.js';
import { NO_IDENTITIES } from '../access/identities.port.js';
import { NO_LIMITS } from '../access/rate-limits.js';
import { authenticateSocket } from '../sockets/authenticate-socket.js';
import { ClientConnection, createSharedOutput } from '../sockets/client-connection.js';
import { attachSocketServer } from '../sockets/socket-server.js';

export const TOKEN = 'a-token-of-the-specification-1234';

/** Connects as a peer that never ends its side of a connection. */
export const connectPeer = async (port: number): Promise<Socket> => {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
};

export const upgrade = (path: string, headers = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`;

export interface SocketServer {
  readonly port: number;
  /** Sizes of the messages of authenticated clients. */
  readonly received: number[];
  close(): Promise<void>;
}

/** Starts a server for which all sockets need the token: at most five without it, three an address. */
export const startSocketServer = async (): Promise<SocketServer> => {
  const authenticator = new Authenticator({
    gateway: { token: TOKEN, loopbackWithoutToken: true, trustedProxies: [], limits: NO_LIMITS },
    identities: NO_IDENTITIES,
    clock: systemClock,
  });
  const http = createServer();
  const shared = createSharedOutput();
  const received: number[] = [];
  const server = attachSocketServer(http, {
    ...{ authenticator, logger: silentLogger, ids: uuidIds, maxSockets: 100 },
    unauthenticated: { total: 5, perAddress: 3 },
    onSocket: (socket, { address, principal, onAuthenticated }) => {
      const connection = new ClientConnection(socket, { connectionId: 'c', address }, shared, silentLogger);
      const onReady = () => {
        onAuthenticated();
        return (_text: string, bytes: number) => void received.push(bytes);
      };
      const common = { socket, connection, authenticator, principal, capabilities: [], onReady };
      authenticateSocket({ ...common, logger: silentLogger });
    },
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    port: (http.address() as AddressInfo).port,
    received,
    close: async () => {
      await server.close();
      http.close();
    },
  };
};
