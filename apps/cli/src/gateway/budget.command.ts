import type { ScopeUsage, WorkspaceScope } from '@antiphon/contracts/metering';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
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
  const isSet = scope.limitFrom === 'run_time' && scope.kind !== 'agent' ? '  set at run time' : '';
  return `${scope.key}  ${tokens}  ${dollars(scope.settledMicroUsd)} of ${limit}${isSet}${frozen}`;
};

const show = async ({ output, http }: CommandContext, options: ShowOptions): Promise<void> => {
  const reply = await (await http()).readBudgets({ query: options });
  output.result(reply, reply.scopes.map(renderScope).join('\n'));
};

interface SetOptions {
  readonly agent?: boolean;
  readonly tokens?: string;
  readonly usd?: string;
  readonly configured?: boolean;
}

/** Not from the contracts, whose schemas `--help` would load. */
const WORKSPACE_SCOPES: readonly WorkspaceScope[] = ['session', 'day', 'month'];

const isWorkspaceScope = (name: string): boolean => (WORKSPACE_SCOPES as readonly string[]).includes(name);

/** Parses a limit; `none` removes it. Throws `CLI.USAGE`. */
const parseLimit = (option: string, text: string | undefined, unit: number): number | null => {
  if (text === undefined || text === 'none') return null;
  const limit = Math.round(Number(text) * unit);
  if (/^[0-9.]+$/.test(text) && Number.isSafeInteger(limit)) return limit;
  throw invalid('CLI.USAGE', `${option} ${text}: expected a number, or none`);
};

/** Throws `CLI.USAGE` for options that do not fit, before a limit is removed by mistake. */
const checkOptions = (isWorkspace: boolean, { tokens, usd, configured }: SetOptions): void => {
  if (configured && !isWorkspace)
    throw invalid('CLI.USAGE', `--configured: only for ${WORKSPACE_SCOPES.join(', ')}, not for an agent`);
  if (configured && (tokens ?? usd) !== undefined)
    throw invalid('CLI.USAGE', '--configured takes no --tokens and no --usd');
  if (isWorkspace && !configured && (tokens === undefined || usd === undefined))
    throw invalid(
      'CLI.USAGE',
      'both limits are replaced. What to do: give --tokens and --usd; none means unlimited',
    );
};

const set = async ({ output, http }: CommandContext, name: string, options: SetOptions): Promise<void> => {
  const isWorkspace = isWorkspaceScope(name) && options.agent !== true;
  checkOptions(isWorkspace, options);
  const limitTokens = parseLimit('--tokens', options.tokens, 1);
  const limitMicroUsd = parseLimit('--usd', options.usd, 1e6);
  const { removeWorkspaceLimit, setWorkspaceLimit, setAgentLimit } = await http();
  const params = { scope: name as WorkspaceScope };
  const body = { limitTokens, limitMicroUsd };
  const setLimit = () =>
    isWorkspace ? setWorkspaceLimit({ params, body }) : setAgentLimit({ params: { id: name }, body });
  const reply = await (options.configured ? removeWorkspaceLimit({ params }) : setLimit());
  const limits = `${limitTokens ?? 'unlimited'} tokens, ${limitMicroUsd === null ? 'unlimited' : dollars(limitMicroUsd)}`;
  const done = options.configured ? 'as configured' : limits;
  output.result(reply, `${name}: ${done}${reply.changed ? '' : ' (unchanged)'}`);
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
    .command('set <name>')
    .description(
      'set what an agent and its descendants may spend together, or each session, day or month of the workspace; ' +
        'an absent limit of an agent is removed',
    )
    .option('--tokens <n>', 'limit of tokens, or none')
    .option('--usd <n>', 'limit in US dollars, or none')
    .option('--agent', 'the name is that of an agent, also if it is session, day or month')
    .option('--configured', 'apply the limit of the configuration again')
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon budget set research-lead --tokens 250000' +
        '\n  antiphon budget set day --usd 25 --tokens none\n  antiphon budget set day --configured',
    )
    .action((name: string, options: SetOptions, command: Command) => set(context(command), name, options));
};
