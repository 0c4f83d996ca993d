import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { ChannelConfig } from '@antiphon/config';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { ChannelSocket } from './channel-socket.js';
import type { ChannelSocketDeps } from './channel-socket.js';
import { checkSocketUrl } from './socket-url.js';

const TOKEN = 'canary-bot-token';
const server = createServer();
const sockets = new WebSocketServer({ server });

/** A connection that the fake platform has accepted, with the frames that came. */
interface Held {
  readonly socket: WebSocket;
  readonly frames: Readonly<Record<string, unknown>>[];
}
let held: Held[];
let taken: string[];
let requests: string[];
let session: string | null;
let failNext: number;
let stopping: AbortController;
let running: Promise<void>;
let remaining: number;

sockets.on('connection', (socket) => {
  const one: Held = { socket, frames: [] };
  held.push(one);
  socket.on('message', (data) =>
    one.frames.push(JSON.parse((data as Buffer).toString('utf8')) as Held['frames'][0]),
  );
});

const urlOf = (scheme: string): string => `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;

const start = (protocol: 'slack' | 'discord'): void => {
  const config = { name: protocol, workspace: 'default', baseUrl: urlOf('http') } as ChannelConfig;
  const socket = {
    protocol,
    open: { method: 'GET', url: '/open', headers: {} },
    url: 'url',
    hosts: [],
    secret: 'token',
  };
  const channel = { config, plugin: { name: protocol, description: { socket, answer: {} } } };
  const deps = {
    directory: {
      open: () => Promise.resolve(channel),
      readSecret: () => Promise.resolve(TOKEN),
      readSession: () => Promise.resolve(session),
      writeSession: (_: unknown, text: string | null) => Promise.resolve(void (session = text)),
    },
    plugin: {
      request: (_: unknown, { url }: { url: string }) => {
        requests.push(url);
        const body = JSON.stringify({
          url: urlOf('ws'),
          session_start_limit: { remaining, reset_after: 200 },
        });
        remaining = 1;
        return Promise.resolve({ outcome: 'answered', status: 200, retryAfter: null, body });
      },
    },
    receive: {
      take: (_: unknown, body: Buffer) => {
        if (failNext-- > 0) return Promise.reject(new Error('the log is not there'));
        taken.push(body.toString('utf8'));
        return Promise.resolve({});
      },
    },
    logger: silentLogger,
  } as unknown as ChannelSocketDeps;
  running = new ChannelSocket(deps, config).run(stopping.signal);
};

const connection = async (n: number): Promise<Held> => {
  await until(() => held.length > n);
  return held[n]!;
};
const say = ({ socket }: Held, frame: object): void => socket.send(JSON.stringify(frame));
const frameWith = async ({ frames }: Held, match: object): Promise<Readonly<Record<string, unknown>>> => {
  const find = () =>
    frames.find((frame) => Object.entries(match).every(([key, value]) => frame[key] === value));
  await until(() => find() !== undefined);
  return find()!;
};

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => {
  sockets.close();
  server.close();
});
beforeEach(() => {
  [held, taken, requests, session, failNext, remaining] = [[], [], [], null, 0, 1];
  stopping = new AbortController();
});
afterEach(async () => {
  stopping.abort();
  await running;
});

describe('the socket mode of Slack', () => {
  const envelope = (id: string) => ({
    type: 'events_api',
    envelope_id: id,
    payload: { type: 'event_callback', id },
  });

  it('acknowledges an envelope once its message is in the log', async () => {
    start('slack');
    const first = await connection(0);
    say(first, { type: 'hello' });
    say(first, envelope('e-1'));
    await frameWith(first, { envelope_id: 'e-1' });
    expect(taken).toEqual(['{"type":"event_callback","id":"e-1"}']);
    say(first, { type: 'slash_commands', envelope_id: 'c-1', payload: { command: '/ask', text: 'a & b' } });
    await frameWith(first, { envelope_id: 'c-1' });
    expect(taken[1]).toBe('command=%2Fask&text=a+%26+b');
  });

  it('leaves an envelope without an acknowledgement that was not taken, and connects again', async () => {
    failNext = 1;
    start('slack');
    const first = await connection(0);
    say(first, { type: 'hello' });
    say(first, envelope('e-2'));
    const second = await connection(1);
    expect([first.frames, taken]).toEqual([[], []]);
    say(second, envelope('e-2'));
    await frameWith(second, { envelope_id: 'e-2' });
  });

  it('connects again with a new address when the platform asks for it', async () => {
    start('slack');
    const first = await connection(0);
    say(first, { type: 'hello' });
    say(first, { type: 'disconnect', reason: 'refresh_requested' });
    await connection(1);
    expect(requests).toEqual(['/open', '/open']);
  });
});

describe('the gateway of Discord', () => {
  const hello = { op: 10, d: { heartbeat_interval: 100 } };
  const ready = {
    ...{ op: 0, s: 1, t: 'READY' },
    d: { session_id: 's-1', resume_gateway_url: '', user: { id: '99' } },
  };
  const message = (s: number) => ({ op: 0, s, t: 'MESSAGE_CREATE', d: { id: `m-${s}`, content: 'hi' } });
  const begin = async (one: Held): Promise<void> => {
    say(one, hello);
    await frameWith(one, { op: 2 });
    say(one, { ...ready, d: { ...ready.d, resume_gateway_url: urlOf('ws') } });
  };

  it('identifies, sends heartbeats with the last number, and takes messages', async () => {
    start('discord');
    const first = await connection(0);
    await begin(first);
    expect((await frameWith(first, { op: 2 }))['d']).toMatchObject({ token: TOKEN });
    say(first, message(2));
    await until(() => taken.length === 1);
    expect(JSON.parse(taken[0]!)).toEqual({ type: 'MESSAGE_CREATE', self: '99', message: message(2).d });
    await frameWith(first, { op: 1, d: 2 });
    say(first, { op: 11 });
    say(first, { op: 1 });
    await until(() => first.frames.filter(({ op }) => op === 1).length > 1);
    expect(session).not.toContain(TOKEN);
  });

  it('resumes after the last message that was taken, in place of identifying again', async () => {
    start('discord');
    const first = await connection(0);
    await begin(first);
    say(first, message(2));
    await until(() => session !== null);
    failNext = 1;
    say(first, message(3));
    const second = await connection(1);
    say(second, hello);
    expect((await frameWith(second, { op: 6 }))['d']).toEqual({ token: TOKEN, session_id: 's-1', seq: 2 });
    expect(requests).toEqual(['/open']);
    say(second, message(3));
    await until(() => taken.length === 2);
    // Without the id of the bot its mentions are not known.
    expect(JSON.parse(taken[1]!)).toMatchObject({ self: '99', message: { id: 'm-3' } });
  });

  it('connects again without the acknowledgement of a heartbeat', async () => {
    start('discord');
    const first = await connection(0);
    await begin(first);
    say(first, message(2));
    const second = await connection(1);
    say(second, hello);
    await frameWith(second, { op: 6 });
  });

  it('identifies again after an invalid session, and answers an interaction at once', async () => {
    session = JSON.stringify({ id: 'old', seq: 7, url: urlOf('ws') });
    start('discord');
    const first = await connection(0);
    say(first, hello);
    await frameWith(first, { op: 6 });
    say(first, { op: 9, d: true });
    const second = await connection(1);
    say(second, hello);
    await frameWith(second, { op: 6 });
    say(second, { op: 0, s: 8, t: 'INTERACTION_CREATE', d: { id: '12', token: 'secret-of-it', type: 2 } });
    await until(() => taken.length === 1);
    expect(requests).toEqual(['/interactions/12/{reply_secret}/callback']);
  });

  it('waits while the platform lets it identify no more', async () => {
    remaining = 0;
    start('discord');
    await connection(0);
    expect(requests).toEqual(['/open', '/open']);
  });
});

describe('the address of a socket', () => {
  it.each([
    ...['ws://wss-primary.slack.com/', 'wss://slack.com.evil.example/', 'wss://evilslack.com/'],
    ...[
      'wss://user@wss.slack.com/',
      'wss://wss.slack.com:8443/',
      'https://wss.slack.com/',
      'wss://127.0.0.1/',
      '',
    ],
  ])('%p is refused', (url) => expect(() => checkSocketUrl(url, ['slack.com'], null)).toThrow('named'));

  it('is one of the platform, or of the host of the file', () => {
    expect(checkSocketUrl('wss://wss-primary.slack.com/?t=1', ['slack.com'], null).host).toBe(
      'wss-primary.slack.com',
    );
    expect(checkSocketUrl('ws://127.0.0.1:8/x', [], 'http://127.0.0.1:9').port).toBe('8');
    expect(() => checkSocketUrl('ws://10.0.0.1/x', [], 'http://127.0.0.1:9')).toThrow('not its own');
    expect(() => checkSocketUrl('ws://a.example/', [], 'https://a.example')).toThrow('not its own');
  });
});
