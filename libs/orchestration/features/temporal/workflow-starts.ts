import { sleep } from '@antiphon/kernel';

/** Delay before a workflow is started again while Temporal is unavailable, ms. */
const RESTART_MS = 1_000;

/**
 * Starts Temporal workflows under fixed ids in the background. While the server is unavailable, the
 * work waits in the log.
 */
export class WorkflowStarts<Ref> {
  private readonly stopping = new AbortController();
  private readonly starting = new Map<string, Promise<void>>();

  constructor(
    private readonly startWorkflow: (ref: Ref) => Promise<void>,
    private readonly onFailure: (ref: Ref, error: unknown) => void,
  ) {}

  start(id: string, ref: Ref): void {
    if (this.starting.has(id)) return;
    const started = this.startWithRetry(ref).finally(() => this.starting.delete(id));
    this.starting.set(id, started);
  }

  /** Resolves when no start request is in flight any more. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.starting.values());
  }

  private async startWithRetry(ref: Ref): Promise<void> {
    const { signal } = this.stopping;
    for (let isLogged = false; !signal.aborted; isLogged = true) {
      try {
        return await this.startWorkflow(ref);
      } catch (error) {
        if (!isLogged) this.onFailure(ref, error);
      }
      await sleep(RESTART_MS, signal).catch(() => undefined);
    }
  }
}
