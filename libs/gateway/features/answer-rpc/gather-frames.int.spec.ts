import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WebSocket, WebSocketServer } from 'ws';
import { gatherFrames } from './gather-frames.js';

const MOST_BYTES = 64 * 1024;

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

/** Counts what leaves for the operating system. */
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

const until = async (client: WebSocket, texts: readonly string[], count: number): Promise<void> => {
  while (texts.length < count) await once(client, 'message');
};

describe('frames to a client', () => {
  it('of one round of the event loop leave in one write, in their order, and those of the next in another', async () => {
    const { client, socket, texts } = await open();
    const writes = countWrites(socket);
    const gather = gatherFrames(socket, MOST_BYTES);
    for (const text of ['0', '1', '2', '3']) {
      gather();
      socket.send(text);
      await Promise.resolve();
    }
    await until(client, texts, 4);
    expect(writes()).toBe(1);
    gather();
    socket.send('4');
    await until(client, texts, 5);
    expect(texts).toEqual(['0', '1', '2', '3', '4']);
    expect(writes()).toBe(2);
    client.terminate();
  });

  it('that are more than may wait leave before its end: a client that reads holds little', async () => {
    const { client, socket, texts } = await open();
    const writes = countWrites(socket);
    const gather = gatherFrames(socket, MOST_BYTES);
    const large = 'x'.repeat(MOST_BYTES / 4);
    let most = 0;
    for (let i = 0; i < 40; i++) {
      gather();
      most = Math.max(most, socket.bufferedAmount);
      socket.send(large);
    }
    await until(client, texts, 40);
    expect(texts.every((text) => text === large)).toBe(true);
    expect(most).toBeLessThan(MOST_BYTES);
    expect(writes()).toBeLessThanOrEqual(11);
    client.terminate();
  });

  it('that are followed by the end of the connection still arrive', async () => {
    const { client, socket, texts } = await open();
    gatherFrames(socket, MOST_BYTES)();
    socket.send('last words');
    socket.close(1013, 'too slow');
    const [code] = (await once(client, 'close')) as [number];
    expect([texts, code]).toEqual([['last words'], 1013]);
  });

  it('to a connection that is gone are nobody’s', async () => {
    const { client, socket } = await open();
    const gather = gatherFrames(socket, MOST_BYTES);
    gather();
    socket.terminate();
    await once(client, 'close');
    expect(gather).not.toThrow();
  });
});
