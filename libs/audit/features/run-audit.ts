import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import { createTally, firstOf, nowhere } from './audit-report.js';
import type { AuditReport, CheckReport } from './audit-report.js';
import { compareBalances } from './compare-balances/compare-balances.js';
import { passByPosition } from './pass-by-position/pass-by-position.js';
import { passByStream } from './pass-by-stream/pass-by-stream.js';
import { onSnapshot } from './read-log/snapshot.js';

/** How a context lets its projection be held against the log, on the audit's snapshot. */
export interface ProjectionAudit {
  readonly name: string;
  /** Answers how many rows were compared and, in one sentence each, what differs from the fold of the log. */
  compare(client: pg.ClientBase): Promise<{ readonly rows: number; readonly differences: readonly string[] }>;
}

export interface AuditOptions {
  /** Connects as the superuser, or as `antiphon_reader`. */
  readonly pool: pg.Pool;
  /** Nothing is at work: what is open counts as broken. */
  readonly strictQuiesced?: boolean;
  readonly projections?: readonly ProjectionAudit[];
  /** Told what begins. */
  readonly onProgress?: (step: string) => void;
}

const compareProjections = async (
  client: pg.ClientBase,
  projections: readonly ProjectionAudit[],
): Promise<CheckReport[]> => {
  const reports: CheckReport[] = [];
  for (const { name, compare } of projections) {
    const about = {
      name: `projection-equals-the-log:${name}`,
      about: `every row of ${name} is the fold of the log`,
      counts: 'rows',
    };
    const tally = createTally(about, false);
    const { rows, differences } = await compare(client);
    tally.count(rows);
    tally.add(differences.map((text) => violation(nowhere(''), text)));
    reports.push(tally.report());
  }
  return reports;
};

/**
 * Proves from the log alone what the contract promises (§6), on one snapshot and with bounded memory: it reads the log
 * twice, by event stream and by position. Rejects only when the database cannot be read (`LOG.UNAVAILABLE`, `DATABASE.…`).
 */
export const runAudit = async ({
  pool,
  strictQuiesced = false,
  projections = [],
  onProgress = () => undefined,
}: AuditOptions): Promise<AuditReport> => {
  const begun = performance.now();
  return onSnapshot(pool, async (client) => {
    onProgress('reading the log by event stream');
    const byStream = await passByStream(client, strictQuiesced);
    onProgress('reading the log by position');
    const { reports, book, events, headPosition } = await passByPosition(client, strictQuiesced);
    onProgress('comparing balances and projections');
    const checks = [
      ...reports,
      ...byStream,
      await compareBalances(client, book, strictQuiesced),
      ...(await compareProjections(client, projections)),
    ];
    const first = firstOf(checks);
    const ok = checks.every(({ violations }) => violations === 0);
    return { ok, headPosition, events, checks, first, durationMs: Math.round(performance.now() - begun) };
  });
};
