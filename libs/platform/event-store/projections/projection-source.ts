import type pg from 'pg';
import type { RecordedEvent } from '../event-store.port.js';

/** Applies events, in order of position and each once, in the transaction that moves the checkpoint. */
export type HandleEvents = (client: pg.ClientBase, events: readonly RecordedEvent[]) => Promise<void>;

export interface ProjectionSource {
  readonly pool: pg.Pool;
  /** Names the checkpoint; a new name reads the log from its beginning. */
  readonly name: string;
  readonly categories: readonly string[];
  readonly handle: HandleEvents;
  /** Events of one transaction. */
  readonly batchSize: number;
  /** Waits before each further try of an event that cannot be handled, in ms; default `RETRY_DELAYS_MS`. */
  readonly retryDelaysMs?: readonly number[] | undefined;
}
