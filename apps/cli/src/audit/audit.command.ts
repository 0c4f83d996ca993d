import { runAudit, type AuditReport, type CheckReport, type Violation } from '@antiphon/audit-features';
import { createPool } from '@antiphon/database';
import { AppError, isAppError } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import { findDatabase } from './database-address.js';

interface AuditCommandOptions {
  readonly strict?: boolean;
  readonly live?: boolean;
}

const renderCheck = ({ name, checked, counts, violations, open }: CheckReport): string => {
  const state = violations === 0 ? 'ok    ' : 'BROKEN';
  const more = [violations > 0 ? `${violations} broken` : '', open > 0 ? `${open} open` : ''].filter(Boolean);
  return `${state} ${name.padEnd(40)} ${checked} ${counts}${more.length > 0 ? ` (${more.join(', ')})` : ''}`;
};

const renderViolation = ({ check, message, eventId, streamId, streamVersion, position }: Violation): string =>
  `first broken: ${check}: ${message}\n  event ${eventId ?? '-'} at position ${position ?? '-'}, ${streamId ?? '-'}@${streamVersion ?? '-'}`;

const render = ({ checks, events, durationMs, first }: AuditReport): string =>
  [
    ...checks.map(renderCheck),
    `${events} events in ${(durationMs / 1_000).toFixed(1)} s`,
    first === null ? 'everything holds' : renderViolation(first),
  ].join('\n');

/** The log could not be read at all, which is neither a pass nor a violation. */
const unreachable = (error: unknown): unknown =>
  isAppError(error) && error.kind === 'transient'
    ? new AppError('transient', 'CLI.UNREACHABLE', `cannot reach the database: ${error.message}`, {
        cause: error,
      })
    : error;

const audit = async ({ output, env, cwd }: CommandContext, options: AuditCommandOptions): Promise<void> => {
  if (options.live)
    throw new AppError(
      'invalid',
      'CLI.USAGE',
      '--live is not available yet: this version audits the log alone',
    );
  const pool = createPool({
    url: findDatabase(env, cwd),
    applicationName: 'antiphon-audit',
    logger: silentLogger,
  });
  try {
    const onProgress = (step: string): void => void (output.json || process.stderr.write(`${step} …\n`));
    const report = await runAudit({ pool, strictQuiesced: options.strict === true, onProgress });
    output.result(report, render(report));
    if (!report.ok) process.exitCode = 1;
  } catch (error) {
    throw unreachable(error);
  } finally {
    await pool.end();
  }
};

/** `antiphon audit [--strict]` */
export const addAudit = (program: Command, context: ContextOf): void => {
  program
    .command('audit')
    .description(
      'prove from the log that everything holds; exits 1 and names the first event that breaks a rule',
    )
    .option('--strict', 'nothing is at work now: count what is still open as broken')
    .option('--live', 'also what needs NATS and Temporal (not available yet)')
    .addHelpText('after', '\nExamples:\n  antiphon audit\n  antiphon audit --json | jq .checks[].name')
    .action((options: AuditCommandOptions, command: Command) => audit(context(command), options));
};
