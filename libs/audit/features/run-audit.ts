import type pg from 'pg';
import { TAKEN_UP_WITHIN_MS, violation } from '@antiphon/audit-domain';
import { readLogRootInTransaction, readStoredRoots } from '@antiphon/event-store';
import { type AuditCheckpoint, requireSameHistory, type SignedAuditCheckpoint } from './audit-checkpoint.js';
import { type AuditReport, type CheckReport, findFirst, nowhere, Tally } from './audit-report.js';
import { compareBalances } from './pass-by-position/compare-balances.js';
import { compareBytes } from './pass-by-position/compare-bytes.js';
import { compareChats } from './pass-by-position/compare-chats.js';
import { passByPosition } from './pass-by-position/pass-by-position.js';
import { passByStream } from './pass-by-stream/pass-by-stream.js';
import {
  archivesAreWhole,
  isSameLog,
  loadArchives,
  type LoadedArchives,
  unloadArchives,
} from './read-log/load-archives.js';
import { checkLogBase } from './read-log/log-base.js';
import { type LogBounds, readLogBounds, runOnSnapshot } from './read-log/read-log.js';
import { NO_ROOTS, RootsAudit, type TrustedRoots } from './signed-roots.js';
import { checkRootsBegin } from './roots-begin.js';
import { describeSigning } from './signing-state.js';

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
  /** Signed roots of the log, read before the audit begins. Those of the table are added. */
  readonly trusted?: TrustedRoots;
  /** Age in seconds from which an event that no root covers makes the signing stale. */
  readonly maxUnsignedAgeS?: number;
  /** Starts at this checkpoint: checks only later events, and the streams that contain them. */
  readonly since?: SignedAuditCheckpoint;
  /**
   * Time of the audit of a running system. Default: the time of the newest event, since turns of a
   * stopped one wait for its start.
   */
  readonly now?: Date;
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

/** Adds the roots of the table, and the checkpoint as a root at its position. */
const collectRoots = async (
  client: pg.ClientBase,
  trusted: TrustedRoots,
  since: SignedAuditCheckpoint | undefined,
): Promise<TrustedRoots> => {
  const stored = await readStoredRoots(client);
  return { ...trusted, roots: [...(since ? [since] : []), ...trusted.roots, ...stored] };
};

/** Returns the time since which a process must have taken up every turn that may continue. */
const readTakenUpSince = async (client: pg.ClientBase, now: Date | undefined): Promise<string> => {
  const { rows } = await client.query<{ at: Date }>(
    'select recorded_at as at from events order by position desc limit 1',
  );
  const at = now ?? rows[0]?.at ?? new Date(0);
  return new Date(at.getTime() - TAKEN_UP_WITHIN_MS).toISOString();
};

const reportArchives = ({ ids, findings }: LoadedArchives): CheckReport => {
  const tally = new Tally(archivesAreWhole, false);
  tally.count(ids.length);
  tally.add(findings);
  return tally.report();
};

const createReport = (
  found: Pick<AuditReport, 'headPosition' | 'events' | 'since' | 'checks' | 'signing'>,
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
  checks: readonly CheckReport[],
  startedAt: number,
): AuditResult => ({
  report: createReport({ headPosition: head, events: 0, since: null, checks, signing: null }, startedAt),
  checkpoint: null,
});

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
  const base = await checkLogBase(client);
  if (!archives.isComplete) return createIncompleteResult(bounds, [base, archived], startedAt);
  if (since) requireSameHistory(since, bounds);
  onProgress('reading the log by event stream');
  const after = since?.position ?? null;
  const start = since ? { position: since.position, trees: since.state.trees ?? [] } : null;
  const roots = new RootsAudit(await collectRoots(client, trusted, since), bounds, start);
  await roots.prepare(client);
  const takenUpSince = await readTakenUpSince(client, options.now);
  const byStream = await passByStream(client, { strict, roots, after, takenUpSince });
  onProgress('reading the log by position');
  const { reports, book, events, state } = await passByPosition(client, bounds, strict, roots, since);
  onProgress('comparing balances and projections');
  const compared = [
    await compareBalances(client, book, strict),
    await compareBytes(client, after),
    await compareChats(client, after),
    ...(await compareProjections(client, projections)),
  ];
  // A checkpoint vouches for the log up to its position, as a root does.
  const needsRoots = trusted.publicKeys.length > 0 && since === undefined;
  const known = { trusted: roots.trusted, needsRoots, head: bounds.head };
  const begins = await checkRootsBegin(client, known);
  const checks = [
    base,
    ...(hasArchives ? [archived] : []),
    ...reports,
    ...byStream,
    roots.report(),
    begins.report,
    ...compared,
  ];
  const signedEnd = await describeSigning(client, roots.signedEnd(), bounds.head, options.maxUnsignedAgeS);
  const signing = { ...signedEnd, begin: begins.begin };
  const root = await readLogRootInTransaction(client, '');
  const report = createReport(
    { headPosition: bounds.head, events, since: after, checks, signing },
    startedAt,
  );
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
