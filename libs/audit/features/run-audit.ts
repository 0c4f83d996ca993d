import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import { logRootWithin } from '@antiphon/event-store';
import { checkFits } from './audit-checkpoint.js';
import type { AuditCheckpoint, SignedAuditCheckpoint } from './audit-checkpoint.js';
import { createTally, firstOf, nowhere } from './audit-report.js';
import type { AuditReport, CheckReport } from './audit-report.js';
import { compareBalances } from './compare-balances/compare-balances.js';
import { passByPosition } from './pass-by-position/pass-by-position.js';
import { passByStream } from './pass-by-stream/pass-by-stream.js';
import type { TrustedRoots } from './pass-by-stream/signed-roots.js';
import { readLogBounds } from './read-log/log-bounds.js';
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

const NO_ROOTS: TrustedRoots = { publicKey: null, roots: [] };

const auditSnapshot = async (client: pg.ClientBase, options: AuditOptions): Promise<AuditResult> => {
  const { strictQuiesced: strict = false, projections = [], trusted = NO_ROOTS, since } = options;
  const { onProgress = () => undefined } = options;
  const begun = performance.now();
  const bounds = await readLogBounds(client);
  if (since) checkFits(since, bounds);
  onProgress('reading the log by event stream');
  const after = since?.position ?? null;
  const byStream = await passByStream(client, { bounds, strict, trusted: rootsFor(trusted, since), after });
  onProgress('reading the log by position');
  const { reports, book, events, state } = await passByPosition(client, bounds, strict, since);
  onProgress('comparing balances and projections');
  const checks = [
    ...reports,
    ...byStream,
    await compareBalances(client, book, strict),
    ...(await compareProjections(client, projections)),
  ];
  const ok = checks.every(({ violations }) => violations === 0);
  const root = await logRootWithin(client, '');
  return {
    report: {
      ...{ ok, headPosition: bounds.head, events, since: after, checks, first: firstOf(checks) },
      durationMs: Math.round(performance.now() - begun),
    },
    checkpoint: ok ? (at) => ({ ...root, kind: 'audit', at, state }) : null,
  };
};

/** As `auditLog`, for whoever asks only what was found. */
export const runAudit = async (options: AuditOptions): Promise<AuditReport> =>
  (await auditLog(options)).report;

/**
 * Proves from the log alone what the contract promises (§6), on one snapshot and with bounded memory: it reads the log
 * twice, by event stream and by position. Rejects only when the database cannot be read (`LOG.UNAVAILABLE`,
 * `DATABASE.…`), or with `AUDIT.BAD_CHECKPOINT`.
 */
export const auditLog = (options: AuditOptions): Promise<AuditResult> =>
  onSnapshot(options.pool, (client) => auditSnapshot(client, options));
