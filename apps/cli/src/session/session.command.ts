import type { Command } from 'commander';
import type { ContextOf } from '../command-context.js';
import { addExport } from './export-session.js';
import { addReplay } from './replay-session.js';

/** `antiphon session export|replay` */
export const addSession = (program: Command, context: ContextOf): void => {
  const session = program.command('session').description('what was said and done in a session, and what if');
  for (const add of [addExport, addReplay]) add(session, context);
};
