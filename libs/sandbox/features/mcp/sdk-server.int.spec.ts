import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import type { McpHttpHandler } from '@modelcontextprotocol/server';
import { until } from '@antiphon/testing';
import { z } from 'zod';
import { startMcpWorlds } from './testing/mcp-world.fixture.spec.js';
import type { McpWorld, McpWorlds } from './testing/mcp-world.fixture.spec.js';

jest.setTimeout(60_000);

const NEW = '2026-07-28';
const MIB = 1024 * 1024;

/** Server of the MCP project's own package, which serves both protocols. */
class SdkServer {
  readonly eras: string[] = [];
  readonly versions = new Set<string>();
  readonly cancelled: string[] = [];
  host = '';
  readonly #handler: McpHttpHandler = createMcpHandler(({ era }) => this.#create(era));
  readonly #http: Server = createServer((request, response) => void this.#serve(request, response));

  static async start(): Promise<SdkServer> {
    const server = new SdkServer();
    await new Promise<void>((resolve) => server.#http.listen(0, '127.0.0.1', resolve));
    server.host = `127.0.0.1:${(server.#http.address() as AddressInfo).port}`;
    return server;
  }

  get url(): string {
    return `http://${this.host}/mcp`;
  }

  async close(): Promise<void> {
    await this.#handler.close();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #create(era: string): McpServer {
    this.eras.push(era);
    const server = new McpServer({ name: 'sdk', version: '1' });
    const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
    server.registerTool(
      'add',
      { description: 'Adds.', inputSchema: z.object({ a: z.number(), b: z.number() }) },
      async ({ a, b }) => text(String(a + b)),
    );
    server.registerTool('large', { description: 'Is large.' }, async () => text('x'.repeat(20 * MIB)));
    server.registerTool('slow', { description: 'Waits.' }, async ({ mcpReq: { signal } }) => {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      this.cancelled.push('slow');
      return text('ended');
    });
    server.registerTool('fails', { description: 'Fails.' }, async () => {
      throw new Error('no luck');
    });
    server.registerResource('note', 'note://one', {}, async (uri) => ({
      contents: [{ uri: uri.href, text: 'a note' }],
    }));
    return server;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const version = request.headers['mcp-protocol-version'];
    if (typeof version === 'string') this.versions.add(version);
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const answer = await this.#handler.fetch(
      new Request(this.url, {
        ...{ method: request.method ?? 'GET', headers: request.headers as Record<string, string> },
        ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
        signal: gone.signal,
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    for await (const part of answer.body ?? []) response.write(part);
    response.end();
  }
}

describe('a server of the package of the MCP project, over HTTP', () => {
  let worlds: McpWorlds;
  let world: McpWorld;
  let server: SdkServer;
  let workspace: string;
  const call = (tool: string, input: object = {}, more = {}) =>
    world.call(`mcp__sdk__${tool}`, input, { workspace, ...more });

  beforeAll(async () => void (worlds = await startMcpWorlds()));
  afterAll(() => worlds.close());
  beforeEach(async () => {
    server = await SdkServer.start();
    workspace = `w${randomUUID()}`;
    world = worlds.open([], { privateHosts: [server.host] });
    await world.change.add({ workspace, server: 'sdk', url: server.url, caller: 'token' });
  });
  afterEach(() => server.close());

  it(`is called by the protocol ${NEW}, and never by an older one`, async () => {
    expect(await call('add', { a: 2, b: 40 })).toMatchObject({ outcome: 'completed', content: '42' });
    const listed = (await world.change.list({ workspace })).servers[0];
    expect(listed).toMatchObject({ status: 'connected', protocol: NEW });
    expect(new Set(server.eras)).toEqual(new Set(['modern']));
    expect([...server.versions]).toEqual([NEW]);
  });

  it('gives its resources, its failures and refused arguments as results', async () => {
    expect(await call('read_resource', { uri: 'note://one' })).toMatchObject({
      ...{ outcome: 'completed', content: expect.stringContaining('a note') },
    });
    expect(await call('fails')).toMatchObject({
      ...{ outcome: 'completed', isError: true, content: expect.stringContaining('no luck') },
    });
    expect(await call('add', { a: 'two' })).toMatchObject({ outcome: 'completed', isError: true });
  });

  it('hands a result of 20 MiB over whole', async () => {
    const callId = randomUUID();
    expect(await call('large', {}, { callId })).toMatchObject({ large: { size: 20 * MIB } });
    expect(world.readHeld(workspace, callId)).toHaveLength(20 * MIB);
  });

  it('is told of a call that ends at its deadline', async () => {
    expect(await call('slow', {}, { timeoutMs: 500 })).toMatchObject({ code: 'TOOL.TIMEOUT' });
    await until(() => server.cancelled.length === 1);
  });
});
