import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';

/** A request that the fake platform got. */
export interface PlatformRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface PlatformAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Ends the connection without an answer. */
  readonly drops?: boolean;
}

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};

/** An HTTP server in place of the Web API of a platform. */
export class FakePlatform {
  readonly requests: PlatformRequest[] = [];
  /** WebSockets that were opened. */
  readonly sockets: WebSocket[] = [];
  answer: (request: PlatformRequest) => PlatformAnswer | Promise<PlatformAnswer> = () => ({});

  private constructor(private readonly server: Server) {}

  static async start(): Promise<FakePlatform> {
    const server = createServer();
    const platform = new FakePlatform(server);
    server.on('request', (request, response) => {
      void readBody(request).then(async (body) => {
        const { method = '', url = '', headers } = request;
        const seen = { method, path: url, headers, body };
        platform.requests.push(seen);
        const socketUrl = { ok: true, url: `${platform.url.replace('http', 'ws')}/socket` };
        const answer = url.endsWith('/apps.connections.open')
          ? { body: socketUrl }
          : await platform.answer(seen);
        if (answer.drops) return void request.socket.destroy();
        response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers });
        response.end(JSON.stringify(answer.body ?? { ok: true }));
      });
    });
    new WebSocketServer({ server }).on('connection', (socket) => platform.sockets.push(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return platform;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Returns the bodies of the requests whose path matches, as JSON. */
  bodies<T>(path: RegExp): T[] {
    return this.requests.filter((one) => path.test(one.path)).map(({ body }) => JSON.parse(body) as T);
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.terminate();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
