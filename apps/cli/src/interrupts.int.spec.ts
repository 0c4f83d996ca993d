import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { until } from '@antiphon/testing/waits';

jest.setTimeout(30_000);

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const INSTALLED_NODE = `${ROOT}/node_modules/.bin/node`;
const NODE = existsSync(INSTALLED_NODE) ? INSTALLED_NODE : process.execPath;
const SESSION = '0d6cfc0c-3b39-4b6a-8d1c-6d2cf1f4a111';

let server: WebSocketServer;
let requests: { method: string; params: Record<string, unknown> }[];
let respond: (socket: WebSocket) => void;
beforeAll(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await new Promise((resolve) => server.on('listening', resolve));
  server.on('connection', (socket) => {
    socket.send(JSON.stringify({ type: 'session.ack' }));
    socket.on('message', (data: Buffer) => {
      requests.push(JSON.parse(data.toString()) as (typeof requests)[number]);
      respond(socket);
    });
  });
});
beforeEach(() => {
  requests = [];
});
afterAll(() => void server.close());

const frame = (event: string, data: unknown, offset: number): string =>
  JSON.stringify({ id: 1, event, data, offset });
const accept = (socket: WebSocket): void => {
  socket.send(frame('accepted', { sessionId: SESSION, turnId: SESSION, agent: 'main' }, 1_048_577));
  socket.send(frame('text', 'Hello\u001b[2J', 1_048_578));
};

/** Runs the command line against the server. */
const run = (...args: string[]) => {
  const { port } = server.address() as AddressInfo;
  const command = [`${ROOT}/apps/cli/bin/antiphon.mjs`, ...args, '--url', `http://127.0.0.1:${port}`];
  const child = spawn(NODE, command, { env: { PATH: process.env['PATH'], HOME: import.meta.dirname } });
  const shown = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (shown.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (shown.err += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const waitForOutput = (text: string): Promise<void> => until(() => shown.out.includes(text));
  return { child, shown, ended, waitForOutput };
};

describe('a chat on the command line', () => {
  it('detaches at the first Ctrl-C and prints the command that returns to the answer', async () => {
    respond = accept;
    const { child, shown, ended, waitForOutput } = run('chat', 'hi');
    await waitForOutput('Hello');
    child.kill('SIGINT');
    expect(await ended).toBe(130);
    expect(shown.err).toContain(`antiphon session resume ${SESSION} --after 1048578`);
  });

  it('prints control characters of an answer as escapes', async () => {
    respond = (socket) => {
      accept(socket);
      socket.send(frame('done', {}, 1_048_579));
    };
    const { shown, ended } = run('chat', 'hi');
    expect(await ended).toBe(0);
    expect(shown.out).toBe('Hello\\u{1b}[2J\n');
  });

  it('resumes after an offset until the turn ends', async () => {
    respond = (socket) => {
      socket.send(frame('text', ' world', 1_048_579));
      socket.send(frame('done', {}, 1_048_580));
    };
    const { shown, ended } = run('session', 'resume', SESSION, '--after', '1048578');
    expect(await ended).toBe(0);
    expect(shown.out).toBe(' world\n');
    expect(requests).toMatchObject([
      { method: 'session.resume', params: { sessionId: SESSION, after: 1_048_578 } },
    ]);
  });
});

describe('a command whose reader closes the pipe', () => {
  // @shows U63
  it.each(['stdout', 'stderr'] as const)('ends quietly when %s is closed', async (stream) => {
    respond = (socket) => {
      for (let n = 0; n < 2_000; n++) socket.send(frame('text', 'x'.repeat(500), n));
      socket.send(frame(stream === 'stderr' ? 'error' : 'text', { code: 'X', message: 'y' }, 3_000));
      socket.send(frame('done', {}, 3_001));
    };
    const { child, shown, ended } = run('chat', 'hi');
    child[stream].destroy();
    expect(await ended).toBe(stream === 'stdout' ? 0 : 1);
    expect(shown.err).toBe('');
    if (stream === 'stderr') expect(shown.out.length).toBeGreaterThan(1_000_000);
  });
});
