import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type Incoming, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { WebSocket } from 'ws';
import { readEvents, runCli, scriptedConfig, startQuickStack, waitForValue } from './stack-under-test.js';

jest.setTimeout(180_000);

const TOKEN = 'correct-horse-battery-staple-0123456789';
const config = (folder: string, more = '') =>
  scriptedConfig(
    `
[[agents]]
id = "main"
name = "Main"
provider = "scripted"
model = "scripted"
tools = ["echo"]

[[plugins]]
name = "ghost"
path = "${folder}/ghost.wasm"
kind = "tool"
capabilities = []

[[plugins]]
name = "liar"
path = "${folder}/liar.wasm"
kind = "tool"
capabilities = []
`,
    more,
  );

let folder: string;
let open: TestStack;
let client: SocketClient;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'antiphon-bad-'));
  writeFileSync(join(folder, 'liar.wasm'), '#!/bin/sh\necho x');
  open = await startQuickStack(config(folder));
  client = await connectClient(open.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await open?.stop();
  await rm(folder, { recursive: true, force: true });
});

const gatewayLog = (stack: TestStack): string => stack.readLog('gateway-1');

const deep = (levels: number) =>
  `{"id":7,"method":"ping","params":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`;
const chat = (params: object) => JSON.stringify({ id: 7, method: 'chat.send', params });
const address = { channel: 'c', account: 'a', peer: 'p' };

describe('a frame that is not a request', () => {
  it.each([
    ['malformed JSON', 'hello', -32700],
    ['an unclosed object', '{"id":7,"method":"ping"', -32700],
    ['a wrong type', '{"id":7,"method":5}', -32600],
    ['no method', '{"id":7}', -32600],
    ['an unknown method', '{"id":7,"method":"admin.shutdown"}', -32601],
    ['a method of Object.prototype', '{"id":7,"method":"__proto__"}', -32601],
    ['a method that a later version will have', '{"id":7,"method":"memory.forget","params":{}}', -32601],
    ['a missing field', chat({ channel: 'c', account: 'a', content: 'x' }), -32602],
    ['an empty field', chat({ ...address, content: '' }), -32602],
    ['a field of the wrong type', chat({ ...address, content: 5 }), -32602],
    ['an unknown field', chat({ ...address, content: 'x', gatewayUrl: 'ws://10.0.0.1/' }), -32602],
    [
      'a prototype key',
      '{"id":7,"method":"chat.send","params":{"__proto__":{"isAdmin":true},"content":"x"}}',
      -32602,
    ],
    ['an unknown agent', chat({ ...address, content: 'x', agent: 'missing-agent' }), -32004],
    [
      'a session that is not there',
      JSON.stringify({ id: 7, method: 'session.send', params: { sessionId: randomUUID(), content: 'x' } }),
      -32004,
    ],
    ['100,000 levels', deep(100_000), -32600],
    ['65 levels', deep(63), -32600],
    ['2 MiB', chat({ ...address, content: 'x'.repeat(2 * 1024 * 1024) }), -32600],
    ['a batch of 10,000', `[${Array(10_000).fill('{"id":1,"method":"ping"}').join()}]`, -32600],
  ])('responds to %s with its error, and serves the next request', async (_, text, code) => {
    const own = await connectClient(open.wsUrl);
    const before = (await readEvents(open)).length;
    own.sendRaw(text);
    const { error } = await own.waitFor('an error', (message) => message.error !== undefined);
    expect(error?.code).toBe(code);
    expect(error?.message).not.toMatch(/\bat .*\.(js|ts):\d+|select |\/libs\/|\/apps\//);
    const { requestId } = error?.data as { requestId: string };
    expect(gatewayLog(open)).toContain(requestId);
    expect(await own.call('ping')).toBe('pong');
    expect(await client.call('ping')).toBe('pong');
    expect((await readEvents(open)).length).toBe(before);
    await own.close();
  });

  it('closes on 5 MiB with 1009, and serves other clients', async () => {
    const own = await connectClient(open.wsUrl);
    own.sendRaw('x'.repeat(5 * 1024 * 1024));
    expect(await own.closed).toBe(1009);
    expect(await client.call('ping')).toBe('pong');
  });

  it('closes on text that is not UTF-8 with 1007', async () => {
    const own = await connectClient(open.wsUrl);
    own.socket.send(Buffer.from([0xc0, 0x80]), { binary: false });
    expect(await own.closed).toBe(1007);
  });

  it('closes on a flood of fragments', async () => {
    const own = await connectClient(open.wsUrl);
    own.socket.on('error', () => undefined);
    for (let i = 0; i < 2_000 && own.socket.readyState === WebSocket.OPEN; i++)
      own.socket.send('x', { fin: false });
    expect([1006, 1008, 1009]).toContain(await own.closed);
    expect(await client.call('ping')).toBe('pong');
  });

  // @shows U20
  it('keeps the control characters of a message, and refuses a lone surrogate and NUL', async () => {
    const send = (id: string, content: string): void =>
      client.sendRaw(
        `{"id":"${id}","method":"chat.send","params":{"channel":"c","account":"a","peer":"odd","content":"${content}"}}`,
      );
    for (const [id, content, why] of [
      ['refused-nul', 'a\\u0000c', 'NUL character'],
      ['refused-half', 'a\\ud800b', 'half of a UTF-16 pair'],
    ] as const) {
      send(id, content);
      const { error } = (await client.waitFor('refusal', (frame) => frame.id === id)) as unknown as {
        error: { code: number; message: string };
      };
      if (!error) throw new Error(JSON.stringify(client.received.filter((one) => one.id === id)));
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining(why) });
    }
    send('kept', 'a\\u0007b\\u001b[1mc\\u200bd');
    await client.waitFor('done', ({ id, event }) => id === 'kept' && event === 'done');
    const asked = (await readEvents(open, { type: 'TurnRequested' })).map(({ data }) => data['content']);
    expect(asked).toContain('a\u0007b\u001b[1mc\u200bd');
  });
});

