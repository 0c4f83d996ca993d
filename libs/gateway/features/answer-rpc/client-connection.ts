import type { FrameEvent } from '@antiphon/contracts/agent';
import type { RpcRequest } from '@antiphon/contracts/gateway';
import { createBoundedMap } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { WebSocket } from 'ws';
import { createFrameText } from './frame-text.js';
import { rpcError } from './rpc-error.js';
import { gatherFrames } from './gather-frames.js';
import { BRISK_BYTES } from './send-buffers.js';
import type { SendBuffers } from './send-buffers.js';

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
  /**
   * Settles when the client has read on, or is gone; undefined when there is room: what can wait of a session is sent no
   * faster. A client that reads nothing for half a minute then is closed: it would be waited for without end.
   */
  room(sessionId: string): Promise<void> | undefined;
  close(code: number, reason: string): void;
}

/** Sessions whose last offset is remembered for queued turns. */
const MAX_OFFSETS = 1_000;

/** 1013: try again later; a reason has 123 bytes at most. */
const CLOSE_SLOW = 1013;

/** How long a client that is waited for may read nothing. */
const STALLED_MS = 30_000;

/** What is sent and not read: a client that does not read is closed, and its streams can be resumed. */
const createOutbox = (
  socket: WebSocket,
  { connectionId }: { connectionId: string },
  buffers: SendBuffers,
  logger: Logger,
  onTooSlow: () => void,
) => {
  const gather = gatherFrames(socket, BRISK_BYTES);
  let waiting: (() => void)[] = [];
  let written = 0;
  let watch: NodeJS.Timeout | undefined;
  const isFull = (): boolean => socket.readyState === socket.OPEN && socket.bufferedAmount > BRISK_BYTES;
  const wake = (): void => {
    clearTimeout(watch);
    watch = undefined;
    if (waiting.length === 0) return;
    for (const go of waiting) go();
    waiting = [];
  };
  const onWritten = (): void => {
    written++;
    if (socket.bufferedAmount > BRISK_BYTES) return;
    buffers.forget(connectionId);
    wake();
  };
  socket.once('close', () => {
    buffers.forget(connectionId);
    wake();
  });

  const tooSlow = (bytes: number, resumeAt: string): void => {
    logger.warn({ connectionId, bytes }, 'client reads too slowly, closing; it can resume');
    socket.close(CLOSE_SLOW, `too slow: resume ${resumeAt}`);
    onTooSlow();
  };
  const watchOver = (resumeAt: () => string): void => {
    const [before, held] = [written, socket.bufferedAmount];
    watch = setTimeout(() => {
      watch = undefined;
      if (!isFull()) return;
      if (written > before || socket.bufferedAmount < held) return watchOver(resumeAt);
      tooSlow(socket.bufferedAmount, resumeAt());
    }, STALLED_MS).unref();
  };

  return {
    /** `resumeAt`: what a client that is closed for it is told. */
    send: (text: () => string, resumeAt: () => string): void => {
      if (socket.readyState !== socket.OPEN) return;
      gather();
      const bytes = socket.bufferedAmount;
      if (buffers.mayHold(connectionId, bytes)) return socket.send(text(), onWritten);
      tooSlow(bytes, resumeAt());
    },
    room: (resumeAt: () => string): Promise<void> | undefined => {
      if (!isFull()) return undefined;
      if (watch === undefined) watchOver(resumeAt);
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
};

/** One for all connections of a process: what they share is told to them in a row. */
const frameText = createFrameText();

export const createClientConnection = (
  socket: WebSocket,
  identity: { connectionId: string; address: string },
  buffers: SendBuffers,
  logger: Logger,
): ClientConnection => {
  const held = new Map<string | symbol, () => void>();
  const offsets = createBoundedMap<number>(MAX_OFFSETS);
  const outbox = createOutbox(socket, identity, buffers, logger, () => endHeld());

  const close = (code: number, reason: string): void => socket.close(code, reason);
  const send = (message: JsonValue): void =>
    outbox.send(
      () => JSON.stringify(message),
      () => 'from the last offset',
    );

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

  const endHeld = (): void => {
    for (const end of held.values()) end();
    held.clear();
  };
  socket.once('close', endHeld);

  return {
    ...identity,
    send,
    answer: (id, result) => send({ id: id ?? null, result }),
    fail: (id, error, requestId) =>
      send({ id: id ?? null, error: rpcError(error, requestId) as unknown as JsonValue }),
    frame: (id, sessionId, frame) => {
      const before = offsets.get(sessionId) ?? 0;
      const offset = offsetFor(sessionId, frame.offset);
      outbox.send(
        () => frameText(id, frame, offset),
        () => `session ${sessionId} after ${before}`,
      );
    },
    hold,
    inOrder,
    room: (sessionId) => outbox.room(() => `session ${sessionId} after ${offsets.get(sessionId) ?? 0}`),
    close,
  };
};
