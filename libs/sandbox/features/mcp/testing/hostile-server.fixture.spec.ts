import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Params = Readonly<Record<string, unknown>>;
export interface Exchange {
  readonly id: unknown;
  readonly method: string;
  readonly params: Params;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Sends a result as JSON. */
  readonly reply: (result: unknown) => void;
}

/** Server of the protocol 2025-11-25 over HTTP, whose answers a spec chooses. */
export interface ScriptedServer {
  readonly url: string;
  readonly host: string;
  readonly requests: { readonly method: string; readonly params: Params; readonly authorization?: string }[];
  tools: readonly object[];
  /** Handler of a call of a tool. */
  onCall: (exchange: Exchange) => void;
  /** Handler of all requests. The usual answers follow if it returns false. */
  onAny: (exchange: Exchange) => boolean;
  close: () => Promise<void>;
}

export const toolOf = (name: string, description = `Does ${name}.`, more: object = {}) => ({
  ...{ name, description, inputSchema: { type: 'object', properties: { x: { type: 'string' } } } },
  ...more,
});

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};

export const textResult = (text: string) => ({ content: [{ type: 'text', text }] });

export const startScriptedServer = async (): Promise<ScriptedServer> => {
  const http = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(http.address() as AddressInfo).port}`;
  const server: ScriptedServer = {
    ...{ url: `http://${host}/mcp`, host, requests: [], tools: [toolOf('act')] },
    onCall: ({ reply }) => reply(textResult('done')),
    onAny: () => false,
    close: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  const answers: Readonly<Record<string, (exchange: Exchange) => void>> = {
    initialize: ({ reply }) =>
      reply({
        ...{ protocolVersion: '2025-11-25', serverInfo: { name: 'scripted', version: '1' } },
        capabilities: { tools: { listChanged: true } },
      }),
    'tools/list': ({ reply }) => reply({ tools: server.tools }),
    'tools/call': (exchange) => server.onCall(exchange),
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method, params = {} } = JSON.parse(await readBody(request)) as Exchange;
    const { authorization } = request.headers;
    server.requests.push({ method, params, ...(authorization ? { authorization } : {}) });
    const json = (body: object): void => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
    };
    const exchange = { id, method, params, request, response, reply: (result: unknown) => json({ result }) };
    if (server.onAny(exchange)) return;
    if (id === undefined) return void response.writeHead(202).end();
    const answer = answers[method];
    if (answer) answer(exchange);
    else json({ error: { code: -32601, message: `no method ${method}` } });
  };
  return server;
};