describe('a text of a request that cannot be stored', () => {
  const send = async (method: string, path: string, body: string | Buffer) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${open.gatewayUrl}${path}`, { method, headers, body });
    return [response.status, ((await response.json()) as { detail: string }).detail];
  };

  it.each([
    ['POST', '/api/v1/tasks', { title: 'a%b', prompt: 'p' }, 'title'],
    ['POST', '/api/v1/tasks', { title: 'a', prompt: 'p%' }, 'prompt'],
    ['POST', '/api/v1/agents', { name: 'a', identity: { soul: 'x%' } }, 'identity.soul'],
    ['PATCH', '/api/v1/agents/main', { action: 'pause', reason: '%' }, 'reason'],
    ['POST', '/api/v1/workflows', { source: 'name: a%' }, 'source'],
    ['POST', '/api/v1/workspaces/default/chats', { role: 'x', name: '%' }, 'name'],
    ['POST', '/api/v1/keys', { name: '%', role: 'member' }, 'name'],
    ['POST', '/api/v1/tasks', { title: 'a', prompt: 'p', 'odd%': 1 }, 'odd'],
  ])('is refused by its name, and never replaced (%s %s %j)', async (method, path, body, name) => {
    for (const part of ['\\u0000', '\\ud800', 'a\\udc00b']) {
      const [status, detail] = await send(method, path, JSON.stringify(body).replace('%', part));
      expect([path, status, detail]).toEqual([path, 400, expect.stringContaining('cannot be stored')]);
      expect(detail).toContain(name);
    }
  });

  it('is refused in a query, in a path, and in bytes that are no text', async () => {
    const events = await fetch(`${open.gatewayUrl}/api/v1/events?stream=a%00b`);
    expect([events.status, ((await events.json()) as { detail: string }).detail]).toEqual([
      400,
      expect.stringContaining('stream: a text has a NUL character'),
    ]);
    expect((await fetch(`${open.gatewayUrl}/api/v1/agents/a%00b`)).status).toBe(400);
    const bytes = Buffer.from('{"title":"a\xed\xa0\x80b","prompt":"p"}', 'latin1');
    expect(await send('POST', '/api/v1/tasks', bytes)).toEqual([
      400,
      expect.stringContaining('the body is not valid UTF-8'),
    ]);
  });

  it('is kept where it is another control character', async () => {
    const title = 'a\u0001\u0007\u001b[1m\u007f\u0085\u200b\ufffeb';
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ title, prompt: 'p\u000b' });
    const made = await fetch(`${open.gatewayUrl}/api/v1/tasks`, { method: 'POST', headers, body });
    expect(await made.json()).toMatchObject({ title });
  });
});

describe('an upgrade or request from another origin', () => {
  const upgradeStatus = (url: string, headers: Record<string, string>): Promise<number> =>
    new Promise((resolve) => {
      const socket = new WebSocket(url, { headers });
      socket.on('error', () => undefined);
      socket.on('open', () => (socket.terminate(), resolve(101)));
      socket.on(
        'unexpected-response',
        (request, response) => (request.destroy(), resolve(response.statusCode ?? 0)),
      );
    });

  it.each([
    [{ Origin: 'https://evil.example' }, 403],
    [{ Origin: 'http://127.evil.example' }, 403],
    [{ Origin: 'null' }, 403],
    [{ Host: 'evil.example' }, 403],
    [{ 'X-Forwarded-For': '10.0.0.1' }, 403],
    [{}, 101],
  ])('with %j is answered by %i', async (headers, status) =>
    expect(await upgradeStatus(open.wsUrl, headers as Record<string, string>)).toBe(status),
  );

  it('gets 404 at another path', async () =>
    expect(await upgradeStatus(open.wsUrl.replace(/ws$/, 'other'), {})).toBe(404));

  it('is refused over HTTP as a problem document', async () => {
    const answer = await fetch(`${open.gatewayUrl}/api/v1/events`, {
      headers: { origin: 'https://evil.example' },
    });
    expect(answer.status).toBe(403);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });
});

describe('HTTP', () => {
  it.each([
    ['/api/v1/nothing', 404],
    ['/api/v1/agents/missing-agent', 404],
    ['/api/v1/events?limit=0', 400],
    ['/api/v1/events?limit=NaN', 400],
    ['/api/v1/events?cursor=forged', 400],
    [`/api/v1/events?metadata[x')%20OR%201=1--]=1`, 400],
    ['/api/v1/events?type=%00', 400],
    ['/api/v1/%c0%80', 400],
  ])('answers %s by a problem document with %i', async (path, status) => {
    const answer = await fetch(open.gatewayUrl + path);
    const problem = (await answer.json()) as Record<string, unknown>;
    expect([answer.status, problem['status']]).toEqual([status, status]);
    expect(JSON.stringify(problem)).not.toMatch(/\bat .*\.(js|ts):\d+|select /);
    expect(gatewayLog(open)).toContain(String(problem['instance']));
  });

  it('refuses a smuggled second request', async () => {
    const { hostname, port } = new URL(open.gatewayUrl);
    const answer = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connect(Number(port), hostname, () =>
        socket.write(
          `POST /api/v1/agents HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/health HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`,
        ),
      );
      socket.on('data', (chunk) => (text += chunk.toString()));
      socket.on('close', () => resolve(text));
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400/);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

// @shows I5 I8
describe('a plug-in that cannot be used', () => {
  it('does not stop the start: a missing file is reported, and a file without WebAssembly rejected', async () => {
    const { plugins } = (await client.call('status')) as {
      plugins: { name: string; status: string; reason: string }[];
    };
    const states = Object.fromEntries(plugins.map(({ name, status }) => [name, status]));
    expect(states).toMatchObject({
      echo: 'loaded',
      calculator: 'loaded',
      'http-get': 'loaded',
      ghost: 'missing',
      liar: 'rejected',
    });
    expect(open.readLog('sandbox-1')).toContain('ghost');
    expect(plugins.find(({ name }) => name === 'liar')?.reason).toBeTruthy();
  });
});

describe('a configuration with a typo', () => {
  it('is reported with line, column, key and the nearest key', async () => {
    const path = join(folder, 'typo.toml');
    writeFileSync(path, '[gateway]\nhost = "127.0.0.1"\nprot = 8080\n');
    const { code, stderr } = await runCli(open, ['config', 'check'], { ANTIPHON_CONFIG: path });
    expect(code).toBe(2);
    expect(stderr).toMatch(/typo\.toml:3:1/);
    expect(stderr).toMatch(/prot.*port/s);
  });
});

describe('the command line', () => {
  // @shows U64
  it.each([
    [['chat', '--foo', 'x'], 2],
    [['nonsense'], 2],
    [['events', 'list', '--url', 'http://127.0.0.1:1'], 3],
    [['chat', '--agent', 'missing-agent', 'hi'], 1],
    [['events', 'list', '--limit', '0'], 1],
    [['--help'], 0],
  ])('antiphon %j exits with %i', async (args, code) => expect((await runCli(open, args)).code).toBe(code));
});

// @shows E1
describe('with a token', () => {
  let closed: TestStack;
  beforeAll(async () => {
    closed = await startQuickStack(config(folder, `token = "${TOKEN}"`));
  });
  afterAll(() => closed?.stop());

  const firstFrame = async (text: string): Promise<{ messages: readonly Incoming[]; code: number }> => {
    const own = await connectClient(closed.wsUrl);
    own.sendRaw(text);
    const code = await own.closed;
    return { messages: own.received, code };
  };

  it('accepts a client with the token in a frame or in a header', async () => {
    const own = await connectClient(closed.wsUrl);
    own.sendRaw(JSON.stringify({ method: 'connect', params: { token: TOKEN } }));
    expect(await own.waitFor('the ack', ({ type }) => type === 'session.ack')).toMatchObject({ protocol: 1 });
    expect(await own.call('ping')).toBe('pong');
    const bearer = await connectClient(closed.wsUrl, { authorization: `Bearer ${TOKEN}` });
    await bearer.waitFor('the ack', ({ type }) => type === 'session.ack');
    await Promise.all([own.close(), bearer.close()]);
  });

  it.each([
    ['a wrong token', { method: 'connect', params: { token: 'wrong' } }],
    ['an empty token', { method: 'connect', params: { token: '' } }],
    ['no token', { method: 'connect', params: {} }],
    ['a request before connect', { id: 1, method: 'chat.send', params: { ...address, content: 'x' } }],
    ['scopes of its own', { method: 'connect', params: { token: 'wrong', scopes: ['operator.admin'] } }],
  ])('closes on %s with 4401, and runs no request', async (_, frame) => {
    const { code, messages } = await firstFrame(JSON.stringify(frame));
    expect(code).toBe(4401);
    expect(messages.some(({ type }) => type === 'session.ack')).toBe(false);
  });

  it('closes on a first frame that is not JSON, or too deep, with 4401', async () => {
    expect((await firstFrame('hello')).code).toBe(4401);
    expect((await firstFrame(deep(3_000))).code).toBe(4401);
    // Over the 8 KiB that a client may send before it is authenticated.
    expect((await firstFrame(deep(100_000))).code).toBe(1009);
  });

  it('closes a client that sends nothing within 5 s with 4401', async () => {
    const silent = await connectClient(closed.wsUrl);
    expect(await silent.closed).toBe(4401);
  });

  it('refuses HTTP without the token, except for the probes', async () => {
    const status = async (path: string, headers: Record<string, string> = {}) =>
      (await fetch(closed.gatewayUrl + path, { headers })).status;
    expect(await status('/api/v1/events')).toBe(401);
    expect(await status('/api/v1/events', { authorization: `Bearer ${TOKEN}` })).toBe(200);
    expect(await status('/metrics')).toBe(401);
    expect(await status('/metrics', { authorization: `Bearer ${TOKEN}` })).toBe(200);
    expect(await status('/healthz')).toBe(200);
    expect(
      await waitForValue('readiness', async () => ((await status('/readyz')) === 200 ? true : undefined)),
    ).toBe(true);
  });

  it('rate-limits a client that guesses tokens, and accepts the right one from its address', async () => {
    const guess = () =>
      firstFrame(JSON.stringify({ method: 'connect', params: { token: randomUUID(), deviceToken: 'x' } }));
    const attempts = await Promise.all(Array.from({ length: 20 }, guess));
    const codes = attempts.flatMap(({ messages }) => messages.map(({ error }) => error?.code));
    expect(codes).toContain(-32029);
    expect(attempts.every(({ code }) => code === 4401)).toBe(true);
    const own = await connectClient(closed.wsUrl);
    own.sendRaw(JSON.stringify({ method: 'connect', params: { token: TOKEN } }));
    await own.waitFor('the ack', ({ type }) => type === 'session.ack');
    await own.close();
  });
});
