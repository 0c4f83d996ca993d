import type { ClientError } from './errors.js';
import { errorOfRpc, isTransient } from './errors.js';
import type { Exchange, GatewayConnection } from './connection.js';
import type { Incoming } from './gateway-socket.js';

/** Limits of what a stream holds for a reader that is slower than the gateway. */
export interface BufferLimits {
  readonly items: number;
  /** Maximum length of the buffered messages, UTF-16 units. */
  readonly length: number;
}

interface Buffered<T> {
  readonly item: T;
  readonly length: number;
}

/** Delay before a request that an engine could not answer is sent again, ms. */
const RETRY_MS = 1_000;

/**
 * A stream of one request that continues over lost connections, for one reader. A full buffer drops
 * what comes next. The stream is then requested again from the last item, once the reader has read
 * the buffer.
 */
export abstract class BufferedStream<T> implements Exchange, AsyncIterableIterator<T> {
  readonly #connection: GatewayConnection;
  readonly #limits: BufferLimits;
  #buffer: Buffered<T>[] = [];
  #length = 0;
  #isFull = false;
  #isEnded = false;
  #error: ClientError | null = null;
  #waiting: (() => void)[] = [];

  protected constructor(connection: GatewayConnection, limits: BufferLimits) {
    this.#connection = connection;
    this.#limits = limits;
  }

  abstract request(): { readonly method: string; readonly params: unknown };
  /** Returns true if the request may be sent again after the gateway refused it. */
  protected abstract isRepeat(): boolean;
  /** Handles a message that is not an error. */
  protected abstract onAnswer(message: Incoming, length: number): void;
  /** Called with each item that the reader gets. */
  protected onRead(_item: T): void {}
  /** Called once the stream ends in any way. */
  protected onEnd(_error: ClientError | null): void {}
  /** Called when the gateway should stop sending, with the id of the request. */
  protected onDetach(_id: number | undefined): void {}

  canRepeat(): boolean {
    return true;
  }

  onMessage(message: Incoming, length: number): void {
    if (this.#isEnded || this.#isFull) return;
    if (!message.error) return this.onAnswer(message, length);
    const error = errorOfRpc(message.error);
    if (isTransient(error) && this.isRepeat())
      return this.#connection.resend(this, error.retryAfterMs ?? RETRY_MS);
    this.#connection.remove(this);
    this.fail(error);
  }

  fail(error: ClientError): void {
    if (this.#isEnded) return;
    this.#error = error;
    this.#end();
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    for (;;) {
      const first = this.#buffer.shift();
      if (first) {
        this.#length -= first.length;
        this.onRead(first.item);
        if (this.#isFull && this.#buffer.length === 0) this.#refill();
        return { value: first.item, done: false };
      }
      if (this.#error) throw this.#error;
      if (this.#isEnded) return { value: undefined, done: true };
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Stops reading: work that the stream shows continues at the gateway. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.detach();
    return Promise.resolve({ value: undefined, done: true });
  }

  /** Ends the stream for its reader, and drops what is buffered. The turn itself continues. */
  detach(): void {
    this.#buffer = [];
    this.finish();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Adds an item for the reader. */
  protected push(item: T, length: number): void {
    this.#buffer.push({ item, length });
    this.#length += length;
    this.#wake();
    const { items, length: maxLength } = this.#limits;
    if (this.#buffer.length < items && this.#length < maxLength) return;
    this.#isFull = true;
    this.onDetach(this.#connection.detach(this));
  }

  /** Ends the stream after the buffered items. */
  protected finish(): void {
    if (this.#isEnded) return;
    this.onDetach(this.#connection.detach(this));
    this.#connection.remove(this);
    this.#end();
  }

  #refill(): void {
    this.#isFull = false;
    if (!this.#isEnded) this.#connection.resend(this);
  }

  #end(): void {
    this.#isEnded = true;
    this.onEnd(this.#error);
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}
