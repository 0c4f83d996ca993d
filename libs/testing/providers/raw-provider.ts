import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface RawProvider {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves raw TCP connections, for behaviour that an HTTP server cannot show. Calls `serve` with
 * each connection and the first bytes of its request; it may write anything or reset the
 * connection.
 */
export const startRawProvider = async (
  serve: (socket: Socket, request: string) => void,
): Promise<RawProvider> => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
    socket.once('data', (data) => serve(socket, data.toString('latin1')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
};

/** Returns a loopback address where nothing listens: connections are refused at once. */
export const closedPort = async (): Promise<string> => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
};
