import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { silentLogger } from '@antiphon/observability';
import type { WebSocket } from 'ws';
import { ClientConnection, createSharedOutput } from './client-connection.js';
import { SLOW_BYTES } from './outbox.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** Creates a connection on a fake socket whose `bufferedAmount` the spec sets. */
const connect = () => {
  const closed: unknown[] = [];
  const socket = Object.assign(new EventEmitter(), {
    ...{ OPEN: 1, readyState: 1, bufferedAmount: 0 },
    written: (): void => undefined,
    send: (_text: string, done: () => void) => void (socket.written = done),
    close: (code: number, reason: string) => {
      socket.readyState = 2;
      closed.push([code, reason]);
    },
  });
  const identity = { connectionId: 'c', address: 'here' };
  const client = new ClientConnection(
    socket as unknown as WebSocket,
    identity,
    createSharedOutput(),
    silentLogger,
  );
  client.frame(1, 's', { event: 'text', data: 'x', offset: 7 });
  socket.bufferedAmount = 4 * SLOW_BYTES;
  return { client, socket, closed };
};

it('closes a client that reads nothing for 30 s, with the offset to resume from', async () => {
  const { client, closed } = connect();
  void client.waitForRoom('s');
  await jest.advanceTimersByTimeAsync(29_000);
  expect(closed).toEqual([]);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(closed).toEqual([[1013, 'too slow: resume session s after 7']]);
});

it('never closes a client that reads, however slowly', async () => {
  const { client, socket, closed } = connect();
  const room = client.waitForRoom('s');
  await jest.advanceTimersByTimeAsync(20_000);
  socket.bufferedAmount -= 1;
  await jest.advanceTimersByTimeAsync(39_000);
  socket.written();
  await jest.advanceTimersByTimeAsync(29_000);
  expect(closed).toEqual([]);
  socket.bufferedAmount = 0;
  socket.written();
  await room;
  await jest.advanceTimersByTimeAsync(90_000);
  expect(closed).toEqual([]);
  expect(client.waitForRoom('s')).toBeUndefined();
});

// @shows review1-14
it('refuses the stream over 1,000 open ones, and has room again when one ends', () => {
  const { client } = connect();
  const ends = Array.from({ length: 1_000 }, (_, id) => {
    client.requireStreamRoom();
    return client.openStream(id, () => undefined);
  });
  expect(() => client.requireStreamRoom()).toThrow(
    expect.objectContaining({ code: 'GATEWAY.TOO_MANY_STREAMS', kind: 'exhausted' }),
  );
  ends[0]?.();
  expect(() => client.requireStreamRoom()).not.toThrow();
  client.openStream(1_000, () => undefined);
  expect(() => client.requireStreamRoom()).toThrow('1000 open streams');
});
