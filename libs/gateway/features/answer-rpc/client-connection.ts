import type { FrameEvent } from '@antiphon/contracts/agent';
import type { RpcRequest } from '@antiphon/contracts/gateway';
import { createBoundedMap } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { WebSocket } from 'ws';
import { rpcError } from './rpc-error.js';

type RequestId = RpcRequest['id'];

/** A frame to send; without an offset of its own (a queued turn's `accepted`) it takes the session's last one here. */
export interface StreamFrame {
  readonly event: FrameEvent;
  readonly data: unknown;
  readonly offset: number | null;
}

/** A client's socket: what may be said to it, and who ends with it. */
export interface ClientConnection {
  readonly connectionId: string;
  readonly address: string;
  send(message: JsonValue): void;
  answer(id: RequestId, result: JsonValue): void;
  fail(id: RequestId, error: unknown, requestId: string): void;
  /** A stream frame under the request's id; offsets of a session never go back on a connection. */
  frame(id: RequestId, sessionId: string, frame: StreamFrame): void;
  /** Ends with the connection; answers a function that ends it earlier. Under a key, the new one replaces the old. */
  hold(end: () => void, key?: string): () => void;
  /** Runs work of one key after another, in the order of the calls: what a client sends in a row happens in a row. */
  inOrder<T>(key: string, work: () => Promise<T>): Promise<T>;
  close(code: number, reason: string): void;
}

/** A client that does not read: beyond this the socket is closed and its stream can be resumed. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
/** Sessions whose last offset is remembered for queued turns. */
const MAX_OFFSETS = 1_000;

export const createClientConnection = (
  socket: WebSocket,
  identity: { connectionId: string; address: string },
  logger: Logger,
): ClientConnection => {
  const held = new Map<string | symbol, () => void>();
  const offsets = createBoundedMap<number>(MAX_OFFSETS);

  const close = (code: number, reason: string): void => socket.close(code, reason);

  const send = (message: JsonValue): void => {
    if (socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > MAX_BUFFERED_BYTES) {
      logger.warn({ connectionId: identity.connectionId }, 'client reads too slowly, closing; it can resume');
      return close(1013, 'too slow: resume from the last offset');
    }
    socket.send(JSON.stringify(message));
  };

  const offsetFor = (sessionId: string, offset: number | null): number => {
    const highest = Math.max(offsets.get(sessionId) ?? 0, offset ?? 0);
    offsets.put(sessionId, highest);
    return offset ?? highest;
  };

  const hold = (end: () => void, key: string | symbol = Symbol('held')): (() => void) => {
    held.get(key)?.();
    const release = () => {
      if (held.get(key) === endOnce) held.delete(key);
      endOnce();
    };
    let ended = false;
    const endOnce = () => {
      if (!ended) end();
      ended = true;
    };
    held.set(key, endOnce);
    return release;
  };

  const lanes = new Map<string, Promise<unknown>>();
  const inOrder = <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const mine = (lanes.get(key) ?? Promise.resolve()).then(work, work);
    lanes.set(key, mine);
    const leave = () => void (lanes.get(key) === mine && lanes.delete(key));
    mine.then(leave, leave);
    return mine;
  };

  socket.once('close', () => {
    for (const end of held.values()) end();
    held.clear();
  });

  return {
    ...identity,
    send,
    answer: (id, result) => send({ id: id ?? null, result }),
    fail: (id, error, requestId) =>
      send({ id: id ?? null, error: rpcError(error, requestId) as unknown as JsonValue }),
    frame: (id, sessionId, { event, data, offset }) =>
      send({ id: id ?? null, event, data: data as JsonValue, offset: offsetFor(sessionId, offset) }),
    hold,
    inOrder,
    close,
  };
};
