import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { RouteReply } from '@antiphon/client';
import { invalid, rejected } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';
import { renderTable } from './agent-views.js';

type Plugin = RouteReply<'readPlugin'>;

interface AddOptions {
  readonly name?: string;
  readonly capability: readonly string[];
  readonly timeoutMs?: string;
  readonly memoryMb?: string;
}

const stateOf = ({ status, reason, allowed }: Plugin): string => {
  if (!allowed) return 'denied';
  return reason === null ? status : `${status}: ${reason}`;
};

const renderPlugin = (plugin: Plugin): string =>
  [
    `${plugin.name}  (${plugin.origin === 'added' ? `added, version ${plugin.version}` : 'of the configuration'})`,
    `status      ${stateOf(plugin)}`,
    `module      ${plugin.moduleDigest ?? 'none'}`,
    `may reach   ${plugin.capabilities.join(', ') || 'nothing outside'}`,
    ...(plugin.addedBy === null ? [] : [`added by    ${plugin.addedBy} at ${plugin.addedAt ?? ''}`]),
  ].join('\n');

const readModule = async (file: string): Promise<Uint8Array<ArrayBuffer>> => {
  try {
    return Uint8Array.from(await readFile(file));
  } catch (cause) {
    throw invalid('CLI.USAGE', `the module cannot be read: ${file}`, { cause });
  }
};

const parseInput = (text: string): never => {
  try {
    return JSON.parse(text) as never;
  } catch (cause) {
    throw invalid('CLI.USAGE', 'the input is not JSON', { cause });
  }
};

const add = async ({ output, http }: CommandContext, file: string, options: AddOptions): Promise<void> => {
  const { name = basename(file).replace(/\.wasm$/, ''), capability, timeoutMs, memoryMb } = options;
  const upload = await readModule(file);
  const client = await http();
  const before = await client.listPlugins();
  const known = before.plugins.find((one) => one.name === name);
  const query = {
    ...{ name, capabilities: capability.join(',') },
    ...(timeoutMs === undefined ? {} : { timeoutMs: Number(timeoutMs) }),
    ...(memoryMb === undefined ? {} : { memoryMb: Number(memoryMb) }),
  };
  const plugin = await client.addPlugin({ query, upload });
  const isSame = known?.version === plugin.version;
  output.result(plugin, `${name}: ${isSame ? 'unchanged' : 'added'}, version ${plugin.version}`);
};

const list = async ({ output, http }: CommandContext): Promise<void> => {
  const { plugins } = await (await http()).listPlugins();
  const rows = plugins.map((plugin) => [
    ...[plugin.name, plugin.origin, plugin.version === null ? '-' : String(plugin.version)],
    ...[stateOf(plugin), plugin.capabilities.join(', ') || '-'],
  ]);
  output.result(plugins, renderTable(['PLUG-IN', 'ORIGIN', 'VERSION', 'STATE', 'MAY REACH'], rows));
};

const versions = async ({ output, http }: CommandContext, name: string): Promise<void> => {
  const { versions: all } = await (await http()).listPluginVersions({ params: { name } });
  const rows = all.map(({ version, moduleDigest, bytes, capabilities, addedBy, addedAt }) => [
    ...[String(version), moduleDigest.slice(0, 12), `${bytes} B`],
    ...[capabilities.join(', ') || '-', addedBy, addedAt],
  ]);
  output.result(all, renderTable(['VERSION', 'MODULE', 'SIZE', 'MAY REACH', 'BY', 'AT'], rows));
};

const call = async ({ output, http }: CommandContext, name: string, input: string): Promise<void> => {
  const reply = await (await http()).callPlugin({ params: { name }, body: { input: parseInput(input) } });
  if (reply.code !== null) throw rejected(reply.code, reply.content);
  output.result(reply, `${reply.isError ? 'the tool reports an error: ' : ''}${reply.content}`);
};

const permit = async ({ output, http }: CommandContext, name: string, allowed: boolean): Promise<void> => {
  const plugin = await (await http()).permitPlugin({ params: { name }, body: { allowed } });
  output.result(plugin, `${name}: ${allowed ? 'allowed' : 'denied'}`);
};

const collect = (value: string, before: readonly string[]): string[] => [...before, value];

/** Adds `antiphon plugin add|list|show|versions|call|allow|deny|remove`. */
export const addPlugin = (program: Command, context: ContextOf): void => {
  const plugin = program.command('plugin').description('add, call and remove WebAssembly plug-ins');
  plugin
    .command('add <file>')
    .description('add a WebAssembly module, or a version of an added plug-in')
    .option('--name <name>', 'name of the tool (default: the name of the file)')
    .option('--capability <capability>', 'a capability such as http:api.example.com/v1', collect, [])
    .option('--timeout-ms <ms>', 'maximum for one attempt of a call (default: 5000)')
    .option('--memory-mb <MiB>', 'maximum of its memory (default: 16)')
    .addHelpText('after', '\nExample:\n  antiphon plugin add weather.wasm --capability http:api.example.com')
    .action((file: string, options: AddOptions, command: Command) => add(context(command), file, options));
  plugin
    .command('list')
    .description('list the plug-ins of the configuration and those of the workspace')
    .addHelpText('after', '\nExample:\n  antiphon plugin list')
    .action((_options: unknown, command: Command) => list(context(command)));
  plugin
    .command('show <name>')
    .description('show a plug-in: its module, state and capabilities')
    .addHelpText('after', '\nExample:\n  antiphon plugin show weather')
    .action(async (name: string, _options: unknown, command: Command) => {
      const { output, http } = context(command);
      const one = await (await http()).readPlugin({ params: { name } });
      output.result(one, renderPlugin(one));
    });
  plugin
    .command('versions <name>')
    .description('list the versions of an added plug-in')
    .addHelpText('after', '\nExample:\n  antiphon plugin versions weather')
    .action((name: string, _options: unknown, command: Command) => versions(context(command), name));
  plugin
    .command('call <name> <input>')
    .description('call the tool of a plug-in once, outside of any session; the input is JSON')
    .addHelpText('after', '\nExample:\n  antiphon plugin call calculator \'{"expression":"6*7"}\'')
    .action((name: string, input: string, _options: unknown, command: Command) =>
      call(context(command), name, input),
    );
  for (const [verb, allowed, text] of [
    ['allow', true, 'allow a plug-in in the workspace that was denied'],
    ['deny', false, 'deny a plug-in to all agents of the workspace'],
  ] as const)
    plugin
      .command(`${verb} <name>`)
      .description(text)
      .addHelpText('after', `\nExample:\n  antiphon plugin ${verb} weather`)
      .action((name: string, _options: unknown, command: Command) => permit(context(command), name, allowed));
  plugin
    .command('remove <name>')
    .description('remove an added plug-in with the values of its stores')
    .addHelpText('after', '\nExample:\n  antiphon plugin remove weather')
    .action(async (name: string, _options: unknown, command: Command) => {
      const { output, http } = context(command);
      const reply = await (await http()).removePlugin({ params: { name } });
      output.result(reply, reply.removed ? `${name}: removed` : `${name}: there was none`);
    });
};
