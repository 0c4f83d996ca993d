import type { Command } from 'commander';
import { nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';
import { renderIssued } from './key.command.js';

const create = async (
  { output, http }: CommandContext,
  id: string,
  { name }: { readonly name?: string },
): Promise<void> => {
  const body = { id, name };
  const created = await (await http()).createWorkspace({ body });
  output.result(created, `workspace ${created.id} (${created.name})\n${renderIssued(created.key)}`);
};

interface ListOptions {
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listWorkspaces({ query: options });
  const lines = page.workspaces.map(({ id, name, createdAt }) => `${id.padEnd(20)} ${createdAt}  ${name}`);
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

const EXAMPLES = `
Examples:
  antiphon workspace create acme --name "Acme Inc."
  antiphon workspace list`;

/** Adds `antiphon workspace create|list`. */
export const addWorkspace = (program: Command, context: ContextOf): void => {
  const workspace = program
    .command('workspace')
    .description('create and list workspaces, the tenants of this installation')
    .addHelpText('after', EXAMPLES);
  workspace
    .command('create <id>')
    .description('create a workspace and print its first admin key; for administrators of default')
    .option('--name <name>', 'a name for lists (default: the id)')
    .addHelpText('after', EXAMPLES)
    .action((id: string, options: { name?: string }, command: Command) =>
      create(context(command), id, options),
    );
  workspace
    .command('list')
    .description('list the workspaces that you may see')
    .option('--limit <n>', 'workspaces per page, 1 to 200', '50')
    .option('--cursor <cursor>', 'start after this page')
    .action((options: ListOptions, command: Command) => list(context(command), options));
};
