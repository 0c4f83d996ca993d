import type { Command } from 'commander';
import type { ContextOf } from '../output.js';
import type { RebuildOptions } from './run-projections.js';

/** Adds `antiphon projections list|rebuild`. */
export const addProjections = (program: Command, context: ContextOf): void => {
  const load = () => import('./run-projections.js');
  const projections = program
    .command('projections')
    .description('list, compare and rebuild projections: tables that are folded from the log');
  projections
    .command('list')
    .description('list every projection: its position, its lag in events, its parked streams')
    .addHelpText('after', '\nExample:\n  antiphon projections list')
    .action(async (_: unknown, command: Command) => (await load()).list(context(command)));
  projections
    .command('rebuild [name]')
    .description('fold a projection again during live traffic, and replace the rows that differ')
    .option('--all', 'every projection, one after another')
    .option('--compare', 'change nothing: report rows that differ from the log; exits 1 if any does')
    .option(
      '--archives <folder>',
      'the folder of archive files, whose events are folded too (default: as for `antiphon events archive`)',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon projections rebuild agent-sessions\n  antiphon projections rebuild --all --compare',
    )
    .action(async (name: string | undefined, options: RebuildOptions, command: Command) =>
      (await load()).rebuild(context(command), name, options),
    );
};
