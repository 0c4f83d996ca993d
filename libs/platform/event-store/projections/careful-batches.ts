import type { WorkStarts } from '@antiphon/database';
import { PROCESS_LANE } from '@antiphon/kernel';
import type { RecordedEvent } from '../event-store.port.js';
import type { BatchResult } from './projection-batch.js';
import type { ProjectionSnapshot } from './projection-snapshot.js';

/** Kinds of counted work: a start of a projection at a checkpoint, and the application of an event. */
const START = 'projection';
const EVENT = 'projection-event';
/** Number of starts at a checkpoint from which on its next events are applied one at a time. */
const CAREFUL_FROM = 2;
/**
 * Number of processes that an event which is applied alone may lose. The process before them was
 * lost at the whole batch. Once could be a coincidence: other work may have ended the process.
 */
const MAX_LOST_ALONE = 2;

/**
 * Age of a count of an event from which on its process is lost, ms. Several processes start at one
 * checkpoint, and one that lives applies the event within this time.
 */
const LOST_AFTER_MS = 2_000;

type Apply = (snapshot: ProjectionSnapshot) => Promise<BatchResult['state']>;
type Park = (
  snapshot: ProjectionSnapshot,
  event: RecordedEvent,
  lost: number,
) => Promise<BatchResult['state']>;

/**
 * Finds the event that ends each process which applies it. A projection may start again and again
 * at one checkpoint. It applies the events after it one at a time then, and counts each before.
 */
export class CarefulBatches {
  #starts = 0;
  #startItem: string | null = null;
  /** Last position of the batch in which an earlier process was lost; null before it is known. */
  #upTo: number | null = null;
  /** Event that this process has counted, and that is no lost one. */
  #counted: string | null = null;

  constructor(
    private readonly counts: WorkStarts,
    private readonly name: string,
    private readonly lane = PROCESS_LANE,
  ) {}

  /** Counts a start of the projection at its checkpoint. */
  async begin(checkpoint: number): Promise<void> {
    this.#startItem = `${this.name}@${checkpoint}`;
    this.#starts = await this.counts.begin(START, this.#startItem);
  }

  /** Takes back what this process has counted, because it stops in order. */
  async release(): Promise<void> {
    const [start, event] = [this.#startItem, this.#counted];
    this.#startItem = null;
    this.#counted = null;
    if (event !== null) await this.counts.release(EVENT, event);
    if (start !== null) await this.counts.release(START, start);
  }

  /** Forgets the start, after a batch was applied. */
  async end(): Promise<void> {
    const item = this.#startItem;
    this.#startItem = null;
    if (item !== null) await this.counts.end(START, item);
  }

  /** Returns true while events are applied one at a time. */
  isCareful({ position, upTo }: ProjectionSnapshot): boolean {
    if (this.#startItem === null || this.#starts < CAREFUL_FROM) return false;
    this.#upTo ??= upTo;
    return position < this.#upTo;
  }

  /** Applies the first event of a snapshot, or parks its stream. */
  async applyFirst(snapshot: ProjectionSnapshot, apply: Apply, park: Park): Promise<BatchResult['state']> {
    const [event] = snapshot.events;
    if (!event) return apply(snapshot);
    const first = { ...snapshot, events: [event], upTo: event.position };
    const item = `${this.name}@${event.position}`;
    // An event that failed in this process was counted by it.
    const lost = this.#counted === item ? 0 : await this.counts.read(EVENT, item, LOST_AFTER_MS);
    if (lost >= MAX_LOST_ALONE) {
      const state = await park(first, event, lost + 1);
      if (state !== 'contended') await this.counts.end(EVENT, item);
      return state;
    }
    const leave = await this.lane.enter();
    try {
      if (this.#counted !== item) await this.counts.begin(EVENT, item);
      this.#counted = item;
      const state = await apply(first);
      if (this.#counted !== null) await this.counts.end(EVENT, item);
      this.#counted = null;
      return state;
    } finally {
      leave();
    }
  }
}
