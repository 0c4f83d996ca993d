import type { Command } from 'commander';
import type { ContextOf } from '../output.js';
import type { EvidenceOptions } from './restore-evidence.js';
import type { BackupOptions } from './run-backup.js';

/** Options of `antiphon restore`; `resume`, `undo` and `list` replace the folder. */
export interface RestoreChoice extends EvidenceOptions {
  readonly resume?: boolean;
  readonly undo?: boolean;
  readonly list?: boolean;
  readonly adopt?: boolean;
}

/** Adds `antiphon backup DIR` and `antiphon restore DIR`. */
export const addBackup = (program: Command, context: ContextOf): void => {
  program
    .command('backup <folder>')
    .description('write a consistent copy of the database to a folder while services run')
    .option('--archives <folder>', 'the folder of archive files (default: as for `antiphon events archive`)')
    .option('--record', 'record the backup at the gateway, for the dashboard; needs operations:write')
    .addHelpText(
      'after',
      [
        '\nThe folder contains all messages of users: protect it like the database. Credentials and workspaces of agents are not in it.',
        '\nExamples:',
        '  antiphon backup /mnt/backups/$(date +%F)',
        '  antiphon backup /tmp/before-the-upgrade --json | jq .log',
      ].join('\n'),
    )
    .action(async (folder: string, options: BackupOptions, command: Command) =>
      (await import('./run-backup.js')).runBackup(context(command), folder, options),
    );
  program
    .command('restore [folder]')
    .description('replace the database with a backup; prints what is lost and begins a new epoch of the log')
    .option('--resume', 'finish a restore that was interrupted')
    .option('--undo', 'bring back the data before a restore that was interrupted')
    .option(
      '--key <file>',
      'Ed25519 key that signed the backup and signs the record, PEM (default: that of this home)',
    )
    .option(
      '--allow-unsigned',
      'accept a backup whose manifest no trusted key signed; its log is still verified',
    )
    .option(
      '--adopt',
      'verify a database that another tool restored, and begin a new epoch with a signed record',
    )
    .option('--list', 'list the restores of this database, and the schemas with the data that they replaced')
    .addHelpText(
      'after',
      [
        '\nStop the stack first. For an external PostgreSQL (ANTIPHON_DATABASE_URL), stop every service; with ANTIPHON_NATS_URL',
        'and ANTIPHON_OPERATOR_NATS_PASSWORD the stream EVENTS is deleted too. If a step fails, the database is unchanged.',
        'The replaced data stays in a schema of the database, antiphon_before_restore_…, until you drop it. No service starts',
        'while a restore is unfinished.',
        '\nExamples:',
        '  antiphon down && antiphon restore /mnt/backups/2026-11-21 && antiphon up --detach && antiphon audit',
        '  antiphon restore /mnt/backups/2026-11-21 --json | jq .loss',
        '  antiphon restore --resume',
      ].join('\n'),
    )
    .action(async (folder: string | undefined, options: RestoreChoice, command: Command) =>
      (await import('./run-restore.js')).runRestore(context(command), folder, options),
    );
};
