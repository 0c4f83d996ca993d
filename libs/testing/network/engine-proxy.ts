import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A TCP proxy for an engine, which a spec can take down as if the engine were gone. */
export interface EngineProxy {
  readonly port: number;
  /** Breaks every connection and refuses new ones. */
  down(): Promise<void>;
  /** Accepts connections again, on the same port. */
  up(): Promise<void>;
  close(): Promise<void>;
}

const connectPair = (client: Socket, host: string, port: number, open: Set<Socket>): void => {
  const engine = connect(port, host);
  for (const [from, to] of [
    [client, engine],
    [engine, client],
  ] as const) {
    open.add(from);
    from.setNoDelay(true);
    from.pipe(to);
    // Broken connections are expected here.
    from.on('error', () => undefined);
    from.once('close', () => {
      open.delete(from);
      to.destroy();
    });
  }
};

/** Starts a proxy that accepts connections on a free loopback port. */
export const startEngineProxy = async (host: string, port: number): Promise<EngineProxy> => {
  const open = new Set<Socket>();
  const listen = async (at: number): Promise<Server> => {
    const server = createServer((client) => connectPair(client, host, port, open)).listen(at, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  let server: Server | null = await listen(0);
  const own = (server.address() as AddressInfo).port;
  const down = async (): Promise<void> => {
    const closing = server;
    server = null;
    if (!closing) return;
    const closed = once(closing, 'close');
    closing.close();
    for (const socket of open) socket.destroy();
    await closed;
  };
  return {
    port: own,
    down,
    up: async () => void (server ??= await listen(own)),
    close: down,
  };
};
