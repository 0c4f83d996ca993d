import { Readable } from 'node:stream';
import type { Frame } from '@antiphon/contracts/agent';
import type { JsonValue } from '@antiphon/kernel';
import { toEventId, type ChatCursor } from './chat-cursor.js';

/** Names of frames on the stream of a chat, where they differ. */
const NAMES: Readonly<Partial<Record<Frame['event'], string>>> = {
  tool_use: 'call',
  tool_result: 'observation',
};

const isObject = (data: JsonValue): data is Record<string, JsonValue> =>
  typeof data === 'object' && data !== null && !Array.isArray(data);

/** Renders a server-sent event. JSON has no line breaks, so that data is one line. */
export const renderEvent = (event: string, data: JsonValue, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** Renders a frame. Text becomes an object, and a restart names the first id that it voids. */
export const renderFrame = (frame: Frame, at: Omit<ChatCursor, 'offset'>): string => {
  const { event, data, offset, turnId } = frame;
  const fields = isObject(data) ? data : { text: data };
  const from = fields['offset'];
  const voided: Record<string, JsonValue> =
    event === 'restart' && typeof from === 'number' ? { from: toEventId({ ...at, offset: from }) } : {};
  return renderEvent(NAMES[event] ?? event, { ...fields, turnId, ...voided }, toEventId({ ...at, offset }));
};

/** Bytes of frames that several readers of a session get: they share them. */
const encoded = new WeakMap<Frame, { readonly epoch: number; readonly bytes: Buffer }>();

const encodeFrame = (frame: Frame, at: Omit<ChatCursor, 'offset'>): Buffer => {
  const known = encoded.get(frame);
  if (known?.epoch === at.epoch) return known.bytes;
  const bytes = Buffer.from(renderFrame(frame, at));
  encoded.set(frame, { epoch: at.epoch, bytes });
  return bytes;
};

/** Bounds of what a pipe holds for its reader, in bytes, and of the time without progress, ms. */
export interface PipeLimits {
  /** Bytes above which a reader counts as slow. */
  readonly slowBytes: number;
  /** Bytes above which it is cut at once. */
  readonly maxBytes: number;
  /** Time for which it may stay slow while events arrive. */
  readonly slowMs: number;
  /** Time for which it may read nothing of the past. */
  readonly stalledMs: number;
  readonly heartbeatMs: number;
  /** Time that a reader has to read the rest after it was cut. */
  readonly graceMs: number;
}

export const PIPE_LIMITS: PipeLimits = {
  slowBytes: 32 * 1024,
  maxBytes: 1024 * 1024,
  slowMs: 1_000,
  stalledMs: 30_000,
  heartbeatMs: 15_000,
  graceMs: 5_000,
};

/** Maximum number of readers that are cut or closed in one round of the event loop. */
const ENDS_A_ROUND = 4;

/**
 * Ends of readers. Many become slow at the same moment, and closing a thousand connections at once
 * would stop the process for others.
 */
class EndQueue {
  readonly #waiting: (() => void)[] = [];
  #inRound = 0;

  add(end: () => void): void {
    this.#waiting.push(end);
    this.#run();
  }

  #run(): void {
    while (this.#waiting.length > 0 && this.#inRound < ENDS_A_ROUND) {
      if (this.#inRound === 0) setImmediate(() => this.#nextRound());
      this.#inRound++;
      this.#waiting.shift()?.();
    }
  }

  #nextRound(): void {
    this.#inRound = 0;
    this.#run();
  }
}

const ends = new EndQueue();

/**
 * Server-sent events of one chat to one reader, with bounded memory. A reader that is too slow gets
 * `behind` with the id to resume from, and is cut.
 */
export class ChatPipe extends Readable {
  readonly #at: Omit<ChatCursor, 'offset'>;
  readonly #limits: PipeLimits;
  readonly #heartbeat: NodeJS.Timeout;
  #lastId: string;
  #waiting: (() => void)[] = [];
  #slow: NodeJS.Timeout | null = null;
  #stalled: NodeJS.Timeout | null = null;
  #isEnded = false;

  constructor(cursor: ChatCursor, limits: PipeLimits = PIPE_LIMITS) {
    super({ highWaterMark: limits.slowBytes });
    this.#at = cursor;
    this.#limits = limits;
    this.#lastId = toEventId(cursor);
    this.#heartbeat = setInterval(() => this.#beat(), limits.heartbeatMs).unref();
  }

  /** Id of the last event that was sent. */
  get lastId(): string {
    return this.#lastId;
  }

  /** Sends an event of the pipe itself. */
  send(event: string, data: JsonValue, id?: string): void {
    if (!this.#isEnded) this.push(renderEvent(event, data, id));
  }

  /** Sends a frame, or cuts a reader that holds too much. */
  deliver(frame: Frame): void {
    if (this.#isEnded) return;
    if (this.readableLength > this.#limits.maxBytes) return this.#cut();
    const { offset } = frame;
    this.#lastId = toEventId({ ...this.#at, offset });
    this.push(encodeFrame(frame, this.#at));
    if (this.#isFull()) this.#slow ??= this.#after(this.#limits.slowMs);
  }

  /** Returns undefined if there is room, else a promise that settles once the reader has read on. */
  waitForRoom(): Promise<void> | undefined {
    if (this.#isEnded || !this.#isFull()) return undefined;
    // Only past events wait for room. They are in the log, so that the reader has more time.
    this.#clear('slow');
    this.#stalled ??= this.#after(this.#limits.stalledMs);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Ends the stream. The reader gets what was sent before. */
  finish(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#stop();
    this.push(null);
    setTimeout(() => ends.add(() => this.destroy()), this.#limits.graceMs).unref();
  }

  /** Called when the reader has room. The chunk that it is about to get still counts as held. */
  override _read(): void {
    this.#clear('slow');
    this.#clear('stalled');
    this.#resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#isEnded = true;
    this.#stop();
    callback(error);
  }

  #isFull(): boolean {
    return this.readableLength >= this.#limits.slowBytes;
  }

  #beat(): void {
    if (!this.#isEnded && this.readableLength === 0) this.push(': heartbeat\n\n');
  }

  #after(ms: number): NodeJS.Timeout {
    return setTimeout(() => ends.add(() => this.#cutIfFull()), ms).unref();
  }

  #cutIfFull(): void {
    if (this.#isFull() && !this.#isEnded) this.#cut();
  }

  #cut(): void {
    this.send('behind', { resume: this.#lastId });
    this.finish();
  }

  #clear(timer: 'slow' | 'stalled'): void {
    clearTimeout((timer === 'slow' ? this.#slow : this.#stalled) ?? undefined);
    if (timer === 'slow') this.#slow = null;
    else this.#stalled = null;
  }

  #resume(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  #stop(): void {
    clearInterval(this.#heartbeat);
    this.#clear('slow');
    this.#clear('stalled');
    this.#resume();
  }
}
