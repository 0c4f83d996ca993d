import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WebSocket, WebSocketServer } from 'ws';
import { createFrameBatcher } from './batch-writes.js';

const MAX_BYTES = 64 * 1024;

let server: WebSocketServer;
beforeAll(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
});
afterAll(() => server.close());

const open = async () => {
  const accepted = once(server, 'connection') as Promise<[WebSocket]>;
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const texts: string[] = [];
  client.on('message', (data: Buffer) => texts.push(data.toString()));
  const [[socket]] = await Promise.all([accepted, once(client, 'open')]);
  return { client, socket, texts };
};

/** Counts the writes to the operating system. */
const countWrites = (socket: WebSocket): (() => number) => {
  const { _socket: wire } = socket as unknown as { _socket: Socket & { _writev: Socket['_write'] } };
  let writes = 0;
  for (const name of ['_write', '_writev'] as const) {
    const write = wire[name].bind(wire) as (...args: unknown[]) => void;
    wire[name] = (...args: unknown[]) => {
      writes += 1;
      write(...args);
    };
  }
  return () => writes;
};

const waitForTexts = async (client: WebSocket, texts: readonly string[], count: number): Promise<void> => {
  while (texts.length < count) await once(client, 'message');
};

describe('frame batcher', () => {
  it('sends the frames of one event-loop round in one write, in order, and later frames in another', async () => {
    const { client, socket, texts } = await open();
    const writes = countWrites(socket);
    const batch = createFrameBatcher(socket, MAX_BYTES);
    for (const text of ['0', '1', '2', '3']) {
      batch();
      socket.send(text);
      await Promise.resolve();
    }
    await waitForTexts(client, texts, 4);
    expect(writes()).toBe(1);
    batch();
    socket.send('4');
    await waitForTexts(client, texts, 5);
    expect(texts).toEqual(['0', '1', '2', '3', '4']);
    expect(writes()).toBe(2);
    client.terminate();
  });

  it('flushes at the size limit, so that a client that reads has little buffered', async () => {
    const { client, socket, texts } = await open();
    const writes = countWrites(socket);
    const batch = createFrameBatcher(socket, MAX_BYTES);
    const large = 'x'.repeat(MAX_BYTES / 4);
    let most = 0;
    for (let i = 0; i < 40; i++) {
      batch();
      most = Math.max(most, socket.bufferedAmount);
      socket.send(large);
    }
    await waitForTexts(client, texts, 40);
    expect(texts.every((text) => text === large)).toBe(true);
    expect(most).toBeLessThan(MAX_BYTES);
    expect(writes()).toBeLessThanOrEqual(11);
    client.terminate();
  });

  it('delivers frames that are followed by the end of the connection', async () => {
    const { client, socket, texts } = await open();
    createFrameBatcher(socket, MAX_BYTES)();
    socket.send('last frame');
    socket.close(1013, 'too slow');
    const [code] = (await once(client, 'close')) as [number];
    expect([texts, code]).toEqual([['last frame'], 1013]);
  });

  it('ignores a connection that is closed', async () => {
    const { client, socket } = await open();
    const batch = createFrameBatcher(socket, MAX_BYTES);
    batch();
    socket.terminate();
    await once(client, 'close');
    expect(batch).not.toThrow();
  });
});
