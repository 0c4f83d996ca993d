import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import { readLogRootInTransaction } from '@antiphon/event-store';
import { checkFits } from './audit-checkpoint.js';
import type { AuditCheckpoint, SignedAuditCheckpoint } from './audit-checkpoint.js';
import { createTally, firstOf, nowhere } from './audit-report.js';
import type { AuditReport, CheckReport } from './audit-report.js';
import { compareBalances } from './compare-balances/compare-balances.js';
import { passByPosition } from './pass-by-position/pass-by-position.js';
import { passByStream } from './pass-by-stream/pass-by-stream.js';
import type { TrustedRoots } from './pass-by-stream/signed-roots.js';
import { archivesAreWhole, archivesOf, forgetArchives, loadArchives } from './read-archives/load-archives.js';
import type { LoadedArchives } from './read-archives/load-archives.js';
import { readLogBounds } from './read-log/log-bounds.js';
import type { LogBounds } from './read-log/log-bounds.js';
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
  /** Roots that the log was signed with, read before the audit begins. */
  readonly trusted?: TrustedRoots;
  /** Goes on from here, instead of from the beginning: what was appended since, and the streams that it is in. */
  readonly since?: SignedAuditCheckpoint;
  /** Folder of the files that events have left to; default: the current one. */
  readonly archives?: string;
  /** Told what begins. */
  readonly onProgress?: (step: string) => void;
}

export interface AuditResult {
  readonly report: AuditReport;
  /** What the next audit can go on from; null when anything is broken. `at`: ISO 8601, UTC. */
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
    const tally = createTally(about, false);
    const { rows, differences } = await compare(client);
    tally.count(rows);
    tally.add(differences.map((text) => violation(nowhere(''), text)));
    reports.push(tally.report());
  }
  return reports;
};

/** Older roots cannot be made again where only what came after a checkpoint is read. */
const rootsFor = (
  { publicKey, roots }: TrustedRoots,
  since: SignedAuditCheckpoint | undefined,
): TrustedRoots =>
  since === undefined
    ? { publicKey, roots }
    : { publicKey, roots: [since, ...roots.filter(({ position }) => position >= since.position)] };

const reportOf = ({ ids, findings }: LoadedArchives): CheckReport => {
  const tally = createTally(archivesAreWhole, false);
  tally.count(ids.length);
  tally.add(findings);
  return tally.report();
};

const reportFrom = (
  found: Pick<AuditReport, 'headPosition' | 'events' | 'since' | 'checks'>,
  begun: number,
): AuditReport => ({
  ...found,
  ok: found.checks.every(({ violations }) => violations === 0),
  first: firstOf(found.checks),
  durationMs: Math.round(performance.now() - begun),
});

/** Half a log proves nothing: what is missing is all that is said. */
const unreadable = ({ head }: LogBounds, archived: CheckReport, begun: number): AuditResult => ({
  report: reportFrom({ headPosition: head, events: 0, since: null, checks: [archived] }, begun),
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
  const [begun, archived] = [performance.now(), reportOf(archives)];
  const bounds = { ...(await readLogBounds(client)), ...(archives.ids.length > 0 ? { base: 0 } : {}) };
  if (!archives.whole) return unreadable(bounds, archived, begun);
  if (since) checkFits(since, bounds);
  onProgress('reading the log by event stream');
  const after = since?.position ?? null;
  const byStream = await passByStream(client, { bounds, strict, trusted: rootsFor(trusted, since), after });
  onProgress('reading the log by position');
  const { reports, book, events, state } = await passByPosition(client, bounds, strict, since);
  onProgress('comparing balances and projections');
  const compared = [
    await compareBalances(client, book, strict),
    ...(await compareProjections(client, projections)),
  ];
  const checks = [...(archives.ids.length > 0 ? [archived] : []), ...reports, ...byStream, ...compared];
  const root = await readLogRootInTransaction(client, '');
  const report = reportFrom({ headPosition: bounds.head, events, since: after, checks }, begun);
  return { report, checkpoint: report.ok ? (at) => ({ ...root, kind: 'audit', at, state }) : null };
};

/** As `auditLog`, for whoever asks only what was found. */
export const runAudit = async (options: AuditOptions): Promise<AuditReport> =>
  (await auditLog(options)).report;

const isSameLog = async (client: pg.ClientBase, { ids }: LoadedArchives): Promise<boolean> =>
  (await archivesOf(client)).map(({ archive_id: id }) => id).join() === ids.join();

/** Null when events left, or came back, between reading the archives and the snapshot. */
const auditOnce = (options: AuditOptions): Promise<AuditResult | null> =>
  onSnapshot(
    options.pool,
    (client) => loadArchives(client, options.archives ?? '.'),
    async (client, archives) =>
      (await isSameLog(client, archives)) ? auditSnapshot(client, options, archives) : null,
    forgetArchives,
  );

/**
 * Proves from the log alone what the contract promises (§6), on one snapshot and with bounded memory: it reads the log
 * twice, by event stream and by position. Rejects only when the database cannot be read (`LOG.UNAVAILABLE`,
 * `DATABASE.…`), or with `AUDIT.BAD_CHECKPOINT`.
 */
export const auditLog = (options: AuditOptions): Promise<AuditResult> =>
  auditOnce(options).then((result) => result ?? auditLog(options));
