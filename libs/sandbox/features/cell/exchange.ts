import type {
  CallSettings,
  CellReply,
  CellRequest,
  HttpResponseHead,
  LogLine,
  ReplyFrame,
  StoreAnswer,
  StoreRequest,
} from './protocol.js';
import type { CallAbilities } from './wasi-stubs.js';

type FinalReply = Extract<CellReply, { type: 'loaded' | 'refused' | 'returned' | 'ended' }>;

/** End of a request to a cell; after `timeout` and `died` the cell is unusable. */
export type CellEnd =
  | { readonly reply: FinalReply; readonly body: Uint8Array }
  | { readonly reply: { readonly type: 'timeout' }; readonly body: null }
  | { readonly reply: { readonly type: 'died'; readonly message: string }; readonly body: null };

export interface CellListener {
  readonly onLog: (line: LogLine) => void;
  /** Called once when a call exceeds its limit of log lines. */
  readonly onFlood: () => void;
  /** Called after a call with the number of lines over its limit. */
  readonly onSuppressed: (lines: number) => void;
}

/** A request before the exchange has numbered it. */
export type CellOperation =
  | { readonly type: 'load'; readonly digest: string }
  | {
      readonly type: 'call';
      readonly digest: string;
      readonly entry: string;
      readonly settings?: CallSettings;
      readonly abilities?: CallAbilities;
    };

export interface HttpResponse {
  readonly head: HttpResponseHead;
  readonly body: Uint8Array;
}

/**
 * Fetches a page for the running call, within its plug-in's grants. Never rejects. `signal` aborts
 * when the call has ended.
 */
export type ServeHttp = (request: string, signal: AbortSignal, body?: Uint8Array) => Promise<HttpResponse>;

export interface StoreResponse {
  readonly answer: StoreAnswer;
  readonly body: Uint8Array;
}

/** Uses a store for the running call, within its plug-in's grants. Never rejects. */
export type ServeStore = (
  request: StoreRequest,
  value: Uint8Array,
  signal: AbortSignal,
) => Promise<StoreResponse>;

export interface CellCommand {
  readonly operation: CellOperation;
  readonly body: Uint8Array;
  /** Deadline, ms. At the deadline the process is killed. */
  readonly timeoutMs: number;
  readonly listener: CellListener;
  /** Absent when the plug-in may not request pages. */
  readonly http?: ServeHttp;
  /** Absent when the plug-in has no store. */
  readonly store?: ServeStore;
}

export interface CellTransport {
  readonly write: (request: CellRequest, body: Uint8Array) => void;
  readonly killProcess: () => void;
}

interface OpenRequest {
  readonly id: number;
  readonly command: CellCommand;
  readonly finish: (end: CellEnd) => void;
  /** Aborted when the request has ended. */
  readonly ended: AbortController;
  /** True while the cell waits for the service: it cannot ask for something else. */
  isWaiting: boolean;
}

const NO_HTTP: HttpResponse = {
  head: { end: 'refused', reason: 'http: the plug-in has no capability http:HOST' },
  body: new Uint8Array(0),
};

const NO_STORE: StoreResponse = {
  answer: { end: 'refused', reason: 'store: the plug-in has no capability store:NAME' },
  body: new Uint8Array(0),
};

const diedEnd = (message: string): CellEnd => ({ reply: { type: 'died', message }, body: null });

/**
 * The one open request of a cell. It ends with a reply, at its deadline or with the process,
 * whichever is first.
 */
export class CellExchange {
  private open: OpenRequest | null = null;
  private closedReason: string | null = null;
  private lastId = 0;

  constructor(private readonly transport: CellTransport) {}

  get isUsable(): boolean {
    return this.closedReason === null;
  }

  execute(command: CellCommand): Promise<CellEnd> {
    if (this.closedReason !== null) return Promise.resolve(diedEnd(this.closedReason));
    return new Promise((resolve) => {
      const id = (this.lastId += 1);
      const timer = setTimeout(() => this.expire(), command.timeoutMs);
      const finish = (end: CellEnd): void => {
        clearTimeout(timer);
        resolve(end);
      };
      this.open = { id, command, finish, ended: new AbortController(), isWaiting: false };
      this.transport.write({ ...command.operation, id }, command.body);
    });
  }

  /** Handles a frame from the cell. Ignores frames of requests that have ended. */
  receive({ reply, body }: ReplyFrame): void {
    const { open } = this;
    if (reply.type === 'ready' || open === null || reply.id !== open.id) return;
    const { listener } = open.command;
    if (reply.type === 'log') listener.onLog(reply.line);
    else if (reply.type === 'flood') listener.onFlood();
    else if (reply.type === 'http') void this.fetch(open, reply.request, body);
    else if (reply.type === 'store') void this.useStore(open, reply.request, body);
    else {
      if ('suppressed' in reply && reply.suppressed > 0) listener.onSuppressed(reply.suppressed);
      this.finish({ reply, body });
    }
  }

  /** Ends the open request and all later ones, because the process has exited. */
  close(reason: string): void {
    this.closedReason ??= reason;
    this.finish(diedEnd(this.closedReason));
  }

  kill(reason: string): void {
    this.transport.killProcess();
    this.close(reason);
  }

  private finish(end: CellEnd): void {
    const request = this.open;
    this.open = null;
    request?.ended.abort();
    request?.finish(end);
  }

  private expire(): void {
    this.closedReason ??= 'killed at a deadline';
    this.transport.killProcess();
    this.finish({ reply: { type: 'timeout' }, body: null });
  }

  private async fetch(request: OpenRequest, text: string, body: Uint8Array): Promise<void> {
    const { http } = request.command;
    const ask = async (signal: AbortSignal) => (await http?.(text, signal, body)) ?? NO_HTTP;
    const response = await this.serve(request, ask);
    if (response)
      this.transport.write({ type: 'http-answer', id: request.id, answer: response.head }, response.body);
  }

  private async useStore(request: OpenRequest, asked: StoreRequest, value: Uint8Array): Promise<void> {
    const { store } = request.command;
    const use = async (signal: AbortSignal) => (await store?.(asked, value, signal)) ?? NO_STORE;
    const response = await this.serve(request, use);
    if (response)
      this.transport.write({ type: 'store-answer', id: request.id, answer: response.answer }, response.body);
  }

  /** Works for a cell that waits. Returns null if its call has ended, or its cell is gone. */
  private async serve<T>(request: OpenRequest, work: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
    if (request.isWaiting) {
      this.kill('it broke the protocol: it asked for two things at once');
      return null;
    }
    request.isWaiting = true;
    const response = await work(request.ended.signal);
    request.isWaiting = false;
    return this.open === request ? response : null;
  }
}
