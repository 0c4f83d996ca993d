import { parseToolPolicy } from '@antiphon/contracts/sandbox';
import { defaultDescription, parseDescription } from '@antiphon/sandbox-domain';
import type { DescriptionResult, RunEnd } from '@antiphon/sandbox-domain';
import type { Cell } from '../cell/cell-process.js';
import { LOAD_TIMEOUT_MS, loadInCell, runInCell } from '../cell/run-in-cell.js';
import type { CellJob } from '../cell/run-in-cell.js';

/** A plug-in that passed static validation and has not run yet. */
export interface ProbeCandidate extends Pick<CellJob, 'image' | 'listener'> {
  readonly name: string;
  /** Whether the module exports `describe`. */
  readonly describes: boolean;
}

const refuse = (reason: string): DescriptionResult => ({ ok: false, reason });

const describeEnd = (step: string, end: RunEnd): DescriptionResult => {
  if (end.end === 'timeout') return refuse(`${step} timeout: it did not end within ${end.timeoutMs} ms`);
  if (end.end === 'returned') return refuse(`${step} failed: ${end.error ?? `status ${end.status}`}`);
  return refuse(`${step} failed: ${'message' in end ? end.message : end.end}`);
};

const probeIn = async (
  cell: Cell,
  { name, image, listener, describes }: ProbeCandidate,
): Promise<DescriptionResult> => {
  const failure = await loadInCell(cell, image);
  if (failure !== null) return describeEnd('instantiate', failure);
  if (!describes) return { ok: true, description: defaultDescription(name) };
  const timeoutMs = LOAD_TIMEOUT_MS;
  const input = new Uint8Array(0);
  const end = await runInCell(cell, { plugin: name, image, entry: 'describe', input, timeoutMs, listener });
  return end.end === 'returned' && end.status === 0 && end.error === null
    ? parseDescription(end.output, parseToolPolicy)
    : describeEnd('describe()', end);
};

/**
 * Probes modules in a cell that serves no calls: instantiates each and calls its `describe()`. A
 * module that hangs costs only that cell.
 */
export class PluginProbe {
  private cell: Cell | null;

  constructor(
    private readonly open: () => Promise<Cell>,
    first: Cell | null,
  ) {
    this.cell = first;
  }

  async probe(candidate: ProbeCandidate): Promise<DescriptionResult> {
    if (this.cell === null || !this.cell.isUsable()) {
      await this.close();
      this.cell = await this.open();
    }
    return probeIn(this.cell, candidate);
  }

  /** Returns the cell for further use, or null when it is unusable. `close` then ignores it. */
  release(): Cell | null {
    const released = this.cell?.isUsable() ? this.cell : null;
    if (released !== null) this.cell = null;
    return released;
  }

  async close(): Promise<void> {
    this.cell?.kill();
    await this.cell?.ended;
  }
}
