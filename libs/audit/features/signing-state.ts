import type pg from 'pg';
import type { SigningReport } from './audit-report.js';

/** End of the signed part of the log. */
export interface SignedEnd {
  readonly position: number;
  /** ISO 8601. */
  readonly at: string;
}

/** Default: six intervals of the signer. */
const MAX_UNSIGNED_AGE_S = 3_600;

const AGE_SQL = `select extract(epoch from clock_timestamp() - recorded_at)::float8 as age from events
  where position > $1 order by position limit 1`;

/** Returns whether the log is signed, and whether an older event still waits for a root. */
export const describeSigning = async (
  client: pg.ClientBase,
  signed: SignedEnd | null,
  head: number,
  maxAgeS = MAX_UNSIGNED_AGE_S,
): Promise<Omit<SigningReport, 'begin'>> => {
  if (signed === null) return { state: 'unsigned', position: null, at: null, unsignedEvents: head };
  const { rows } = await client.query<{ age: number }>(AGE_SQL, [signed.position]);
  const age = rows[0]?.age ?? 0;
  const unsignedEvents = Math.max(0, head - signed.position);
  return { state: age > maxAgeS ? 'stale' : 'signed', ...signed, unsignedEvents };
};
