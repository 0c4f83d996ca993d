import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { Incoming, StreamedFrame } from './frames.js';

/** The frames of one request as they arrive. */
export interface FrameStream {
  readonly id: number;
  readonly frames: readonly StreamedFrame[];
  /**
   * Resolves with the first frame, received already or later, that matches. Rejects when the
   * request is refused.
   */
  waitFor(what: string, matches: (frame: StreamedFrame) => boolean): Promise<StreamedFrame>;
  /** Resolves with all frames once `done` has arrived. Rejects when the request is refused. */
  done(): Promise<readonly StreamedFrame[]>;
}

export interface SocketClient {
  readonly socket: WebSocket;
  /** All messages, in order of arrival. */
  readonly received: readonly Incoming[];
  /** Resolves with the first message, received already or later, that matches. */
  waitFor(what: string, matches: (message: Incoming) => boolean): Promise<Incoming>;
  sendRaw(text: string): void;
  /**
   * Sends a request. Resolves with its result; rejects with its error, whose `rpc` holds the
   * JSON-RPC error.
   */
  call(method: string, params?: unknown): Promise<unknown>;
  stream(method: string, params: unknown): FrameStream;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
  close(): Promise<void>;
}

/** Maximum time that a test waits for a message. */
const DEADLINE_MS = 60_000;

interface Waiter {
  /** Settles the waiter if its message has arrived. */
  check(): void;
  fail(error: Error): void;
}

/**
 * Holds the waits of one connection: each is checked after every message, and all fail when it
 * closes.
 */
class Waits {
  private readonly waiters = new Set<Waiter>();
  private closed: Error | undefined;

  check(): void {
    for (const waiter of [...this.waiters]) waiter.check();
  }

  failAll(error: Error): void {
    this.closed = error;
    for (const waiter of [...this.waiters]) waiter.fail(error);
  }

  add<T>(what: string, find: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        clearTimeout(timer);
        this.waiters.delete(waiter);
        finish();
      };
      const waiter: Waiter = {
        check: () => {
          const found = find();
          if (found !== undefined) settle(() => resolve(found));
        },
        fail: (error) => settle(() => reject(error)),
      };
      const timer = setTimeout(() => waiter.fail(new Error(`timed out waiting for ${what}`)), DEADLINE_MS);
      this.waiters.add(waiter);
      waiter.check();
      if (this.closed) waiter.fail(this.closed);
    });
  }
}

const toError = ({ error }: Incoming): Error =>
  Object.assign(new Error(error?.message ?? 'no error'), { rpc: error });

class RequestStream implements FrameStream {
  private readonly received: StreamedFrame[] = [];
  private refusal: Incoming | undefined;

  constructor(
    readonly id: number,
    private readonly waits: Waits,
  ) {}

  get frames(): readonly StreamedFrame[] {
    return [...this.received];
  }

  onMessage(message: Incoming): void {
    if (message.event !== undefined) this.received.push(message as StreamedFrame);
    else if (message.error) this.refusal = message;
  }

  async waitFor(what: string, matches: (frame: StreamedFrame) => boolean): Promise<StreamedFrame> {
    let checked = 0;
    const found = await this.waits.add<StreamedFrame | Incoming>(what, () => {
      const next = this.received.slice(checked).find(matches);
      checked = this.received.length;
      return next ?? this.refusal;
    });
    if (found === this.refusal) throw toError(found as Incoming);
    return found as StreamedFrame;
  }

  async done(): Promise<readonly StreamedFrame[]> {
    await this.waitFor('done', ({ event }) => event === 'done');
    return this.frames;
  }
}

class Connection implements SocketClient {
  readonly received: Incoming[] = [];
  readonly closed: Promise<number>;
  private readonly streams = new Map<number, RequestStream>();
  private readonly waits = new Waits();
  private nextId = 1;

  constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => this.onMessage(JSON.parse(data.toString('utf8')) as Incoming));
    this.closed = new Promise((resolve) =>
      socket.once('close', (code) => {
        resolve(code);
        this.waits.failAll(new Error(`the connection closed with ${code}`));
      }),
    );
  }

  waitFor(what: string, matches: (message: Incoming) => boolean): Promise<Incoming> {
    return this.waits.add(what, () => this.received.find(matches));
  }

  sendRaw(text: string): void {
    this.socket.send(text);
  }

  async call(method: string, params?: unknown): Promise<unknown> {
    const id = this.send(method, params);
    const answer = await this.waitFor(
      `the response to ${method}`,
      (message) => message.id === id && message.event === undefined,
    );
    if (answer.error) throw toError(answer);
    return answer.result;
  }

  stream(method: string, params: unknown): FrameStream {
    const stream = new RequestStream(this.send(method, params), this.waits);
    this.streams.set(stream.id, stream);
    return stream;
  }

  async close(): Promise<void> {
    this.socket.terminate();
    await this.closed;
  }

  private send(method: string, params: unknown): number {
    const id = this.nextId++;
    this.socket.send(JSON.stringify({ id, method, params }));
    return id;
  }

  private onMessage(message: Incoming): void {
    this.received.push(message);
    if (typeof message.id === 'number') this.streams.get(message.id)?.onMessage(message);
    this.waits.check();
  }
}

/** Connects with nothing but `ws`, as an application developer would. */
export const connectClient = async (
  url: string,
  headers: Record<string, string> = {},
): Promise<SocketClient> => {
  const socket = new WebSocket(url, { headers });
  const client = new Connection(socket);
  await Promise.race([
    once(socket, 'open'),
    once(socket, 'unexpected-response').then(([, response]: unknown[]) => {
      throw new Error(`upgrade refused with ${(response as { statusCode: number }).statusCode}`);
    }),
  ]);
  return client;
};
