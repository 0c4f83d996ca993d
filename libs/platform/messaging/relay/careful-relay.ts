import type { WorkStarts } from '@antiphon/database';

/** Kind of the counted starts of the relay, by the position that it had. */
const RELAY = 'relay';
/** Number of starts at a position from which on events are published one at a time. */
const CAREFUL_FROM = 2;
/** Number of starts from which on the next event is published without its data. */
const OMIT_FROM = 3;

/** How the next events are published. */
export interface RelayPage {
  readonly limit: number;
  /** True for an event that ended the processes which published it: consumers read it in the log. */
  readonly omits: boolean;
}

/**
 * Finds the event that ends each process which publishes it. A relay that starts again and again at
 * one position publishes the events after it one at a time, and counts each.
 */
export class CarefulRelay {
  /** Number of events that are still published one at a time. */
  #left = 0;
  #isNew = true;
  #counted: string | null = null;

  constructor(
    private readonly starts: WorkStarts | undefined,
    private readonly maxInFlight: number,
  ) {}

  /** Begins a term of this process, in which nothing was published yet. */
  beginTerm(): void {
    this.#isNew = true;
    this.#left = 0;
  }

  /** Returns how to publish the events after a position, and counts it if they may end the process. */
  async beginPage(position: number): Promise<RelayPage> {
    if (!this.starts || (!this.#isNew && this.#left === 0)) return { limit: this.maxInFlight, omits: false };
    this.#counted = String(position);
    const starts = await this.starts.begin(RELAY, this.#counted);
    if (this.#isNew && starts >= CAREFUL_FROM) this.#left = this.maxInFlight;
    this.#isNew = false;
    return { limit: this.#left > 0 ? 1 : this.maxInFlight, omits: starts >= OMIT_FROM };
  }

  /**
   * Takes the count of a page back that failed in a process which lives, or that a process leaves
   * which stops in order.
   */
  async releasePage(): Promise<void> {
    const counted = this.#counted;
    this.#counted = null;
    if (counted !== null) await this.starts?.release(RELAY, counted);
  }

  /** Forgets the count after a number of events were published. With none, nothing is suspect. */
  async endPage(published: number): Promise<void> {
    const counted = this.#counted;
    this.#counted = null;
    this.#left = published === 0 ? 0 : Math.max(0, this.#left - published);
    if (counted !== null) await this.starts?.end(RELAY, counted);
  }
}
