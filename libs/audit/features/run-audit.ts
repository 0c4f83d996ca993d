import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import { readLogRootInTransaction } from '@antiphon/event-store';
import { type AuditCheckpoint, requireSameHistory, type SignedAuditCheckpoint } from './audit-checkpoint.js';
import { type AuditReport, type CheckReport, findFirst, nowhere, Tally } from './audit-report.js';
import { compareBalances } from './pass-by-position/compare-balances.js';
import { passByPosition } from './pass-by-position/pass-by-position.js';
import { passByStream } from './pass-by-stream/pass-by-stream.js';
import type { TrustedRoots } from './pass-by-stream/signed-roots.js';
import {
  archivesAreWhole,
  isSameLog,
  loadArchives,
  type LoadedArchives,
  unloadArchives,
} from './read-log/load-archives.js';
import { type LogBounds, readLogBounds, runOnSnapshot } from './read-log/read-log.js';

/** A projection that its context compares with the log, on the audit's snapshot. */
export interface ProjectionAudit {
  readonly name: string;
  /** Returns the number of compared rows, and one sentence for each difference from the log. */
  compare(client: pg.ClientBase): Promise<{ readonly rows: number; readonly differences: readonly string[] }>;
}

export interface AuditOptions {
  /** Connects as the superuser, or as `antiphon_reader`. */
  readonly pool: pg.Pool;
  /** Counts open findings as violations. Use it when no work is in progress. */
  readonly strictQuiesced?: boolean;
  readonly projections?: readonly ProjectionAudit[];
  /** Signed roots of the log, read before the audit begins. */
  readonly trusted?: TrustedRoots;
  /** Starts at this checkpoint: checks only later events, and the streams that contain them. */
  readonly since?: SignedAuditCheckpoint;
  /** Folder of the archive files; default is the current folder. */
  readonly archives?: string;
  /** Called with the name of each step at its start. */
  readonly onProgress?: (step: string) => void;
}

export interface AuditResult {
  readonly report: AuditReport;
  /** Creates the checkpoint for a later audit (`at` in ISO 8601, UTC); null after a violation. */
  readonly checkpoint: ((at: string) => AuditCheckpoint) | null;
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
    const tally = new Tally(about, false);
    const { rows, differences } = await compare(client);
    tally.count(rows);
    tally.add(differences.map((text) => violation(nowhere(''), text)));
    reports.push(tally.report());
  }
  return reports;
};

/** Drops roots before the checkpoint, which cannot be computed again from later events alone. */
const selectRoots = (
  { publicKey, roots }: TrustedRoots,
  since: SignedAuditCheckpoint | undefined,
): TrustedRoots =>
  since === undefined
    ? { publicKey, roots }
    : { publicKey, roots: [since, ...roots.filter(({ position }) => position >= since.position)] };

const reportArchives = ({ ids, findings }: LoadedArchives): CheckReport => {
  const tally = new Tally(archivesAreWhole, false);
  tally.count(ids.length);
  tally.add(findings);
  return tally.report();
};

const createReport = (
  found: Pick<AuditReport, 'headPosition' | 'events' | 'since' | 'checks'>,
  startedAt: number,
): AuditReport => ({
  ...found,
  ok: found.checks.every(({ violations }) => violations === 0),
  first: findFirst(found.checks),
  durationMs: Math.round(performance.now() - startedAt),
});

/** Creates the result for a log with unreadable archives. The other checks need the whole log. */
const createIncompleteResult = (
  { head }: LogBounds,
  archived: CheckReport,
  startedAt: number,
): AuditResult => ({
  report: createReport({ headPosition: head, events: 0, since: null, checks: [archived] }, startedAt),
  checkpoint: null,
});

const NO_ROOTS: TrustedRoots = { publicKey: null, roots: [] };

const auditSnapshot = async (
  client: pg.ClientBase,
  options: AuditOptions,
  archives: LoadedArchives,
): Promise<AuditResult> => {
  const { strictQuiesced: strict = false, projections = [], trusted = NO_ROOTS, since } = options;
  const { onProgress = () => undefined } = options;
  const [startedAt, archived] = [performance.now(), reportArchives(archives)];
  const hasArchives = archives.ids.length > 0;
  const logBounds = await readLogBounds(client);
  const bounds = hasArchives ? { ...logBounds, base: 0 } : logBounds;
  if (!archives.isComplete) return createIncompleteResult(bounds, archived, startedAt);
  if (since) requireSameHistory(since, bounds);
  onProgress('reading the log by event stream');
  const after = since?.position ?? null;
  const roots = selectRoots(trusted, since);
  const byStream = await passByStream(client, { bounds, strict, trusted: roots, after });
  onProgress('reading the log by position');
  const { reports, book, events, state } = await passByPosition(client, bounds, strict, since);
  onProgress('comparing balances and projections');
  const compared = [
    await compareBalances(client, book, strict),
    ...(await compareProjections(client, projections)),
  ];
  const checks = [...(hasArchives ? [archived] : []), ...reports, ...byStream, ...compared];
  const root = await readLogRootInTransaction(client, '');
  const report = createReport({ headPosition: bounds.head, events, since: after, checks }, startedAt);
  return { report, checkpoint: report.ok ? (at) => ({ ...root, kind: 'audit', at, state }) : null };
};

/** Runs `auditLog` and returns only its report. */
export const runAudit = async (options: AuditOptions): Promise<AuditReport> =>
  (await auditLog(options)).report;

/**
 * Returns null when events were archived or restored between loading the archives and the snapshot.
 */
const auditOnce = (options: AuditOptions): Promise<AuditResult | null> =>
  runOnSnapshot(
    options.pool,
    (client) => loadArchives(client, options.archives ?? '.'),
    async (client, archives) =>
      (await isSameLog(client, archives)) ? auditSnapshot(client, options, archives) : null,
    unloadArchives,
  );

/**
 * Proves the promises of docs/contract.md §6 from the log alone, on one snapshot and with bounded
 * memory. Reads the log twice, by event stream and by position. Rejects with `LOG.UNAVAILABLE` or
 * `DATABASE.…` when the database cannot be read, and with `AUDIT.BAD_CHECKPOINT`.
 */
export const auditLog = (options: AuditOptions): Promise<AuditResult> =>
  auditOnce(options).then((result) => result ?? auditLog(options));
