import type { Command } from 'commander';
import type { ContextOf } from '../output.js';
import type { DlqFilter } from './run-dlq.js';

const addFilters = (command: Command): Command =>
  command
    .option('--projection <name>', 'only streams that this projection parked')
    .option('--stream <id>', 'only this event stream')
    .option('--consumer <name>', "only this consumer's dead letters");

/** Adds `antiphon dlq list|replay`. */
export const addDlq = (program: Command, context: ContextOf): void => {
  const load = () => import('./run-dlq.js');
  const dlq = program
    .command('dlq')
    .description('list and replay parked streams of projections and dead letters of consumers');
  addFilters(dlq.command('list').description('list each with its reason and its number of attempts'))
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon dlq list\n  antiphon dlq list --projection memory-facts --json',
    )
    .action(async (filter: DlqFilter, command: Command) => (await load()).list(context(command), filter));
  addFilters(dlq.command('replay').description('handle them again after a fix; exits 1 if any stays parked'))
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon dlq replay\n  antiphon dlq replay --projection agent-sessions --stream session-0199…',
    )
    .action(async (filter: DlqFilter, command: Command) => (await load()).replay(context(command), filter));
};
