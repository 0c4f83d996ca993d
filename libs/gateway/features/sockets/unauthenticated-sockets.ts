import type { Duplex } from 'node:stream';
import { LIMITS } from '@antiphon/contracts/gateway';
import type { WebSocket } from 'ws';

export interface UnauthenticatedLimits {
  /** Maximum number of sockets of all addresses. */
  readonly total: number;
  /** Maximum number of sockets of one address. */
  readonly perAddress: number;
}

/** Limits of sockets that have not authenticated. A client authenticates within milliseconds. */
export const UNAUTHENTICATED_LIMITS: UnauthenticatedLimits = { total: 1_000, perAddress: 64 };

/** Maximum size of what a socket sends up to the end of its first message, bytes. */
const MAX_FIRST_BYTES = LIMITS.connectBytes;

/** Time for a close frame to reach a client before its socket is destroyed, ms. */
const CLOSE_FRAME_MS = 1_000;

/** Counts the sockets that have not authenticated, in all and per address. */
export class UnauthenticatedSockets {
  readonly #limits: UnauthenticatedLimits;
  readonly #perAddress = new Map<string, number>();
  #total = 0;

  constructor(limits: UnauthenticatedLimits = UNAUTHENTICATED_LIMITS) {
    this.#limits = limits;
  }

  hasRoom(address: string): boolean {
    const { total, perAddress } = this.#limits;
    return this.#total < total && (this.#perAddress.get(address) ?? 0) < perAddress;
  }

  /** Counts a socket. Returns the function that releases it, which may be called again. */
  add(address: string): () => void {
    this.#total++;
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#total--;
      const left = (this.#perAddress.get(address) ?? 1) - 1;
      if (left > 0) this.#perAddress.set(address, left);
      else this.#perAddress.delete(address);
    };
  }
}

/**
 * Closes a socket with 1009 that sends too many bytes before the end of its first message. The
 * bytes are counted on the wire, so that fragments and pings count too. Call it before the first
 * message is handled. Returns the function that lifts the limit.
 */
export const limitFirstMessage = (socket: WebSocket, wire: Duplex): (() => void) => {
  let bytes = 0;
  let isLifted = false;
  const lift = (): void => {
    isLifted = true;
    wire.off('data', onData);
    socket.off('message', onMessage);
  };
  const refuse = (): void => {
    lift();
    socket.close(1009, `over ${MAX_FIRST_BYTES} bytes before authentication`);
    // Nothing more is read. The socket ends as soon as the client could read the close frame.
    socket.pause();
    const cut = setTimeout(() => socket.terminate(), CLOSE_FRAME_MS).unref();
    socket.once('close', () => clearTimeout(cut));
  };
  const onMessage = (data: { readonly byteLength: number } | readonly unknown[]): void => {
    lift();
    if ('byteLength' in data && data.byteLength > MAX_FIRST_BYTES) refuse();
  };
  const onData = (chunk: Buffer): void => {
    // The listener of ws ran before this one. The end of the first message has lifted the limit.
    if (isLifted) return;
    bytes += chunk.length;
    if (bytes > MAX_FIRST_BYTES) refuse();
  };
  socket.on('message', onMessage);
  wire.on('data', onData);
  return lift;
};
