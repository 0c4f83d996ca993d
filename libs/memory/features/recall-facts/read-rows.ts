import type pg from 'pg';
import type { Fact } from '@antiphon/contracts/memory';
import { translateDatabaseError } from '@antiphon/database';
import { keyHashOf, toFact } from '../projections/fact-rows.js';
import type { FactRow } from '../projections/fact-rows.js';
import { PROJECTION_NAME } from '../projections/session-memory.events.js';
import { RECALL_SQL } from './recall-sql.js';

/** What the rows say at one moment. */
export interface RememberedRows {
  /** Position of the log up to which the rows are complete. */
  readonly checkpoint: number;
  /** Of the session's event stream; 0 when the rows do not know the session yet. */
  readonly version: number;
  readonly sessionKey: string | null;
  /** In the order in which they were learned. */
  readonly facts: readonly Fact[];
}

export interface SessionQuestion {
  readonly workspace: string;
  readonly sessionId: string;
  /** Null: as the session's row says. */
  readonly sessionKey: string | null;
  readonly includeSuperseded: boolean;
}

type NoFact = { readonly [key in keyof FactRow]: null };
type RecallRow = {
  readonly checkpoint: string;
  readonly session_version: string | null;
  readonly session_key: string | null;
} & (FactRow | NoFact);

export const readRows = async (pool: pg.Pool, question: SessionQuestion): Promise<RememberedRows> => {
  const { workspace, sessionId, sessionKey, includeSuperseded } = question;
  const hash = sessionKey === null ? null : keyHashOf(sessionKey);
  const values = [workspace, sessionId, hash, includeSuperseded, PROJECTION_NAME];
  const { rows } = await pool
    .query<RecallRow>({ name: 'memory_recall', text: RECALL_SQL, values })
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  return {
    checkpoint: Number(rows[0]?.checkpoint ?? 0),
    version: Number(rows[0]?.session_version ?? 0),
    sessionKey: rows[0]?.session_key ?? null,
    facts: rows.flatMap((row) => (row.fact_id === null ? [] : [toFact(row)])),
  };
};
