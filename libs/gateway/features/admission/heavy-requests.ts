import type { Principal } from '@antiphon/contracts/identity';
import { exhausted, transient } from '@antiphon/kernel';

export interface HeavyLimits {
  /** Heavy requests of one credential, with its sessions, at once. */
  readonly perKey: number;
  readonly perWorkspace: number;
  /** Heavy requests of this gateway at once. Each holds one connection to the database at most. */
  readonly total: number;
  /** Requests that wait, of one credential and in all. */
  readonly waitingPerKey: number;
  readonly waiting: number;
  /** Longest wait, ms. */
  readonly waitMs: number;
}

export const HEAVY_LIMITS: HeavyLimits = {
  perKey: 2,
  perWorkspace: 4,
  total: 6,
  waitingPerKey: 256,
  waiting: 2_048,
  waitMs: 10_000,
};

/** Longest wait of a heavy request for small ones between two of its pages, ms. */
const YIELD_MS = 10;
/** Time after which a small request no longer delays heavy ones, ms: it may be a stream of events. */
const SMALL_MS = 250;
/** Seconds after which a refused client may try again. */
const RETRY_AFTER_S = 5;

type Caller = Pick<Principal, 'workspace' | 'caller'>;

interface Waiting {
  readonly workspace: string;
  readonly key: string;
  readonly start: () => void;
}

export interface EnterOptions {
  /** Ends the wait of a client that is gone. */
  readonly signal?: AbortSignal;
  /** True for work that waits without a deadline and is bounded otherwise. */
  readonly isPatient?: boolean;
}

/** Counts by name; a name without a count takes no memory. */
class Counts {
  readonly #counts = new Map<string, number>();

  get(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(name: string, change: 1 | -1): void {
    const count = this.get(name) + change;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }
}

/**
 * Admits heavy requests, few at once: of a credential, of a workspace and of this gateway. Others
 * wait in a bounded queue. The next one is of the workspace with the fewest running requests, so
 * that a queue of one workspace does not delay another.
 */
export class HeavyRequests {
  readonly #limits: HeavyLimits;
  readonly #running = new Counts();
  readonly #waitingOfKey = new Counts();
  readonly #queue = new Set<Waiting>();
  #total = 0;
  #small = 0;
  readonly #yielding = new Set<() => void>();

  constructor(limits: Partial<HeavyLimits> = {}) {
    this.#limits = { ...HEAVY_LIMITS, ...limits };
  }

  /** Numbers of running and waiting requests. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.#total, waiting: this.#queue.size };
  }

  /** Counts a small request. Returns the function that ends it. */
  beginSmall(): () => void {
    let isEnded = false;
    this.#small++;
    const end = (): void => {
      if (isEnded) return;
      isEnded = true;
      clearTimeout(late);
      this.#small--;
      if (this.#small === 0) for (const resume of [...this.#yielding]) resume();
    };
    const late = setTimeout(end, SMALL_MS).unref();
    return end;
  }

  /**
   * Waits until no small request runs, 10 ms at most. A heavy request calls it between its pages,
   * because all requests share one loop.
   */
  yieldToSmall(): Promise<void> {
    if (this.#small === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const resume = (): void => {
        clearTimeout(deadline);
        this.#yielding.delete(resume);
        resolve();
      };
      const deadline = setTimeout(resume, YIELD_MS);
      this.#yielding.add(resume);
    });
  }

  /** Runs work as one heavy request of a caller. */
  async run<T>(caller: Caller, work: () => Promise<T>, options: EnterOptions = {}): Promise<T> {
    const leave = await this.enter(caller, options);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /**
   * Resolves once a heavy request of a caller may begin, with the function that ends it. Rejects
   * with `GATEWAY.TOO_MANY_HEAVY_REQUESTS` if too many wait, and with `GATEWAY.BUSY` after the
   * deadline.
   */
  async enter({ workspace, caller }: Caller, options: EnterOptions = {}): Promise<() => void> {
    // No id of a workspace has a slash.
    const place = { workspace, key: `${workspace}/${caller}` };
    if (!this.#mayBegin(place)) await this.#wait(place, options);
    else this.#begin(place);
    let isEnded = false;
    return () => {
      if (!isEnded) this.#end(place);
      isEnded = true;
    };
  }

  #mayBegin({ workspace, key }: Omit<Waiting, 'start'>): boolean {
    const { perKey, perWorkspace, total } = this.#limits;
    return (
      this.#total < total && this.#running.get(workspace) < perWorkspace && this.#running.get(key) < perKey
    );
  }

  #begin({ workspace, key }: Omit<Waiting, 'start'>): void {
    this.#total++;
    this.#running.add(workspace, 1);
    this.#running.add(key, 1);
  }

  #end({ workspace, key }: Omit<Waiting, 'start'>): void {
    this.#total--;
    this.#running.add(workspace, -1);
    this.#running.add(key, -1);
    this.#startNext();
  }

  async #wait(place: Omit<Waiting, 'start'>, { signal, isPatient = false }: EnterOptions): Promise<void> {
    if (!isPatient) this.#requireRoom(place.key);
    await new Promise<void>((resolve, reject) => {
      const leaveQueue = (): void => {
        clearTimeout(deadline);
        signal?.removeEventListener('abort', giveUp);
        this.#queue.delete(waiting);
        if (!isPatient) this.#waitingOfKey.add(place.key, -1);
      };
      const giveUp = (): void => {
        leaveQueue();
        const message = 'heavy requests of this credential, workspace or gateway took too long: try again';
        reject(transient('GATEWAY.BUSY', message, { data: { retryAfterSeconds: RETRY_AFTER_S } }));
      };
      const start = (): void => {
        leaveQueue();
        this.#begin(place);
        resolve();
      };
      const waiting: Waiting = { ...place, start };
      const deadline = isPatient ? undefined : setTimeout(giveUp, this.#limits.waitMs).unref();
      this.#queue.add(waiting);
      if (!isPatient) this.#waitingOfKey.add(place.key, 1);
      if (signal?.aborted === true) giveUp();
      else signal?.addEventListener('abort', giveUp);
    });
  }

  #requireRoom(key: string): void {
    const { waitingPerKey, waiting } = this.#limits;
    if (this.#waitingOfKey.get(key) < waitingPerKey && this.#queue.size < waiting) return;
    const message = 'too many heavy requests wait: send fewer at once';
    const data = { retryAfterSeconds: RETRY_AFTER_S };
    throw exhausted('GATEWAY.TOO_MANY_HEAVY_REQUESTS', message, { data });
  }

  #startNext(): void {
    let next: Waiting | undefined;
    for (const waiting of this.#queue) {
      if (!this.#mayBegin(waiting)) continue;
      if (!next || this.#running.get(waiting.workspace) < this.#running.get(next.workspace)) next = waiting;
    }
    next?.start();
  }
}
