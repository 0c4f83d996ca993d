import { auditLog } from '@antiphon/audit-features';
import type { AuditReport, CheckReport, ProjectionAudit, Violation } from '@antiphon/audit-features';
import type { LiveAuditOptions } from '@antiphon/audit-features/live';
import { compareProjection } from '@antiphon/event-store';
import type { ProjectionComparison, RowDifference } from '@antiphon/event-store';
import { AppError, isAppError } from '@antiphon/kernel';
import type pg from 'pg';
import {
  archiveFolder,
  connectOperator,
  findEngines,
  withDatabase,
  type EngineAddresses,
} from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';
import { allProjections } from '../projections/run-projections.js';
import { findTrust, openCheckpoint } from './audit-trust.js';

export interface AuditCommandOptions {
  readonly strict?: boolean;
  readonly live?: boolean;
  readonly checkpoint?: string;
  readonly roots?: string;
  readonly key?: string;
  readonly archives?: string;
}

const renderCheck = ({ name, checked, counts, violations, open }: CheckReport): string => {
  const state = violations === 0 ? 'ok    ' : 'BROKEN';
  const more = [violations > 0 ? `${violations} broken` : '', open > 0 ? `${open} open` : ''].filter(Boolean);
  return `${state} ${name.padEnd(40)} ${checked} ${counts}${more.length > 0 ? ` (${more.join(', ')})` : ''}`;
};

const renderViolation = ({ check, message, eventId, streamId, streamVersion, position }: Violation): string =>
  `first broken: ${check}: ${message}\n  event ${eventId ?? '-'} at position ${position ?? '-'}, ${streamId ?? '-'}@${streamVersion ?? '-'}`;

const render = ({ checks, events, since, durationMs, first }: AuditReport): string =>
  [
    ...checks.map(renderCheck),
    `${events} events${since === null ? '' : ` since position ${since}`} in ${(durationMs / 1_000).toFixed(1)} s`,
    first === null ? 'everything holds' : renderViolation(first),
  ].join('\n');

const renderDifference = ({ table, key, kind, columns }: RowDifference): string => {
  const row = `${table} ${JSON.stringify(key)}`;
  if (kind === 'missing') return `the table lacks a row that the log produces: ${row}`;
  if (kind === 'extra') return `the table has a row that the log does not produce: ${row}`;
  return `the log produces another value of ${columns.join(', ')}: ${row}`;
};

const renderDifferences = ({ differing, first }: ProjectionComparison): readonly string[] => [
  ...first.map(renderDifference),
  ...Array.from({ length: differing - first.length }, () => 'one more row differs'),
];

/**
 * Returns true when part of the log cannot be read. The audit reports that itself, with the files'
 * names.
 */
const isIncomplete = (error: unknown): boolean =>
  isAppError(error) && (error.code === 'LOG.ARCHIVED' || error.code === 'LOG.ARCHIVE_DAMAGED');

/**
 * Creates the comparisons of every projection with the fold of the log and its archives, on the
 * audit's snapshot.
 */
const createProjectionAudits = (pool: pg.Pool, archives: string): readonly ProjectionAudit[] =>
  allProjections.map((definition) => ({
    name: definition.name,
    compare: async (client) => {
      // The audit's own connection is idle while another one compares.
      await client.query('set local idle_in_transaction_session_timeout = 0');
      const { rows } = await client.query<{ snapshot: string }>('select pg_export_snapshot() as snapshot');
      const snapshot = rows[0]?.snapshot ?? '';
      try {
        const compared = await compareProjection(pool, definition, { snapshot, archives });
        return { rows: compared.rows, differences: renderDifferences(compared) };
      } catch (error) {
        if (isIncomplete(error)) return { rows: 0, differences: [] };
        throw error;
      }
    },
  }));

/** Adds the checks of NATS and Temporal to a report of the log. */
const auditEngines = async (
  { nats, temporal }: EngineAddresses,
  options: Pick<LiveAuditOptions, 'pool' | 'strictQuiesced' | 'onProgress'>,
  report: AuditReport,
): Promise<AuditReport> => {
  const [{ auditLive, withLive }, { openTemporal }] = await Promise.all([
    import('@antiphon/audit-features/live'),
    import('@antiphon/temporal/link'),
  ]);
  const link = await connectOperator(nats, 'antiphon-audit');
  const temporalLink = openTemporal(temporal);
  try {
    const live = await auditLive({
      ...options,
      nats: link.connection,
      temporal: temporalLink,
      after: report.since,
    });
    return withLive(report, live);
  } finally {
    await Promise.all([link.drain(), temporalLink.close()]);
  }
};

/** Maps an unreachable database or engine to `CLI.UNREACHABLE`: neither a pass nor a violation. */
const toUnreachable = (error: unknown): unknown =>
  isAppError(error) && error.kind === 'transient'
    ? new AppError('transient', 'CLI.UNREACHABLE', `the audit cannot reach an engine: ${error.message}`, {
        cause: error,
      })
    : error;

/** Audits the log, prints the report and sets exit code 1 where a check fails. */
export const runAudit = async (context: CommandContext, options: AuditCommandOptions): Promise<void> => {
  const { output } = context;
  const engines = options.live ? findEngines(context) : null;
  // Read before the audit begins, so that no root is newer than the snapshot.
  const trusted = findTrust(options, context);
  const file = options.checkpoint === undefined ? null : openCheckpoint(options.checkpoint, options, context);
  const archives = archiveFolder(options.archives, context);
  const database = { applicationName: 'antiphon-audit', idleInTransactionMs: 60_000 };
  await withDatabase(context, database, async (pool) => {
    const common = {
      ...{ pool, archives, strictQuiesced: options.strict === true },
      onProgress: (step: string) => void (output.json || process.stderr.write(`${step} …\n`)),
    };
    const projections = file?.since ? [] : createProjectionAudits(pool, archives);
    const since = file?.since ? { since: file.since } : {};
    const logAudit = await auditLog({ ...common, trusted, projections, ...since });
    const report = engines === null ? logAudit.report : await auditEngines(engines, common, logAudit.report);
    if (logAudit.checkpoint) file?.write(logAudit.checkpoint(new Date().toISOString()));
    output.result(report, render(report));
    if (!report.ok) process.exitCode = 1;
  }).catch((error: unknown) => {
    throw toUnreachable(error);
  });
};
