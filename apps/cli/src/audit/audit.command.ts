import { auditLog, type AuditReport, type CheckReport, type Violation } from '@antiphon/audit-features';
import { createPool } from '@antiphon/database';
import { AppError, isAppError } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import { auditEngines, findEngines } from './audit-engines.js';
import { findTrust, openCheckpoint, type CheckpointFile } from './audit-trust.js';
import { auditedProjections } from './audited-projections.js';
import { findDatabase } from './database-address.js';
import { archiveFolder } from '../events/archive.command.js';

interface AuditCommandOptions {
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

/** What is audited could not be read at all, which is neither a pass nor a violation. */
const unreachable = (error: unknown): unknown =>
  isAppError(error) && error.kind === 'transient'
    ? new AppError('transient', 'CLI.UNREACHABLE', `cannot reach what is audited: ${error.message}`, {
        cause: error,
      })
    : error;

const checkpointOf = (
  { checkpoint, ...trust }: AuditCommandOptions,
  { env, cwd }: CommandContext,
): CheckpointFile | null => (checkpoint === undefined ? null : openCheckpoint(checkpoint, trust, env, cwd));

const toldOf = (context: CommandContext, { strict, archives }: AuditCommandOptions) => ({
  strictQuiesced: strict === true,
  archives: archiveFolder(archives === undefined ? {} : { folder: archives }, context),
  onProgress: (step: string): void => void (context.output.json || process.stderr.write(`${step} …\n`)),
});

const audit = async (context: CommandContext, options: AuditCommandOptions): Promise<void> => {
  const { output, env, cwd } = context;
  const url = findDatabase(env, cwd);
  const engines = options.live ? findEngines(env, cwd) : null;
  const trusted = findTrust(options, env, cwd);
  const file = checkpointOf(options, context);
  const pool = createPool({
    ...{ url, applicationName: 'antiphon-audit' },
    ...{ idleInTransactionMs: 60_000, logger: silentLogger },
  });
  const told = { pool, ...toldOf(context, options) };
  try {
    const ofLog = await auditLog({
      ...{ ...told, trusted, projections: file?.since ? [] : auditedProjections(pool, told.archives) },
      ...(file?.since ? { since: file.since } : {}),
    });
    const report = engines === null ? ofLog.report : await auditEngines(engines, told, ofLog.report);
    if (ofLog.checkpoint) file?.write(ofLog.checkpoint(new Date().toISOString()));
    output.result(report, render(report));
    if (!report.ok) process.exitCode = 1;
  } catch (error) {
    throw unreachable(error);
  } finally {
    await pool.end();
  }
};

const EXAMPLES = [
  '\nExamples:',
  '  antiphon audit',
  '  antiphon audit --live --strict   # after a drill: nothing is open, anywhere',
  '  antiphon audit --json | jq .checks[].name',
  '  antiphon audit --checkpoint /var/lib/antiphon/audit.json   # every hour: only what is new',
  '  antiphon audit --roots /mnt/elsewhere/log-roots.jsonl --key log-signing.pub',
].join('\n');

/** `antiphon audit [--strict] [--live] [--checkpoint FILE] [--roots FILE]` */
export const addAudit = (program: Command, context: ContextOf): void => {
  program
    .command('audit')
    .description(
      'prove from the log that everything holds; exits 1 and names the first event that breaks a rule',
    )
    .option('--strict', 'nothing is at work now: count what is still open as broken')
    .option(
      '--checkpoint <file>',
      'go on from where the last clean audit left its signed checkpoint; leave a new one',
    )
    .option('--roots <file>', 'signed roots to hold the log against (default: those of this home)')
    .option(
      '--key <file>',
      'Ed25519 key that roots and checkpoints are signed with, PEM (default: that of this home)',
    )
    .option(
      '--archives <folder>',
      'where the files of archived events are (default: as `antiphon events archive`)',
    )
    .option('--live', 'also hold JetStream, its consumers and Temporal against the log')
    .addHelpText('after', EXAMPLES)
    .action((options: AuditCommandOptions, command: Command) => audit(context(command), options));
};
