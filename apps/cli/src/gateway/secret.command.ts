import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';
import { readSecret } from './read-secret.js';

const set = async (
  { output, http, cwd }: CommandContext,
  name: string,
  { file }: { readonly file?: string },
): Promise<void> => {
  const stored = await (
    await http()
  ).setSecret({ params: { name }, body: { secret: readSecret(cwd, file) } });
  output.result(stored, `${name}: stored, encrypted`);
};

const list = async ({ output, http }: CommandContext): Promise<void> => {
  const page = await (await http()).listSecrets();
  const lines = page.secrets.map(
    ({ name, createdAt, createdBy }) => `${name.padEnd(24)} ${createdAt}  by ${createdBy}`,
  );
  output.result(page, lines.length === 0 ? 'no secret is stored' : lines.join('\n'));
};

const remove = async ({ output, http }: CommandContext, name: string): Promise<void> => {
  const reply = await (await http()).removeSecret({ params: { name } });
  output.result(reply, reply.removed ? `${name}: removed` : `${name}: no secret was stored`);
};

const EXAMPLES = `
Examples:
  antiphon secret set github --file ./github.token
  printenv GITHUB_TOKEN | antiphon secret set github --stdin
  antiphon secret list
  antiphon secret remove github`;

/** Adds `antiphon secret set|list|remove`. */
export const addSecret = (program: Command, context: ContextOf): void => {
  const secret = program
    .command('secret')
    .description('store the secrets of tools and plug-ins, encrypted, for your workspace')
    .addHelpText('after', EXAMPLES);
  secret
    .command('set <name>')
    .description('store a secret, from standard input or a file')
    .option('--stdin', 'read the secret from standard input (default)')
    .option('--file <path>', 'read the secret from this file')
    .addHelpText('after', EXAMPLES)
    .action((name: string, options: { file?: string }, command: Command) =>
      set(context(command), name, options),
    );
  secret
    .command('list')
    .description('list the secrets, without their values')
    .action((_: unknown, command: Command) => list(context(command)));
  secret
    .command('remove <name>')
    .description('remove a secret: tools that name it fail from then on')
    .action((name: string, _: unknown, command: Command) => remove(context(command), name));
};
