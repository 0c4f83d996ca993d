import { once } from 'node:events';
import { createServer, request as sendRequest, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';

export interface ForwardProxyOptions {
  /** Returns the port of this machine where the host of a request really is. */
  readonly portOf: (host: string) => number;
  /** Value of `proxy-authorization` that the proxy wants. Default: none. */
  readonly credentials?: string;
  /** Status with which it refuses every request. */
  readonly refuseWith?: number;
  /** PEM texts for a proxy that is reached over TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** A request to the proxy. */
export interface ProxiedRequest {
  readonly method: string;
  /** `host:port` of a tunnel, and the whole URL of other requests. */
  readonly target: string;
  readonly authorization: string | undefined;
}

export interface ForwardProxy {
  readonly url: string;
  readonly requests: readonly ProxiedRequest[];
  close(): Promise<void>;
}

/**
 * Starts a forward proxy on a free loopback port: tunnels by CONNECT, and plain requests with the
 * whole URL.
 */
export const startForwardProxy = async (options: ForwardProxyOptions): Promise<ForwardProxy> => {
  const requests: ProxiedRequest[] = [];
  const sockets = new Set<Socket>();
  const see = ({ method = '', url = '', headers }: IncomingMessage): number | null => {
    const authorization = headers['proxy-authorization'];
    requests.push({ method, target: url, authorization });
    const isWelcome = options.credentials === undefined || options.credentials === authorization;
    return isWelcome ? (options.refuseWith ?? null) : 407;
  };
  const server: Server = options.tls ? createTlsServer(options.tls) : createServer();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  server.on('connect', (incoming: IncomingMessage, client: Socket, head: Buffer) => {
    const refusal = see(incoming);
    if (refusal !== null) return void client.end(`HTTP/1.1 ${refusal} Refused\r\ncontent-length: 0\r\n\r\n`);
    const upstream = connect(options.portOf((incoming.url ?? '').replace(/:\d+$/, '')), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    sockets.add(upstream);
    for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
  });
  server.on('request', (incoming, response) => {
    const refusal = see(incoming);
    if (refusal !== null) return void response.writeHead(refusal).end();
    const { host, pathname, hostname, search } = new URL(incoming.url ?? '');
    const upstream = sendRequest(
      {
        ...{ host: '127.0.0.1', port: options.portOf(hostname), path: pathname + search },
        ...{ method: incoming.method, headers: { ...incoming.headers, host } },
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    upstream.on('error', () => response.destroy());
    incoming.pipe(upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requests,
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
};
