import { compareSnapshots } from '@antiphon/agent-features/projections';
import { auditLog } from '@antiphon/audit-features';
import type {
  AuditReport,
  CheckReport,
  ProjectionAudit,
  SigningReport,
  Violation,
} from '@antiphon/audit-features';
import type { LiveAuditOptions } from '@antiphon/audit-features/live';
import { compareProjection } from '@antiphon/event-store';
import type { ProjectionComparison, RowDifference } from '@antiphon/event-store';
import { AppError, invalid, isAppError } from '@antiphon/kernel';
import type { AuditResult } from '@antiphon/contracts/keys';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import {
  archiveFolder,
  connectOperator,
  filesFolderOf,
  findEngines,
  withDatabase,
  type EngineAddresses,
} from '../connection/stack-locations.js';
import { findReportSigner } from '../connection/signing-keys.js';
import type { SignReport } from '../connection/signing-keys.js';
import { type CommandContext, EXIT } from '../output.js';
import { allProjections } from '../projections/run-projections.js';
import { findTrust, openCheckpoint } from './audit-trust.js';

export interface AuditCommandOptions {
  readonly strict?: boolean;
  readonly live?: boolean;
  /** Sends the result to the gateway. */
  readonly record?: boolean;
  readonly checkpoint?: string;
  readonly roots?: string;
  readonly key?: string;
  readonly archives?: string;
  /** Seconds. */
  readonly maxUnsignedAge?: string;
}

const renderCheck = ({ name, checked, counts, violations, open }: CheckReport): string => {
  const state = violations === 0 ? 'ok    ' : 'BROKEN';
  const more = [violations > 0 ? `${violations} broken` : '', open > 0 ? `${open} open` : ''].filter(Boolean);
  return `${state} ${name.padEnd(40)} ${checked} ${counts}${more.length > 0 ? ` (${more.join(', ')})` : ''}`;
};

const renderViolation = ({ check, message, eventId, streamId, streamVersion, position }: Violation): string =>
  `first broken: ${check}: ${message}\n  event ${eventId ?? '-'} at position ${position ?? '-'}, ${streamId ?? '-'}@${streamVersion ?? '-'}`;

/** Actions for a log whose checks pass without the proof of a recent signature. */
const SIGNING_ACTIONS = {
  unsigned:
    'UNSIGNED: no signed root covers this log, so its owner could have rewritten it. What to do: mount a signing key (docs/operations.md), and name copies of the roots and the public key with --roots and --key',
  stale:
    'STALE: old events are in no signed root. What to do: look for `log root refused` or `log root not signed` in the log of the memory service',
} as const;

const renderBegin = (begin: SigningReport['begin']): string => {
  if (begin === null)
    return 'the first record of the roots is not known here: name a copy of log-roots.jsonl with --roots';
  const { position, kind, at, actor, reason } = begin;
  if (kind === 'root' && position === 0) return 'roots begin with the log';
  const why = kind === 'root' ? '' : ` (${kind} by ${actor ?? 'an operator'} at ${at}: ${reason})`;
  return `roots begin at position ${position}${why}; events before it are not covered`;
};

const renderSigning = ({ state, position, at, unsignedEvents, begin }: SigningReport): string =>
  state === 'unsigned'
    ? SIGNING_ACTIONS.unsigned
    : [
        renderBegin(begin),
        `signed up to position ${position} at ${at}; ${unsignedEvents} later events`,
        ...(state === 'stale' ? [SIGNING_ACTIONS.stale] : []),
      ].join('\n');

