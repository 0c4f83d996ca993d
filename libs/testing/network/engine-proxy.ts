import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A TCP address in front of another one, which a spec can take away as if the engine behind it were gone. */
export interface EngineProxy {
  readonly port: number;
  /** Breaks every connection; from now on new ones are refused. */
  down(): Promise<void>;
  /** Takes connections again, on the same port. */
  up(): Promise<void>;
  close(): Promise<void>;
}

const join = (client: Socket, host: string, port: number, open: Set<Socket>): void => {
  const engine = connect(port, host);
  for (const [from, to] of [
    [client, engine],
    [engine, client],
  ] as const) {
    open.add(from);
    from.setNoDelay(true);
    from.pipe(to);
    // A broken connection is what this is for.
    from.on('error', () => undefined);
    from.once('close', () => {
      open.delete(from);
      to.destroy();
    });
  }
};

/** Starts one on a free loopback port, up. */
export const startEngineProxy = async (host: string, port: number): Promise<EngineProxy> => {
  const open = new Set<Socket>();
  const listen = async (at: number): Promise<Server> => {
    const server = createServer((client) => join(client, host, port, open)).listen(at, '127.0.0.1');
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
