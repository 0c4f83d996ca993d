import type { ReplyFrame } from './frame-codec.js';
import type { CallSettings, CellReply, CellRequest, HttpAnswerHead, LogLine } from './protocol.js';

type Final = Extract<CellReply, { type: 'loaded' | 'refused' | 'returned' | 'ended' }>;

/** How a request to a cell ended; after `timeout` and `died` the cell is gone. */
export type CellEnd =
  | { readonly reply: Final; readonly body: Uint8Array }
  | { readonly reply: { readonly type: 'timeout' }; readonly body: null }
  | { readonly reply: { readonly type: 'died'; readonly message: string }; readonly body: null };

export interface CellListener {
  readonly onLog: (line: LogLine) => void;
  /** The plug-in logs more than a call may. */
  readonly onFlood: () => void;
  /** How many lines a call that has ended had too many. */
  readonly onSuppressed: (lines: number) => void;
}

/** A request before the exchange has numbered it. */
export type CellQuestion =
  | { readonly type: 'load'; readonly digest: string }
  | {
      readonly type: 'call';
      readonly digest: string;
      readonly entry: string;
      readonly settings?: CallSettings;
    };

export interface HttpAnswer {
  readonly head: HttpAnswerHead;
  readonly body: Uint8Array;
}
/** Gets a page for the call that runs, within what its plug-in may; never rejects. Aborted when the call has ended. */
export type ServeHttp = (request: string, signal: AbortSignal) => Promise<HttpAnswer>;

export interface CellRun {
  readonly question: CellQuestion;
  readonly body: Uint8Array;
  readonly timeoutMs: number;
  readonly listener: CellListener;
  /** Absent where a plug-in may not ask for pages at all. */
  readonly http?: ServeHttp;
}

/** The one open request of a cell: it ends by an answer, by its deadline or with the process, whichever is first. */
export interface Exchange {
  readonly ask: (run: CellRun) => Promise<CellEnd>;
  readonly receive: (frame: ReplyFrame) => void;
  /** The process is gone: the open request and all later ones end so. */
  readonly close: (message: string) => void;
  /** Ends the process too. */
  readonly kill: (message: string) => void;
  readonly usable: () => boolean;
}

interface OpenRequest {
  readonly id: number;
  readonly run: CellRun;
  readonly finish: (end: CellEnd) => void;
  /** Aborted when the request has ended. */
  readonly over: AbortController;
  /** A cell that waits for a page can ask for no other. */
  asking: boolean;
}

const NO_HTTP: HttpAnswer = {
  head: { end: 'refused', reason: 'http: the plug-in has no capability http:HOST' },
  body: new Uint8Array(0),
};

export const createExchange = (
  write: (request: CellRequest, body: Uint8Array) => void,
  killProcess: () => void,
): Exchange => {
  let open: OpenRequest | null = null;
  let closed: string | null = null;
  let lastId = 0;
  const died = (message: string): CellEnd => ({ reply: { type: 'died', message }, body: null });
  const finish = (end: CellEnd): void => {
    const request = open;
    open = null;
    request?.over.abort();
    request?.finish(end);
  };
  const expire = (): void => {
    closed ??= 'killed at a deadline';
    killProcess();
    finish({ reply: { type: 'timeout' }, body: null });
  };

  const close = (message: string): void => {
    closed ??= message;
    finish(died(closed));
  };

  const kill = (message: string): void => {
    killProcess();
    close(message);
  };
  const serve = async (asker: OpenRequest, request: string): Promise<void> => {
    if (asker.asking) return kill('it broke the protocol: it asked for two pages at once');
    asker.asking = true;
    const { head, body } = (await asker.run.http?.(request, asker.over.signal)) ?? NO_HTTP;
    asker.asking = false;
    // A call that has ended meanwhile, or its cell, reads no answer any more.
    if (open === asker) write({ type: 'http-answer', id: asker.id, answer: head }, body);
  };

  return {
    ask: (run) =>
      new Promise((resolve) => {
        if (closed !== null) return resolve(died(closed));
        const id = (lastId += 1);
        const timer = setTimeout(expire, run.timeoutMs);
        const settle = (end: CellEnd): void => {
          clearTimeout(timer);
          resolve(end);
        };
        open = { id, run, finish: settle, over: new AbortController(), asking: false };
        write({ ...run.question, id }, run.body);
      }),
    receive: ({ reply, body }) => {
      if (reply.type === 'ready' || open === null || reply.id !== open.id) return;
      if (reply.type === 'log') open.run.listener.onLog(reply.line);
      else if (reply.type === 'flood') open.run.listener.onFlood();
      else if (reply.type === 'http') void serve(open, reply.request);
      else {
        if ('suppressed' in reply && reply.suppressed > 0) open.run.listener.onSuppressed(reply.suppressed);
        finish({ reply, body });
      }
    },
    close,
    kill,
    usable: () => closed === null,
  };
};
