import type { Command } from 'commander';
import type { ContextOf } from '../command-context.js';
import { addDiff } from './diff-sessions.js';
import { addExport } from './export-session.js';
import { addFork } from './fork-session.js';
import { addReplay } from './replay-session.js';
import { addWhatIf } from './whatif-session.js';

/** `antiphon session export|fork|replay|whatif|diff` */
export const addSession = (program: Command, context: ContextOf): void => {
  const session = program.command('session').description('what was said and done in a session, and what if');
  for (const add of [addExport, addFork, addReplay, addWhatIf, addDiff]) add(session, context);
};
