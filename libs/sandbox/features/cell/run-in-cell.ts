import type { RunEnd } from '@antiphon/sandbox-domain';
import { OUT_OF_MEMORY } from './cell-process.js';
import type { Cell } from './cell-process.js';
import type { CellEnd, CellListener, ServeHttp } from './exchange.js';
import type { CallSettings } from './protocol.js';

/** A module that passed the gate, as cells are given it. */
export interface ModuleImage {
  /** SHA-256 of the file, hex. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

export interface CellJob {
  /** Name of the plug-in; jobs of one plug-in never take every cell. */
  readonly plugin: string;
  /** Whose job it is: those of one plug-in take turns. */
  readonly session?: string;
  readonly image: ModuleImage;
  /** The export to call. */
  readonly entry: string;
  readonly input: Uint8Array;
  readonly settings?: CallSettings;
  readonly timeoutMs: number;
  readonly listener: CellListener;
  readonly http?: ServeHttp;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: AbortSignal;
}

/** The longest that compiling and one trial instantiation of a module may take, in ms. */
export const LOAD_TIMEOUT_MS = 2_000;

const SILENT: CellListener = {
  onLog: () => undefined,
  onFlood: () => undefined,
  onSuppressed: () => undefined,
};

const endOf = (run: CellEnd, timeoutMs: number): RunEnd => {
  const { reply } = run;
  switch (reply.type) {
    case 'returned': {
      const body = run.body ?? new Uint8Array(0);
      return reply.failed
        ? {
            end: 'returned',
            status: reply.status,
            output: new Uint8Array(0),
            error: new TextDecoder().decode(body),
          }
        : { end: 'returned', status: reply.status, output: body, error: null };
    }
    case 'ended':
      return { end: reply.end, message: reply.message };
    case 'timeout':
      return { end: 'timeout', timeoutMs };
    case 'died':
      return { end: reply.message === OUT_OF_MEMORY ? 'memory' : 'died', message: reply.message };
    case 'refused':
      return { end: 'trapped', message: reply.message };
    case 'loaded':
      return { end: 'died', message: 'it answered another question' };
  }
};

/** Compiles a module in a cell and instantiates it once; null when that worked. */
export const loadInCell = async (
  cell: Cell,
  { digest, bytes }: ModuleImage,
  timeoutMs: number = LOAD_TIMEOUT_MS,
): Promise<RunEnd | null> => {
  if (cell.loaded.has(digest)) return null;
  const end = await cell.ask({
    question: { type: 'load', digest },
    body: bytes,
    timeoutMs,
    listener: SILENT,
  });
  if (end.reply.type !== 'loaded') return endOf(end, timeoutMs);
  cell.loaded.add(digest);
  return null;
};

/** Calls one export in a fresh instance, loading the module first where the cell does not have it yet. */
export const runInCell = async (cell: Cell, job: CellJob): Promise<RunEnd> => {
  const { image, entry, input, settings = {}, timeoutMs, listener, http } = job;
  const obstacle = await loadInCell(cell, image);
  if (obstacle !== null) return obstacle;
  const question = { type: 'call', digest: image.digest, entry, settings } as const;
  return endOf(
    await cell.ask({ question, body: input, timeoutMs, listener, ...(http ? { http } : {}) }),
    timeoutMs,
  );
};

/** `runInCell`, but a signal that is aborted meanwhile ends the cell and the call at once. */
export const runUntilAborted = async (cell: Cell, job: CellJob): Promise<RunEnd> => {
  const { signal } = job;
  if (signal?.aborted) return { end: 'cancelled' };
  signal?.addEventListener('abort', cell.kill);
  const end = await runInCell(cell, job);
  signal?.removeEventListener('abort', cell.kill);
  return signal?.aborted && !cell.usable() ? { end: 'cancelled' } : end;
};
