import type { RpcRequest } from '@antiphon/contracts/gateway';
import { createBoundedMap, exhausted } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { WebSocket } from 'ws';
import { FrameSerializer, type StreamFrame } from './frame-serializer.js';
import { createSendBuffers, Outbox, type SendLimits, type SharedOutput } from './outbox.js';
import { rpcError } from './rpc-protocol.js';

type RequestId = RpcRequest['id'];

export interface ConnectionIdentity {
  readonly connectionId: string;
  readonly address: string;
}

/**
 * Maximum number of sessions whose last offset is stored, for `accepted` frames of queued turns.
 */
const MAX_OFFSETS = 1_000;

/** Maximum number of open streams of one connection: turns, and sessions that it follows. */
const MAX_STREAMS = 1_000;

/** Creates the state that all connections of a process share. */
export const createSharedOutput = (limits?: SendLimits): SharedOutput => ({
  buffers: createSendBuffers(limits),
  serializer: new FrameSerializer(),
});

/** Connection of one client: sends to it in order and releases its resources when it closes. */
export class ClientConnection {
  readonly connectionId: string;
  readonly address: string;
  readonly #socket: WebSocket;
  readonly #serializer: FrameSerializer;
  readonly #outbox: Outbox;
  readonly #cleanups = new Map<string | symbol, () => void>();
  readonly #offsets = createBoundedMap<number>(MAX_OFFSETS);
  readonly #lastOfKey = new Map<string, Promise<unknown>>();
  /** Ids of requests without a response, and of open streams. */
  readonly #ids = new Map<RequestId, 'request' | 'stream'>();
  #streams = 0;
  #isClosed = false;

  constructor(socket: WebSocket, identity: ConnectionIdentity, shared: SharedOutput, logger: Logger) {
    const { connectionId, address } = identity;
    this.connectionId = connectionId;
    this.address = address;
    this.#socket = socket;
    this.#serializer = shared.serializer;
    const onClosedSlow = (): void => this.#runCleanups();
    this.#outbox = new Outbox({ socket, connectionId, buffers: shared.buffers, logger, onClosedSlow });
    socket.once('close', () => this.#runCleanups());
  }

  send(message: JsonValue): void {
    this.#outbox.send(
      () => JSON.stringify(message),
      () => 'from the last offset',
    );
  }

  /** Sends a text. `resumeFrom` tells a client that is closed for being slow where to continue. */
  sendText(text: () => string, resumeFrom: () => string): void {
    this.#outbox.send(text, resumeFrom);
  }

  /** Sends the result of a request. */
  respond(id: RequestId, result: JsonValue): void {
    this.send({ id: id ?? null, result });
  }

  /** Sends the error of a request. */
  fail(id: RequestId, error: unknown, requestId: string): void {
    this.send({ id: id ?? null, error: rpcError(error, requestId) as unknown as JsonValue });
  }

  /**
   * Sends a stream frame under a request's id. Offsets of a session never decrease on a connection.
   */
  frame(id: RequestId, sessionId: string, frame: StreamFrame): void {
    const before = this.#offsets.get(sessionId) ?? 0;
    const offset = this.#advanceOffset(sessionId, before, frame.offset);
    this.#outbox.send(
      () => this.#serializer.serialize(id, frame, offset),
      () => `session ${sessionId} after ${before}`,
    );
  }

  /** Claims the id of a request. Returns false if a request or a stream of this id is open. */
  beginRequest(id: RequestId): boolean {
    if (id === undefined || id === null) return true;
    if (this.#ids.has(id)) return false;
    this.#ids.set(id, 'request');
    return true;
  }

  /** Releases the id of a request, unless a stream uses it. */
  endRequest(id: RequestId): void {
    if (this.#ids.get(id) === 'request') this.#ids.delete(id);
  }

  /** Throws `GATEWAY.TOO_MANY_STREAMS` if the connection may open no further stream. */
  requireStreamRoom(): void {
    if (this.#streams < MAX_STREAMS) return;
    const message = `this connection has ${MAX_STREAMS} open streams: wait for one to end, or use another connection`;
    throw exhausted('GATEWAY.TOO_MANY_STREAMS', message);
  }

  /**
   * Opens a stream of frames under a request's id. Returns the function that ends it, with the
   * rules of `addCleanup`.
   */
  openStream(id: RequestId, cleanup: () => void, key?: string): () => void {
    this.#streams++;
    if (this.#ids.has(id)) this.#ids.set(id, 'stream');
    return this.addCleanup(() => {
      this.#streams--;
      this.#ids.delete(id);
      cleanup();
    }, key);
  }

  /**
   * Adds a function to run when the connection closes, or at once if it is closed. Returns a
   * function that runs it earlier. A cleanup of the same key runs first and is replaced.
   */
  addCleanup(cleanup: () => void, key: string | symbol = Symbol('cleanup')): () => void {
    this.#cleanups.get(key)?.();
    let isDone = false;
    const runOnce = (): void => {
      if (!isDone) cleanup();
      isDone = true;
    };
    if (this.#isClosed) runOnce();
    else this.#cleanups.set(key, runOnce);
    return () => {
      if (this.#cleanups.get(key) === runOnce) this.#cleanups.delete(key);
      runOnce();
    };
  }

  /**
   * Runs work of one key one after another, in the order of the calls. A failure does not stop
   * later work.
   */
  runInOrder<T>(key: string, work: () => Promise<T>): Promise<T> {
    const run = (this.#lastOfKey.get(key) ?? Promise.resolve()).then(work, work);
    this.#lastOfKey.set(key, run);
    const forget = (): void => void (this.#lastOfKey.get(key) === run && this.#lastOfKey.delete(key));
    run.then(forget, forget);
    return run;
  }

  /**
   * Returns undefined if the client has room, else a promise that settles once it has read on or is
   * gone. Readers of the log wait for it. A client that reads nothing for 30 s is closed.
   */
  waitForRoom(sessionId: string): Promise<void> | undefined {
    return this.#outbox.waitForRoom(() => `session ${sessionId} after ${this.#offsets.get(sessionId) ?? 0}`);
  }

  /** Returns the same as `waitForRoom`, with the text of the close reason. */
  waitForRoomToSend(resumeFrom: () => string): Promise<void> | undefined {
    return this.#outbox.waitForRoom(resumeFrom);
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  #advanceOffset(sessionId: string, before: number, offset: number | null): number {
    const highest = Math.max(before, offset ?? 0);
    this.#offsets.put(sessionId, highest);
    return offset ?? highest;
  }

  #runCleanups(): void {
    this.#isClosed = true;
    for (const cleanup of this.#cleanups.values()) cleanup();
    this.#cleanups.clear();
  }
}
