import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { silentLogger } from '@antiphon/observability';
import type { WebSocket } from 'ws';
import { createClientConnection } from './client-connection.js';
import { BRISK_BYTES, createSendBuffers } from './send-buffers.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A socket that holds what the spec says. */
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
  const client = createClientConnection(
    socket as unknown as WebSocket,
    identity,
    createSendBuffers(),
    silentLogger,
  );
  client.frame(1, 's', { event: 'text', data: 'x', offset: 7 });
  socket.bufferedAmount = 4 * BRISK_BYTES;
  return { client, socket, closed };
};

it('waits half a minute for a client that reads nothing, and then closes it where it can resume', async () => {
  const { client, closed } = connect();
  void client.room('s');
  await jest.advanceTimersByTimeAsync(29_000);
  expect(closed).toEqual([]);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(closed).toEqual([[1013, 'too slow: resume session s after 7']]);
});

it('waits as long as it takes for one that reads, however slowly', async () => {
  const { client, socket, closed } = connect();
  const room = client.room('s');
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
  expect(client.room('s')).toBeUndefined();
});
