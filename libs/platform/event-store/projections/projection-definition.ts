import type pg from 'pg';
import type { RecordedEvent } from '../event-store.port.js';

/**
 * Applies events in the transaction that moves the checkpoint: in order of position, and each once
 * in the transactions that commit. It may run in a transaction that is rolled back.
 */
export type HandleEvents = (client: pg.ClientBase, events: readonly RecordedEvent[]) => Promise<void>;

/** A projection as its runner and its retries see it. */
export interface ProjectionSource {
  readonly pool: pg.Pool;
  /** Name of the checkpoint; a new name reads the log from its beginning. */
  readonly name: string;
  readonly categories: readonly string[];
  readonly handle: HandleEvents;
  /** Maximum number of events in one transaction. */
  readonly batchSize: number;
  /** Delays before the retries of an event that failed, ms; default `RETRY_DELAYS_MS`. */
  readonly retryDelaysMs?: readonly number[] | undefined;
}

export interface ProjectionTable {
  readonly name: string;
  /** SQL condition over the table's columns: empty rows that the log need not produce. */
  readonly ignoredRows?: string;
  /**
   * Column with the position of a row's event, if rows are only inserted. Reads of the past then
   * take the live rows up to their position, and a snapshot has none of them.
   */
  readonly positionColumn?: string;
  /** SQL condition over the table's columns: rows that later events may change or read. */
  readonly snapshotRows?: string;
}

/** A projection of the log. Its service runs it; a rebuild or a comparison folds it again. */
export interface ProjectionDefinition {
  /** Name of the checkpoint. */
  readonly name: string;
  /** Service that owns the projection. */
  readonly service: string;
  readonly categories: readonly string[];
  /** Types of the categories that change no row. Folds for reads of the past leave them out. */
  readonly unusedTypes?: readonly string[];
  /** Every table that `handle` writes. Each has a primary key, which reports use to name a row. */
  readonly tables: readonly ProjectionTable[];
  readonly handle: HandleEvents;
  /**
   * True if the transactions that append write the rows too. Such a projection is always at the
   * head of the log and has no checkpoint.
   */
  readonly writtenWithAppend?: boolean;
}
