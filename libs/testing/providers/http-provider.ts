import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as a provider receives it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The parsed JSON body; undefined for other bodies. */
  readonly body: unknown;
  /** Resolves when the client's connection is closed by either side. */
  readonly closed: Promise<void>;
}

export interface HttpProvider {
  /** `http://127.0.0.1:PORT`, without a trailing slash. */
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  /** Returns the number of opened connections: fewer than requests when clients reuse them. */
  readonly connections: () => number;
  close(): Promise<void>;
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/**
 * Serves a test's provider over HTTP on a free loopback port. The handler may respond wrongly or
 * never; `close` ends open connections.
 */
export const startHttpProvider = async (
  handle: (request: SeenRequest, response: ServerResponse) => void,
): Promise<HttpProvider> => {
  const requests: SeenRequest[] = [];
  let connections = 0;
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    const closed = new Promise<void>((resolve) => response.once('close', resolve));
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const seen = {
        method: incoming.method ?? '',
        path: incoming.url ?? '',
        headers: incoming.headers,
        body: parse(Buffer.concat(chunks).toString('utf8')),
        closed,
      };
      requests.push(seen);
      handle(seen, response);
    });
  });
  server.on('connection', () => (connections += 1));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    connections: () => connections,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
};