const render = ({ checks, events, since, durationMs, first, signing }: AuditReport): string =>
  [
    ...checks.map(renderCheck),
    `${events} events${since === null ? '' : ` since position ${since}`} in ${(durationMs / 1_000).toFixed(1)} s`,
    ...(signing === null ? [] : [renderSigning(signing)]),
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
const createProjectionAudits = (pool: pg.Pool, archives: string): readonly ProjectionAudit[] => [
  { name: 'session-snapshots', compare: compareSnapshots },
  ...allProjections.map((definition) => ({
    name: definition.name,
    compare: async (client: pg.ClientBase) => {
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
  })),
];

/** Adds the checks of NATS and Temporal to a report of the log. */
const auditEngines = async (
  { nats, temporal }: EngineAddresses,
  options: Pick<LiveAuditOptions, 'pool' | 'strictQuiesced' | 'onProgress' | 'filesFolder'>,
  report: AuditReport,
): Promise<AuditReport> => {
  const [{ auditLive, withLive }, { openTemporal, temporalServer }] = await Promise.all([
    import('@antiphon/audit-features/live'),
    import('@antiphon/temporal/link'),
  ]);
  const link = await connectOperator(nats, 'antiphon-audit');
  const temporalLink = openTemporal(temporalServer(temporal, process.env));
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

const readAge = (text: string | undefined): { readonly maxUnsignedAgeS?: number } => {
  if (text === undefined) return {};
  const maxUnsignedAgeS = Number(text);
  if (text !== '' && Number.isFinite(maxUnsignedAgeS) && maxUnsignedAgeS >= 0) return { maxUnsignedAgeS };
  throw invalid('CLI.USAGE', `--max-unsigned-age needs a number of seconds, not ${text}`);
};

const exitCodeFor = ({ ok, signing }: AuditReport): number => {
  if (!ok) return EXIT.failed;
  return signing?.state === 'signed' ? EXIT.done : EXIT.unsigned;
};

const clip = (text: string): string => text.slice(0, 4_000).toWellFormed();

/** Sends the result to the gateway, which records it as a fact. */
const recordAudit = async (
  context: CommandContext,
  report: AuditReport,
  isLive: boolean,
  sign: SignReport,
): Promise<void> => {
  const { ok, headPosition, events, since, signing, durationMs, checks, first } = report;
  const body: AuditResult = {
    ...{ auditId: randomUUID(), ok, headPosition, events, since, isLive, durationMs },
    signing: signing?.state ?? null,
    checks: checks.map(({ name, about, counts, checked, violations, open }) => ({
      ...{ name, about, counts, checked, violations, open },
    })),
    first: first && { ...first, message: clip(first.message) },
  };
  const sent = (await context.http()).recordAudit({ body: sign(body) });
  await sent.catch((error: unknown) => {
    // The exit code stays that of the audit, unless it passed.
    if (process.exitCode !== EXIT.done && process.exitCode !== undefined)
      return void process.stderr.write(`the result is not recorded: ${String(error)}\n`);
    throw error;
  });
};

/**
 * Audits the log and prints the report. Sets exit code 1 where a check fails. Sets 5 where all
 * pass, but the log is not signed or its newest root is too old.
 */
export const runAudit = async (context: CommandContext, options: AuditCommandOptions): Promise<void> => {
  const { output } = context;
  // Fails now rather than after the audit.
  const sign = options.record ? findReportSigner('audit', options.key, context) : null;
  if (sign) await context.gateway();
  const age = readAge(
    options.maxUnsignedAge ?? (context.env['ANTIPHON_AUDIT_MAX_UNSIGNED_AGE_S'] || undefined),
  );
  const engines = options.live ? findEngines(context) : null;
  // Read before the audit begins, so that no root is newer than the snapshot.
  const trusted = findTrust(options, context);
  const file = options.checkpoint === undefined ? null : openCheckpoint(options.checkpoint, options, context);
  const archives = archiveFolder(options.archives, context);
  const database = { applicationName: 'antiphon-audit', idleInTransactionMs: 60_000 };
  const report = await withDatabase(context, database, async (pool) => {
    const common = {
      ...{ pool, archives, strictQuiesced: options.strict === true },
      onProgress: (step: string) => void (output.json || process.stderr.write(`${step} …\n`)),
    };
    const projections = file?.since ? [] : createProjectionAudits(pool, archives);
    const since = file?.since ? { since: file.since } : {};
    const now = engines === null ? {} : { now: new Date() };
    const logAudit = await auditLog({ ...common, ...age, ...now, trusted, projections, ...since });
    const live = { ...common, filesFolder: filesFolderOf(context) };
    const report = engines === null ? logAudit.report : await auditEngines(engines, live, logAudit.report);
    if (logAudit.checkpoint) file?.write(logAudit.checkpoint(new Date().toISOString()));
    output.result(report, render(report));
    process.exitCode = exitCodeFor(report);
    return report;
  }).catch((error: unknown) => {
    throw toUnreachable(error);
  });
  if (sign) await recordAudit(context, report, options.live === true, sign);
};
