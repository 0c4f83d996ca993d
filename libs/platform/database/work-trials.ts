import { createTrialLane, rejected } from '@antiphon/kernel';
import type { TrialLane } from '@antiphon/kernel';
import type { WorkStarts } from './work-starts.js';

/** Number of lost processes after which work is given up. */
export const MAX_LOST_PROCESSES = 3;
/** Time after which work that did not end its process is not counted any more, ms. */
const TRIAL_MS = 10_000;

export interface TrialOptions {
  readonly lane?: TrialLane;
  readonly trialMs?: number;
  /** False if the first start of an item is not counted, because it was taken up by no one before. */
  readonly countsFirst?: boolean;
}

const NOTHING = (): void => undefined;

/**
 * Takes up work that an earlier process may have died of. Each start is counted before the work
 * begins, and the count is forgotten when the work ends, or has run for some seconds.
 */
export class WorkTrials {
  private readonly lane: TrialLane;
  private readonly trialMs: number;
  /** Number of counted starts after which work is given up. */
  private readonly maxStarts: number;

  constructor(
    private readonly starts: WorkStarts,
    { lane = createTrialLane(), trialMs = TRIAL_MS, countsFirst = true }: TrialOptions = {},
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
        { data: { kind, item, lost } },
      );
    }
    // The last start is made alone, so that no other work is counted with it.
    const leave = lost === this.maxStarts - 1 ? await this.lane.enter() : NOTHING;
    await this.starts.begin(kind, item);
    let forgotten: Promise<void> | null = null;
    const survive = (): Promise<void> => (forgotten ??= this.starts.end(kind, item));
    // A process that is blocked by the work runs no timer.
    const timer = setTimeout(() => void survive().catch(NOTHING), this.trialMs);
    try {
      return await work(survive);
    } finally {
      clearTimeout(timer);
      leave();
      await survive().catch(NOTHING);
    }
  }
}
