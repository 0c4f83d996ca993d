/**
 * Admits calls to a number of places. Other calls wait in the order of their arrival within a
 * workspace. The workspaces take turns, so that many calls of one do not delay those of another.
 */
export class CallQueue {
  private running = 0;
  /** Waiting calls by workspace. The first workspace is the next one. */
  private readonly waiting = new Map<string, Set<() => void>>();

  constructor(private readonly places: number) {}

  /** True while no call has a place or waits for one. */
  get isIdle(): boolean {
    return this.running === 0;
  }

  /**
   * Waits for a place. Resolves with the function that frees it, which may be called again without
   * an effect. Rejects with the reason of the signal when that aborts first.
   */
  async enter(workspace: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.running < this.places) this.running += 1;
    else await this.wait(workspace, signal);
    let isFree = false;
    return () => {
      if (isFree) return;
      isFree = true;
      this.leave();
    };
  }

  private wait(workspace: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const abort = (): void => {
        this.remove(workspace, start);
        reject(signal.reason as Error);
      };
      const own = this.waiting.get(workspace) ?? new Set();
      own.add(start);
      this.waiting.set(workspace, own);
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** Gives the place of a call that has ended to the next one. */
  private leave(): void {
    const [next] = this.waiting;
    if (next === undefined) {
      this.running -= 1;
      return;
    }
    const [workspace, own] = next;
    const [start] = own;
    this.waiting.delete(workspace);
    if (start === undefined) return;
    own.delete(start);
    if (own.size > 0) this.waiting.set(workspace, own);
    start();
  }

  private remove(workspace: string, start: () => void): void {
    const own = this.waiting.get(workspace);
    own?.delete(start);
    if (own?.size === 0) this.waiting.delete(workspace);
  }
}
