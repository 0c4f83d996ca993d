import type { ScopeUsage } from '@antiphon/contracts/metering';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import { getJson, requestJson } from '../connection/http-client.js';
import type { CommandContext, ContextOf } from '../output.js';

interface ShowOptions {
  readonly agent?: string;
  readonly session?: string;
  readonly at?: string;
}

const dollars = (microUsd: number): string => `${(microUsd / 1e6).toFixed(4)} USD`;

const renderScope = (scope: ScopeUsage): string => {
  const tokens = `${scope.settledTokens} of ${scope.limitTokens ?? 'unlimited'} tokens`;
  const limit = scope.limitMicroUsd === null ? 'unlimited' : dollars(scope.limitMicroUsd);
  const frozen = scope.frozen === true ? '  frozen' : '';
  return `${scope.key}  ${tokens}  ${dollars(scope.settledMicroUsd)} of ${limit}${frozen}`;
};

const show = async ({ output, gateway }: CommandContext, options: ShowOptions): Promise<void> => {
  const query = new URLSearchParams(Object.entries(options));
  const path = `/api/v1/budgets?${query}`;
  const reply = await getJson<{ readonly scopes: readonly ScopeUsage[] }>(await gateway(), path);
  output.result(reply, reply.scopes.map(renderScope).join('\n'));
};

interface SetOptions {
  readonly tokens?: string;
  readonly usd?: string;
}

/** Parses a limit; `none` removes it. Throws `CLI.USAGE`. */
const parseLimit = (option: string, text: string | undefined, unit: number): number | null => {
  if (text === undefined || text === 'none') return null;
  const limit = Math.round(Number(text) * unit);
  if (/^[0-9.]+$/.test(text) && Number.isSafeInteger(limit)) return limit;
  throw invalid('CLI.USAGE', `${option} ${text}: expected a number, or none`);
};

const set = async (
  { output, gateway }: CommandContext,
  agent: string,
  options: SetOptions,
): Promise<void> => {
  const limitTokens = parseLimit('--tokens', options.tokens, 1);
  const limitMicroUsd = parseLimit('--usd', options.usd, 1e6);
  const path = `/api/v1/budgets/agents/${encodeURIComponent(agent)}`;
  const request = { method: 'PUT', body: { limitTokens, limitMicroUsd } } as const;
  const reply = await requestJson<{ readonly changed: boolean }>(await gateway(), path, request);
  output.result(reply, `${agent}: ${reply.changed ? 'budget set' : 'unchanged'}`);
};

/** Adds `antiphon budget show|set`. */
export const addBudget = (program: Command, context: ContextOf): void => {
  const budget = program.command('budget').description('show and set what may be spent');
  budget
    .command('show')
    .description('show limits and spending of the current day and month, and of an agent or a session')
    .option('--agent <id>', 'add the budget of this agent')
    .option('--session <id>', 'add the budget of this session')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText('after', '\nExample:\n  antiphon budget show --agent research-lead')
    .action((options: ShowOptions, command: Command) => show(context(command), options));
  budget
    .command('set <agent>')
    .description('set what an agent and its descendants may spend together; an absent limit is removed')
    .option('--tokens <n>', 'limit of tokens, or none')
    .option('--usd <n>', 'limit in US dollars, or none')
    .addHelpText('after', '\nExample:\n  antiphon budget set research-lead --tokens 250000')
    .action((agent: string, options: SetOptions, command: Command) => set(context(command), agent, options));
};
