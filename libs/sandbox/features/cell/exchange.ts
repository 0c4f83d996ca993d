import type { ReplyFrame } from './frame-codec.js';
import type { CellReply, CellRequest, LogLine } from './protocol.js';

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
  | { readonly type: 'call'; readonly digest: string; readonly entry: string };

export interface CellRun {
  readonly question: CellQuestion;
  readonly body: Uint8Array;
  readonly timeoutMs: number;
  readonly listener: CellListener;
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

export const createExchange = (
  write: (request: CellRequest, body: Uint8Array) => void,
  killProcess: () => void,
): Exchange => {
  let open: { readonly id: number; readonly run: CellRun; readonly finish: (end: CellEnd) => void } | null =
    null;
  let closed: string | null = null;
  let lastId = 0;
  const died = (message: string): CellEnd => ({ reply: { type: 'died', message }, body: null });
  const finish = (end: CellEnd): void => {
    const request = open;
    open = null;
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
        open = { id, run, finish: settle };
        write({ ...run.question, id }, run.body);
      }),
    receive: ({ reply, body }) => {
      if (reply.type === 'ready' || open === null || reply.id !== open.id) return;
      if (reply.type === 'log') open.run.listener.onLog(reply.line);
      else if (reply.type === 'flood') open.run.listener.onFlood();
      else {
        if ('suppressed' in reply && reply.suppressed > 0) open.run.listener.onSuppressed(reply.suppressed);
        finish({ reply, body });
      }
    },
    close,
    kill: (message) => {
      killProcess();
      close(message);
    },
    usable: () => closed === null,
  };
};
