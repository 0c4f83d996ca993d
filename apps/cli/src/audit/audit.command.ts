import type { Command } from 'commander';
import type { ContextOf } from '../output.js';
import type { AuditCommandOptions } from './run-audit.js';

const EXAMPLES = [
  '\nExamples:',
  '  antiphon audit',
  '  antiphon audit --live --strict   # after a drill: no turn, run or message may be open',
  '  antiphon audit --json | jq .checks[].name',
  '  antiphon audit --record   # the dashboard shows the last recorded result',
  '  antiphon audit --checkpoint /var/lib/antiphon/audit.json   # hourly: only new events',
  '  antiphon audit --roots /mnt/elsewhere/log-roots.jsonl --key log-signing.pub',
].join('\n');

/** Adds `antiphon audit [--strict] [--live] [--checkpoint FILE] [--roots FILE] [--record]`. */
export const addAudit = (program: Command, context: ContextOf): void => {
  program
    .command('audit')
    .description(
      'verify the log; exits with 1 and names the first event that breaks a rule, or with 5 if it is not signed',
    )
    .option('--strict', 'count open turns, runs and messages as broken')
    .option('--checkpoint <file>', 'start at the signed checkpoint of the last clean audit, and update it')
    .option('--roots <file>', 'verify the log against these signed roots (default: those of this home)')
    .option(
      '--key <file>',
      'Ed25519 key of the signatures on roots and checkpoints, PEM (default: that of this home)',
    )
    .option(
      '--max-unsigned-age <seconds>',
      'age from which an event that no root covers makes the audit end with 5 (default: 3600)',
    )
    .option('--archives <folder>', 'the folder of archive files (default: as for `antiphon events archive`)')
    .option(
      '--live',
      'also verify JetStream, its consumers, Temporal and the folders of files against the log',
    )
    .option('--record', 'record the result at the gateway, for the dashboard; needs operations:write')
    .addHelpText('after', EXAMPLES)
    .action(async (options: AuditCommandOptions, command: Command) =>
      (await import('./run-audit.js')).runAudit(context(command), options),
    );
};
