import type { Command } from 'commander';
import type { ContextOf } from '../output.js';
import type { AdoptCommandOptions } from './adopt-roots.js';

/** Adds `antiphon roots adopt --reason TEXT`. */
export const addRoots = (program: Command, context: ContextOf): void => {
  program
    .command('roots')
    .description('signed roots of the log')
    .command('adopt')
    .description(
      'accept the log as it is: signs a record from which its roots vouch for it, with your name and reason',
    )
    .requiredOption('--reason <text>', 'why the events before it are accepted, such as a lost file of roots')
    .option('--by <name>', 'operator who adopts (default: the user of this command and the host)')
    .option('--roots <file>', 'the file of signed roots (default: that of this home)')
    .option('--key <file>', 'Ed25519 private key that signs the log, PEM (default: that of this home)')
    .option('--anyway', 'also where the roots begin with the log, such as after a clock was wrong')
    .addHelpText(
      'after',
      [
        '\nNeeded once where the signer refuses because its file of roots is missing, or the roots began after the log.',
        'Put a copy of the file back instead if you have one: only that proves that older events are unchanged.',
        '\nExamples:',
        '  antiphon roots adopt --reason "upgrade of a home without roots, compared with the backup of Monday"',
        '  docker compose exec memory node start.mjs adopt-roots --reason "the volume of the roots is new"',
      ].join('\n'),
    )
    .action(async (options: AdoptCommandOptions, command: Command) =>
      (await import('./adopt-roots.js')).runAdopt(context(command), options),
    );
};
