import type { Command } from 'commander';
import type { ContextOf } from '../output.js';
import type { RestoreFilesOptions } from './restore-files.js';

const addRestore = (files: Command, context: ContextOf): void => {
  files
    .command('restore')
    .description("take back a session's changes of files after one of its events")
    .requiredOption('--session <id>', 'the session whose changes are taken back')
    .requiredOption('--at <n>', 'keep the changes up to the event with this version; 0 keeps none')
    .option('--dry-run', 'only print what would change')
    .option('--key <key>', 'an idempotency key: requests with the same key restore once')
    .addHelpText(
      'after',
      '\nNewer changes of others stay and are listed. Deleted files go to the bin.\n\nExamples:\n  antiphon files restore --session 0d6c… --at 12 --dry-run\n  antiphon files restore --session 0d6c… --at 12',
    )
    .action(async (options: RestoreFilesOptions, command: Command) =>
      (await import('./restore-files.js')).restoreFiles(context(command), options),
    );
};

/** Declares `antiphon files`. */
export const addFiles = (program: Command, context: ContextOf): void => {
  const files = program.command('files').description('restore the files of a session');
  addRestore(files, context);
};
