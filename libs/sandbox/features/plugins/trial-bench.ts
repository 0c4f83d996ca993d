import { parseToolPolicy } from '@antiphon/contracts/sandbox';
import { parseDescription, undescribed } from '@antiphon/sandbox-domain';
import type { DescriptionResult, PluginDescription, RunEnd } from '@antiphon/sandbox-domain';
import type { Cell } from '../cell/cell-process.js';
import { LOAD_TIMEOUT_MS, loadInCell, runInCell } from '../cell/run-in-cell.js';
import type { CellJob } from '../cell/run-in-cell.js';

/** A plug-in that passed the static gate, about to be run for the first time. */
export interface Candidate extends Pick<CellJob, 'image' | 'listener'> {
  readonly name: string;
  readonly describes: boolean;
}

/** Tries modules in a cell that serves nobody else; a module that does not come back costs only that cell. */
export interface TrialBench {
  readonly attempt: (candidate: Candidate) => Promise<DescriptionResult>;
  readonly close: () => Promise<void>;
  /** The cell in use, for whoever goes on with it; `close` then leaves it alone. */
  readonly release: () => Cell | null;
}

const refuse = (reason: string): DescriptionResult => ({ ok: false, reason });

const describeEnd = (what: string, end: RunEnd): DescriptionResult => {
  if (end.end === 'timeout') return refuse(`${what} timeout: it did not end within ${end.timeoutMs} ms`);
  if (end.end === 'returned') return refuse(`${what} failed: ${end.error ?? `status ${end.status}`}`);
  return refuse(`${what} failed: ${'message' in end ? end.message : end.end}`);
};

const attemptIn = async (
  cell: Cell,
  { name, image, listener, describes }: Candidate,
): Promise<DescriptionResult> => {
  const obstacle = await loadInCell(cell, image);
  if (obstacle !== null) return describeEnd('instantiate', obstacle);
  if (!describes) return { ok: true, description: undescribed(name) satisfies PluginDescription };
  const timeoutMs = LOAD_TIMEOUT_MS;
  const input = new Uint8Array(0);
  const end = await runInCell(cell, { plugin: name, image, entry: 'describe', input, timeoutMs, listener });
  return end.end === 'returned' && end.status === 0 && end.error === null
    ? parseDescription(end.output, parseToolPolicy)
    : describeEnd('describe()', end);
};

export const createTrialBench = (open: () => Promise<Cell>, first: Cell): TrialBench => {
  let cell: Cell | null = first;
  const end = async (gone: Cell | null): Promise<void> => {
    gone?.kill();
    await gone?.ended;
  };
  return {
    attempt: async (candidate) => {
      if (cell === null || !cell.usable()) {
        await end(cell);
        cell = await open();
      }
      return attemptIn(cell, candidate);
    },
    release: () => {
      const released = cell?.usable() ? cell : null;
      if (released !== null) cell = null;
      return released;
    },
    close: () => end(cell),
  };
};
