import type { PlanRuns } from './plan-runs.js';

/** Drives the runs of plans in one agent process. */
export class PlansRuntime {
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly runs: Pick<PlanRuns, 'run'>) {}

  start(): void {
    this.running = this.runs.run(this.stopping.signal);
  }

  /** Stops to drive runs, and releases the lease. Running turns continue elsewhere. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /**
   * Ends the loop of a process that a test has killed. Nothing that it waits for settles again.
   */
  halt(): void {
    this.stopping.abort();
  }
}
