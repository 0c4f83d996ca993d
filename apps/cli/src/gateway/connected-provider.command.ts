import type { RouteReply, RouteRequest } from '@antiphon/client';
import { AppError, invalid } from '@antiphon/kernel';
import { Option } from 'commander';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';
import { readSecret } from './read-secret.js';

type Test = RouteReply<'testProvider'>;
type Provider = RouteReply<'listProviders'>['providers'][number];

type Kind = RouteRequest<'testProvider'>['body']['kind'];
/** Whether a kind needs a key. Where it does not, one is read only if the command names a file. */
const NEEDS_KEY: Readonly<Record<Kind, boolean>> = {
  anthropic: true,
  openai: true,
  openrouter: true,
  gemini: true,
  'azure-openai': true,
  ollama: false,
  'openai-compatible': false,
};
const KINDS = Object.keys(NEEDS_KEY) as Kind[];

interface KeyOptions {
  readonly file?: string;
  readonly baseUrl?: string;
  readonly model?: string;
}

const specOf = (cwd: string, kind: Kind, { file, baseUrl }: KeyOptions) => ({
  kind,
  ...(baseUrl === undefined ? {} : { baseUrl }),
  ...(NEEDS_KEY[kind] || file !== undefined ? { secret: readSecret(cwd, file) } : {}),
});

const requireKind = (name: string): Kind => {
  const kind = KINDS.find((one) => one === name);
  if (kind !== undefined) return kind;
  throw invalid('CLI.USAGE', `there is no kind ${JSON.stringify(name)}; expected one of ${KINDS.join(', ')}`);
};

const testText = ({ works, message, durationMs, problem }: Test): string =>
  works ? `${message} · ${durationMs} ms` : `does not work (${problem}): ${message}`;

const failIfBroken = (test: Test): void => {
  if (!test.works) throw new AppError('provider', 'PROVIDER.TEST_FAILED', testText(test));
};

const add = async (
  { output, http, cwd }: CommandContext,
  kind: string,
  options: KeyOptions & { readonly name?: string; readonly test: boolean },
): Promise<void> => {
  const spec = specOf(cwd, requireKind(kind), options);
  const client = await http();
  const { name = kind, model } = options;
  if (options.test) {
    const test = await client.testProvider({ body: { ...spec, ...(model === undefined ? {} : { model }) } });
    failIfBroken(test);
    output.note(testText(test));
  }
  const provider = await client.connectProvider({ params: { name }, body: spec });
  output.result(provider, `${name}: connected (${kind}, key ${provider.key})`);
};

const test = async (
  { output, http, cwd }: CommandContext,
  name: string,
  options: KeyOptions & { readonly kind?: string },
): Promise<void> => {
  const client = await http();
  const { kind, model } = options;
  const result =
    kind === undefined
      ? await client.listProviderModels({ params: { name } })
      : await client.testProvider({
          body: { ...specOf(cwd, requireKind(kind), options), ...(model === undefined ? {} : { model }) },
        });
  failIfBroken(result);
  output.result(result, `${name}: ${testText(result)}`);
};

const providerLine = ({ name, kind, origin, key, ready, paused }: Provider): string =>
  [
    ...[name.padEnd(20), kind.padEnd(18), origin.padEnd(14), `key ${key}`.padEnd(13)],
    paused ? `paused until ${paused.until}` : ready ? 'ready' : 'has no key',
  ].join(' ');

const list = async ({ output, http }: CommandContext): Promise<void> => {
  const page = await (await http()).listProviders();
  output.result(page, page.providers.map(providerLine).join('\n'));
};

const usdOf = (micro: number): string => `$${(micro / 1e6).toFixed(2)}`;
const priceText = (price: Test['models'][number]['price']): string =>
  price === null
    ? 'price unknown'
    : `${usdOf(price.inputMicroUsdPerMtok)} in, ${usdOf(price.outputMicroUsdPerMtok)} out (1M tokens)`;

const models = async ({ output, http }: CommandContext, name: string): Promise<void> => {
  const result = await (await http()).listProviderModels({ params: { name } });
  failIfBroken(result);
  const lines = result.models.map(
    ({ id, contextTokens, price }) =>
      `${id.padEnd(40)} ${String(contextTokens ?? '').padStart(9)}  ${priceText(price)}`,
  );
  output.result(result, lines.length === 0 ? 'the provider lists no models' : lines.join('\n'));
};

const remove = async ({ output, http }: CommandContext, name: string): Promise<void> => {
  const reply = await (await http()).removeProvider({ params: { name } });
  const lost = reply.agents.length === 0 ? '' : `; agents without a provider: ${reply.agents.join(', ')}`;
  output.result(reply, `${name}: ${reply.removed ? 'removed with its key' : 'was not connected'}${lost}`);
};

const EXAMPLES = `
Examples:
  antiphon provider add anthropic --file ./anthropic.key
  printenv OPENAI_API_KEY | antiphon provider add openai
  antiphon provider add openai-compatible --name local --base-url http://127.0.0.1:8080/v1
  antiphon provider list
  antiphon provider models anthropic
  antiphon provider remove anthropic`;

const withKey = (command: Command): Command =>
  command
    .option('--file <path>', 'read the key from this file instead of standard input')
    .option('--base-url <url>', 'base of its paths; default: the address of the vendor')
    .option('--model <name>', 'model to call if the server has no list of models');

/** Adds `antiphon provider add|test|list|models|remove`. */
export const addConnectedProvider = (provider: Command, context: ContextOf): void => {
  provider.addHelpText('after', EXAMPLES);
  withKey(provider.command('add <kind>'))
    .description(`connect a provider without a restart: ${KINDS.join(', ')}`)
    .option('--name <name>', 'its name; default: the kind')
    .option('--no-test', 'connect it without a test')
    .addHelpText('after', EXAMPLES)
    .action((kind: string, options: KeyOptions & { name?: string; test: boolean }, command: Command) =>
      add(context(command), kind, options),
    );
  withKey(provider.command('test <name>'))
    .description('test a provider, or with --kind a key that is not stored')
    .addOption(new Option('--kind <kind>', 'test a key of this kind').choices(KINDS))
    .action((name: string, options: KeyOptions & { kind?: string }, command: Command) =>
      test(context(command), name, options),
    );
  provider
    .command('list')
    .description('list the providers that agents can call')
    .action((_: unknown, command: Command) => list(context(command)));
  provider
    .command('models <name>')
    .description('list the models of a provider, with sizes and known prices')
    .action((name: string, _: unknown, command: Command) => models(context(command), name));
  provider
    .command('remove <name>')
    .description('remove a connected provider and its key')
    .action((name: string, _: unknown, command: Command) => remove(context(command), name));
};
