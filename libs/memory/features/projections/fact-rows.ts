import { createHash } from 'node:crypto';
import type { Fact } from '@antiphon/contracts/memory';

/** Session keys as indexes know them. */
export const keyHashOf = (sessionKey: string): Buffer => createHash('sha256').update(sessionKey).digest();

export interface FactRow {
  readonly fact_id: string;
  readonly subject: string;
  readonly predicate: string;
  readonly object: string;
  readonly confidence: number;
  readonly learned_at: Date;
  readonly superseded_at: Date | null;
  readonly source_event_id: string;
}

export const FACT_COLUMNS =
  'fact_id, subject, predicate, object, confidence, learned_at, superseded_at, source_event_id';

export const toFact = (row: FactRow): Fact => ({
  factId: row.fact_id,
  subject: row.subject,
  predicate: row.predicate,
  object: row.object,
  confidence: row.confidence,
  learnedAt: row.learned_at.toISOString(),
  supersededAt: row.superseded_at?.toISOString() ?? null,
  sourceEventId: row.source_event_id,
});

/** A fact with the place where it was learned. */
export interface PlacedFact {
  readonly fact: Fact;
  readonly position: number;
  readonly ordinal: number;
}
