import type { HandleEvents } from '../projection-source.js';

export interface ProjectionTable {
  readonly name: string;
  /** SQL over the table's columns: rows that say nothing, which a fold of the log need not make. */
  readonly ignoredRows?: string;
}

/** A projection of the log: what its service runs, and what a rebuild or a comparison folds anew. */
export interface ProjectionDefinition {
  /** Names the checkpoint. */
  readonly name: string;
  /** Whose projection it is. */
  readonly service: string;
  readonly categories: readonly string[];
  /** Every table that `handle` writes to. Each has a primary key, which names a row in what is reported. */
  readonly tables: readonly ProjectionTable[];
  readonly handle: HandleEvents;
  /** Its rows are written by the transactions that append: it is always at the log's head, and has no checkpoint. */
  readonly writtenWithAppend?: boolean;
}
