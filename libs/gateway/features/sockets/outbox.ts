import type { Logger } from '@antiphon/observability';
import { createFrameBatcher } from '@antiphon/unsafe';
import type { WebSocket } from 'ws';
import type { FrameSerializer } from './frame-serializer.js';

/**
 * Bytes sent to slow clients and not yet read, over all sockets of a process. Limited for each
 * socket and in total.
 */
export interface SendBuffers {
  /**
   * Records the bytes that a socket holds. Returns false if they exceed its limit, so that it must
   * be closed.
   */
  mayHold(id: string, bytes: number): boolean;
  /** Removes a socket that caught up or closed. */
  forget(id: string): void;
  /** Returns the bytes that slow sockets hold together. */
  total(): number;
}

export interface SendLimits {
  readonly socketBytes: number;
  readonly totalBytes: number;
}

/** Bytes below which a socket does not count as slow. */
export const SLOW_BYTES = 64 * 1024;

export const SEND_LIMITS: SendLimits = { socketBytes: 4 * 1024 * 1024, totalBytes: 32 * 1024 * 1024 };

/**
 * Creates the accounting of slow sockets. When the total is used up, a socket may still hold an
 * equal share of it. The sockets that hold most are closed then, not the ones that came last.
 */
export const createSendBuffers = ({ socketBytes, totalBytes }: SendLimits = SEND_LIMITS): SendBuffers => {
  const slow = new Map<string, number>();
  let total = 0;
  const forget = (id: string): void => {
    total -= slow.get(id) ?? 0;
    slow.delete(id);
  };
  return {
    mayHold: (id, bytes) => {
      forget(id);
      if (bytes <= SLOW_BYTES) return true;
      slow.set(id, bytes);
      total += bytes;
      return bytes <= socketBytes && (total <= totalBytes || bytes <= totalBytes / slow.size);
    },
    forget,
    total: () => total,
  };
};

/** State that all connections of a process share. */
export interface SharedOutput {
  readonly buffers: SendBuffers;
  readonly serializer: FrameSerializer;
}

/** WebSocket close code 1013, "try again later". */
const CLOSE_SLOW = 1013;
/** Time for which a full socket may stay without progress before it is closed, ms. */
const STALLED_MS = 30_000;

export interface OutboxOptions {
  readonly socket: WebSocket;
  readonly connectionId: string;
  readonly buffers: SendBuffers;
  readonly logger: Logger;
  /** Called after a slow client was closed. */
  readonly onClosedSlow: () => void;
}

/**
 * Sends to one client with backpressure. It closes a client that reads too slowly; the client can
 * then resume.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #startBatch: () => void;
  #waiting: (() => void)[] = [];
  #writes = 0;
  #stallTimer: NodeJS.Timeout | undefined;

  constructor(options: OutboxOptions) {
    const { socket, connectionId, buffers } = options;
    this.#options = options;
    this.#startBatch = createFrameBatcher(socket, SLOW_BYTES);
    socket.once('close', () => {
      buffers.forget(connectionId);
      this.#resumeWaiting();
    });
  }

  /**
   * Sends a text, or closes the client if it holds too much. `resumeFrom` is part of the close
   * reason.
   */
  send(text: () => string, resumeFrom: () => string): void {
    const { socket, connectionId, buffers } = this.#options;
    if (socket.readyState !== socket.OPEN) return;
    this.#startBatch();
    const bytes = socket.bufferedAmount;
    if (buffers.mayHold(connectionId, bytes)) return socket.send(text(), this.#onWritten);
    this.#closeSlow(bytes, resumeFrom());
  }

  /**
   * Returns undefined if there is room, else a promise that settles once the client has read on or
   * is gone.
   */
  waitForRoom(resumeFrom: () => string): Promise<void> | undefined {
    if (!this.#isFull()) return undefined;
    if (this.#stallTimer === undefined) this.#watchForStall(resumeFrom);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #isFull(): boolean {
    const { socket } = this.#options;
    return socket.readyState === socket.OPEN && socket.bufferedAmount > SLOW_BYTES;
  }

  readonly #onWritten = (): void => {
    const { socket, connectionId, buffers } = this.#options;
    this.#writes++;
    if (socket.bufferedAmount > SLOW_BYTES) return;
    buffers.forget(connectionId);
    this.#resumeWaiting();
  };

  #resumeWaiting(): void {
    clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
    if (this.#waiting.length === 0) return;
    for (const resume of this.#waiting) resume();
    this.#waiting = [];
  }

  #watchForStall(resumeFrom: () => string): void {
    const { socket } = this.#options;
    const [writes, bytes] = [this.#writes, socket.bufferedAmount];
    this.#stallTimer = setTimeout(() => {
      this.#stallTimer = undefined;
      if (!this.#isFull()) return;
      if (this.#writes > writes || socket.bufferedAmount < bytes) return this.#watchForStall(resumeFrom);
      this.#closeSlow(socket.bufferedAmount, resumeFrom());
    }, STALLED_MS).unref();
  }

  #closeSlow(bytes: number, resumeFrom: string): void {
    const { socket, connectionId, logger, onClosedSlow } = this.#options;
    logger.warn({ connectionId, bytes }, 'slow client closed');
    // A close reason has at most 123 bytes.
    socket.close(CLOSE_SLOW, `too slow: resume ${resumeFrom}`);
    onClosedSlow();
  }
}
