import { homedir } from 'node:os';
import type { ShownLimits, ShownProvider } from '@antiphon/config';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import { addConnectedProvider } from './gateway/connected-provider.command.js';
import type { CommandContext, ContextOf } from './output.js';

const show = (value: number | boolean | null, none: string): string =>
  value === null ? none : String(value);

/** Returns a line for each limit: its key, its value and its place. */
const limitLines = (limits: ShownLimits, shown = Object.keys(limits)): string[] => {
  const rows = shown.map((key) => {
    const { value, from } = limits[key] ?? { value: null, from: '' };
    return [key, show(value, key === 'concurrent_calls' ? 'no limit' : 'by model'), from];
  });
  return [['KEY', 'VALUE', 'FROM'], ...rows].map(
    ([key = '', value = '', from = '']) => `    ${key.padEnd(18)} ${value.padEnd(9)} ${from}`,
  );
};

const keyText = ({ keyVariable, isKeySet, storedKey }: ShownProvider): string => {
  if (keyVariable === null) return storedKey ? 'stored' : 'none needed';
  return `${keyVariable} (${isKeySet ? 'set' : 'not set'})${storedKey ? ', or stored' : ''}`;
};

const agentLines = ({ limits, agents }: ShownProvider): string[] =>
  agents.flatMap((agent) => {
    const own = Object.keys(agent.limits).filter((key) => agent.limits[key]?.from !== limits[key]?.from);
    const use = `  agent ${agent.id}, model ${agent.model}${agent.isFallback ? ' (fallback)' : ''}`;
    return own.length === 0 ? [use] : [use, ...limitLines(agent.limits, own)];
  });

const providerText = (provider: ShownProvider): string => {
  const { name, kind, baseUrl, proxy, proxyFrom, caFile } = provider;
  return [
    `${name}  ${kind}  ${baseUrl ?? 'no address'}`,
    `  key      ${keyText(provider)}`,
    `  proxy    ${proxy === null ? `none: ${proxyFrom}` : `${proxy} (${proxyFrom})`}`,
    `  ca_file  ${caFile ?? 'none'}`,
    '  limits of a call (times in seconds)',
    ...limitLines(provider.limits),
    ...agentLines(provider),
  ].join('\n');
};

const showProviders = async (
  { output, env, cwd }: CommandContext,
  name: string | undefined,
): Promise<void> => {
  const { describeProviders, findNearest, loadConfig } = await import('@antiphon/config');
  const loaded = loadConfig({ env, cwd, homeDir: env['HOME'] ?? homedir(), requireKeys: false });
  const all = describeProviders(loaded, env);
  const names = all.map((provider) => provider.name);
  if (name !== undefined && !names.includes(name)) {
    const nearest = findNearest(name, names);
    const hint = nearest === null ? `configured: ${names.join(', ')}` : `did you mean ${nearest}?`;
    throw invalid('CLI.USAGE', `there is no provider ${JSON.stringify(name)}; ${hint}`);
  }
  const providers = all.filter((provider) => name === undefined || provider.name === name);
  output.result({ source: loaded.source, providers }, providers.map(providerText).join('\n\n'));
};

const EXAMPLES = `
The configuration and the environment of this command are shown. A running agent service has read its own at its start.

Examples:
  antiphon provider show
  antiphon provider show local
  antiphon provider show anthropic --json`;

/** Adds `antiphon provider show`, and the commands for providers that are connected at run time. */
export const addProvider = (program: Command, context: ContextOf): void => {
  const provider = program.command('provider').description('connect, test and show the providers of models');
  addConnectedProvider(provider, context);
  provider
    .command('show [name]')
    .description('print the address, the proxy and the limits of providers, and where each value comes from')
    .addHelpText('after', EXAMPLES)
    .action((name: string | undefined, _: unknown, command: Command) =>
      showProviders(context(command), name),
    );
};
