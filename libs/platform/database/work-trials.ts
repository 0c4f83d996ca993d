import { PROCESS_LANE, rejected } from '@antiphon/kernel';
import type { TrialLane } from '@antiphon/kernel';
import type { WorkStarts } from './work-starts.js';

/** Number of lost processes after which work is given up. */
export const MAX_LOST_PROCESSES = 3;
/** Time after which work that did not end its process is not counted any more, ms. */
const TRIAL_MS = 10_000;

export interface TrialOptions {
  readonly lane?: TrialLane;
  readonly trialMs?: number;
  /** False if the first start of an item is not counted, because no process had taken it up before. */
  readonly countsFirst?: boolean;
}

const NOTHING = (): void => undefined;

/** Work that this process has taken up and that has not made progress yet. */
interface Trial {
  readonly kind: string;
  readonly item: string;
}

/**
 * Takes up work that an earlier process may have died of. Each start is counted before the work
 * begins, and the count is forgotten when the work ends, or has run for some seconds. A process
 * that stops in order releases its work, and is not counted.
 */
export class WorkTrials {
  private readonly lane: TrialLane;
  private readonly trialMs: number;
  /** Number of counted starts after which work is given up. */
  private readonly maxStarts: number;
  private readonly running = new Set<Trial>();

  constructor(
    private readonly starts: WorkStarts,
    { lane = PROCESS_LANE, trialMs = TRIAL_MS, countsFirst = true }: TrialOptions = {},
  ) {
    this.lane = lane;
    this.trialMs = trialMs;
    this.maxStarts = countsFirst ? MAX_LOST_PROCESSES : MAX_LOST_PROCESSES - 1;
  }

  /**
   * Runs work and counts its start. Work that calls `survive` has made progress. Throws
   * `WORK.PROCESS_LOST` (rejected) instead of starting work that lost too many processes.
   */
  async run<T>(kind: string, item: string, work: (survive: () => Promise<void>) => Promise<T>): Promise<T> {
    const lost = await this.starts.read(kind, item);
    if (lost >= this.maxStarts) {
      await this.starts.end(kind, item);
      throw rejected(
        'WORK.PROCESS_LOST',
        `${MAX_LOST_PROCESSES} processes that took up this work were lost, and the work may be the reason`,
        {
          data: { kind, item, lost },
          cause: { kind: 'work_processes_lost', processes: MAX_LOST_PROCESSES },
        },
      );
    }
    // The last start is made alone, so that no other work is counted with it.
    const leave = lost === this.maxStarts - 1 ? await this.lane.enter() : NOTHING;
    await this.starts.begin(kind, item);
    return this.runTrial({ kind, item }, work, () => this.starts.end(kind, item)).finally(leave);
  }

  /** Runs work that no process had before. Its start is not counted, but can be released. */
  async runFirst<T>(
    kind: string,
    item: string,
    work: (survive: () => Promise<void>) => Promise<T>,
  ): Promise<T> {
    return this.runTrial({ kind, item }, work, () => Promise.resolve());
  }

  /**
   * Releases all work that runs, for a process that stops in order. The counts of earlier lost
   * processes stay.
   */
  async release(): Promise<void> {
    const released = [...this.running];
    this.running.clear();
    await Promise.all(released.map(({ kind, item }) => this.starts.release(kind, item)));
  }

  private async runTrial<T>(
    trial: Trial,
    work: (survive: () => Promise<void>) => Promise<T>,
    forget: () => Promise<void>,
  ): Promise<T> {
    this.running.add(trial);
    const survive = async (): Promise<void> => {
      if (this.running.delete(trial)) await forget();
    };
    // A process that is blocked by the work runs no timer.
    const timer = setTimeout(() => void survive().catch(NOTHING), this.trialMs);
    try {
      return await work(survive);
    } finally {
      clearTimeout(timer);
      await survive().catch(NOTHING);
    }
  }
}
