import type { RunEnd } from '@antiphon/sandbox-domain';
import { OUT_OF_MEMORY } from './cell-process.js';
import type { Cell } from './cell-process.js';
import type { CellEnd, CellListener, ServeHttp, ServeStore } from './exchange.js';
import type { CallSettings } from './protocol.js';
import type { CallAbilities } from './wasi-stubs.js';

/** A module that passed validation, as loaded into cells. */
export interface ModuleImage {
  /** SHA-256 of the module's file, hex. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

export interface CellJob {
  /** Name of the plug-in; jobs of one plug-in never occupy all cells. */
  readonly plugin: string;
  /** Session of the job; sessions that use one plug-in take turns. */
  readonly session?: string;
  readonly image: ModuleImage;
  /** The export to call. */
  readonly entry: string;
  readonly input: Uint8Array;
  readonly settings?: CallSettings;
  readonly timeoutMs: number;
  readonly listener: CellListener;
  readonly http?: ServeHttp;
  readonly store?: ServeStore;
  /** None by default. */
  readonly abilities?: CallAbilities;
  /** Checked right before the job runs. Null, or why the job must not run any more. */
  readonly findObstacle?: () => string | null;
  /** Aborted when the caller no longer waits for the result. */
  readonly signal?: AbortSignal;
}

/** Timeout of compiling a module and instantiating it once, ms. */
export const LOAD_TIMEOUT_MS = 2_000;

const SILENT: CellListener = {
  onLog: () => undefined,
  onFlood: () => undefined,
  onSuppressed: () => undefined,
};

const toRunEnd = (run: CellEnd, timeoutMs: number): RunEnd => {
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
      return { end: 'died', message: 'it replied to another request' };
  }
};

/** Compiles a module in a cell and instantiates it once. Returns the failure, or null. */
export const loadInCell = async (
  cell: Cell,
  { digest, bytes }: ModuleImage,
  timeoutMs: number = LOAD_TIMEOUT_MS,
): Promise<RunEnd | null> => {
  if (cell.loaded.has(digest)) return null;
  const end = await cell.execute({
    operation: { type: 'load', digest },
    body: bytes,
    timeoutMs,
    listener: SILENT,
  });
  if (end.reply.type !== 'loaded') return toRunEnd(end, timeoutMs);
  cell.loaded.add(digest);
  return null;
};

/** Calls one export in a fresh instance. Loads the module first if the cell has not loaded it. */
export const runInCell = async (cell: Cell, job: CellJob): Promise<RunEnd> => {
  const { image, entry, input, settings = {}, abilities, timeoutMs, listener, http, store } = job;
  const failure = await loadInCell(cell, image);
  if (failure !== null) return failure;
  const operation = { type: 'call', digest: image.digest, entry, settings, abilities } as const;
  const command = { operation, body: input, timeoutMs, listener, http, store };
  return toRunEnd(await cell.execute(command), timeoutMs);
};

/** Runs a job like `runInCell`; an abort of its signal kills the cell and ends the job at once. */
export const runAbortable = async (cell: Cell, job: CellJob): Promise<RunEnd> => {
  const { signal } = job;
  if (signal?.aborted) return { end: 'cancelled' };
  signal?.addEventListener('abort', cell.kill);
  const end = await runInCell(cell, job);
  signal?.removeEventListener('abort', cell.kill);
  return signal?.aborted && !cell.isUsable() ? { end: 'cancelled' } : end;
};
