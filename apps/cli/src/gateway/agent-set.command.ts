import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { RouteRequest } from '@antiphon/client';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';
import { renderAgent, splitNames } from './agent-views.js';

type Changes = Exclude<NonNullable<RouteRequest<'controlAgent'>['body']>, { action: string }>;

const FIELDS = {
  name: 'name',
  role: 'role',
  provider: 'provider',
  model: 'model',
  'system-prompt': 'systemPrompt',
  tools: 'tools',
  capabilities: 'capabilities',
} as const satisfies Readonly<Record<string, keyof Changes>>;

interface SetOptions {
  readonly name?: string;
  readonly role?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly systemPrompt?: string;
  readonly systemPromptFile?: string;
  readonly tools?: string;
  readonly capabilities?: string;
  readonly reset?: string;
  readonly reason?: string;
}

const readText = (cwd: string, file: string): string => {
  try {
    return readFileSync(resolve(cwd, file), 'utf8');
  } catch {
    throw invalid('CLI.USAGE', `${file} cannot be read`);
  }
};

const resetOf = (list: string | undefined): Changes => {
  const fields = list === undefined ? [] : splitNames(list);
  const unknown = fields.find((field) => !Object.hasOwn(FIELDS, field));
  if (unknown !== undefined)
    throw invalid(
      'CLI.USAGE',
      `--reset: there is no field ${JSON.stringify(unknown)}; expected some of ${Object.keys(FIELDS).join(', ')}`,
    );
  return Object.fromEntries(fields.map((field) => [FIELDS[field as keyof typeof FIELDS], null]));
};

/** Returns the changes that the options name. */
export const changesOf = (cwd: string, options: SetOptions): Changes => {
  const { name, role, provider, model, systemPrompt, systemPromptFile, tools, capabilities } = options;
  const prompt = systemPromptFile === undefined ? systemPrompt : readText(cwd, systemPromptFile);
  const fields = {
    ...{ name, role, provider, model, systemPrompt: prompt, reason: options.reason },
    tools: tools === undefined ? undefined : splitNames(tools),
    capabilities: capabilities === undefined ? undefined : splitNames(capabilities),
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const changes = { ...resetOf(options.reset), ...Object.fromEntries(given) } as Changes;
  if (Object.keys(changes).some((field) => field !== 'reason')) return changes;
  throw invalid('CLI.USAGE', 'name at least one field to change, such as --model');
};

const set = async ({ output, http, cwd }: CommandContext, id: string, options: SetOptions): Promise<void> => {
  const body = changesOf(cwd, options);
  const agent = await (await http()).controlAgent({ params: { id }, body });
  output.result(agent, renderAgent(agent));
};

const EXAMPLES = `
Examples:
  antiphon agent set main --provider anthropic --model claude-sonnet-4-5
  antiphon agent set main --tools echo,calculator,ls,read,search
  antiphon agent set main --reset provider,model`;

/** Adds `antiphon agent set`. */
export const addAgentSet = (agent: Command, context: ContextOf): void => {
  agent
    .command('set <id>')
    .description('change an agent for its next model call, without a restart')
    .option('--provider <name>', 'a configured or connected provider')
    .option('--model <model>', 'a model of the provider')
    .option('--system-prompt <text>', 'its system prompt')
    .option('--system-prompt-file <path>', 'read its system prompt from a file')
    .option('--tools <list>', 'tools that it may call, separated by commas')
    .option('--capabilities <list>', 'what tasks it can do, separated by commas')
    .option('--name <name>', 'its name')
    .option('--role <role>', 'its role')
    .option('--reset <fields>', 'fields that are again as configured or spawned, separated by commas')
    .option('--reason <text>', 'why; the event has it')
    .addHelpText('after', EXAMPLES)
    .action((id: string, options: SetOptions, command: Command) => set(context(command), id, options));
};
