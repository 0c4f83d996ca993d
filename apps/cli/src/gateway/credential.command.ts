import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';
import { readSecret } from './read-secret.js';

const set = async (
  { output, http, cwd }: CommandContext,
  provider: string,
  { file }: { readonly file?: string },
): Promise<void> => {
  const body = { secret: readSecret(cwd, file) };
  const stored = await (await http()).setCredential({ params: { provider }, body });
  output.result(stored, `${provider}: stored, encrypted under the master key ${stored.masterKeyId}`);
};

const list = async ({ output, http }: CommandContext): Promise<void> => {
  const page = await (await http()).listCredentials();
  const lines = page.credentials.map(
    ({ provider, createdAt, createdBy, masterKeyId }) =>
      `${provider.padEnd(20)} ${createdAt}  by ${createdBy}  master key ${masterKeyId}`,
  );
  output.result(page, lines.length === 0 ? 'no key is stored' : lines.join('\n'));
};

const remove = async ({ output, http }: CommandContext, provider: string): Promise<void> => {
  const reply = await (await http()).removeCredential({ params: { provider } });
  output.result(reply, reply.removed ? `${provider}: removed` : `${provider}: no key was stored`);
};

const EXAMPLES = `
Examples:
  antiphon credential set anthropic --file ./anthropic.key
  printenv ANTHROPIC_API_KEY | antiphon credential set anthropic
  antiphon credential list
  antiphon credential remove anthropic`;

/** Adds `antiphon credential set|list|remove`. */
export const addCredential = (program: Command, context: ContextOf): void => {
  const credential = program
    .command('credential')
    .description('store the keys of model providers, encrypted, for your workspace')
    .addHelpText('after', EXAMPLES);
  credential
    .command('set <provider>')
    .description('store the key of a provider, from standard input or a file')
    .option('--file <path>', 'read the key from this file')
    .addHelpText('after', EXAMPLES)
    .action((provider: string, options: { file?: string }, command: Command) =>
      set(context(command), provider, options),
    );
  credential
    .command('list')
    .description('list the providers with a stored key, without the keys')
    .action((_: unknown, command: Command) => list(context(command)));
  credential
    .command('remove <provider>')
    .description('remove the stored key of a provider')
    .action((provider: string, _: unknown, command: Command) => remove(context(command), provider));
};
