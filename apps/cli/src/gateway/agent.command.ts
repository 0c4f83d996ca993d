import type { RouteRequest } from '@antiphon/client';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import { addAgentMetrics } from './agent-metrics.command.js';
import { addAgentSet } from './agent-set.command.js';
import { askAtTerminal, confirmEnd } from './confirm-end.js';
import { type AtOption, nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';
import {
  parseBudget,
  parseWhole,
  renderAgent,
  renderAgents,
  renderChange,
  splitNames,
  withProgress,
} from './agent-views.js';

type SpawnBody = RouteRequest<'spawnAgent'>['body'];
type ListQuery = RouteRequest<'listAgents'>['query'];

/** Options of `agent spawn`. Those that are absent come from the file, or from the base. */
export interface SpawnOptions {
  readonly file?: string;
  readonly id?: string;
  readonly base?: string;
  readonly role?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly systemPrompt?: string;
  readonly capabilities?: string;
  readonly tools?: string;
  readonly project?: string;
  readonly position?: string;
  readonly maxIterations?: string;
  readonly parent?: string;
  readonly queue?: boolean;
  readonly budgetTokens?: string;
  readonly budgetUsd?: string;
  readonly maxDepth?: string;
  readonly maxChildren?: string;
  readonly maxAgents?: string;
}

const limitsOf = ({ maxDepth, maxChildren, maxAgents }: SpawnOptions) => {
  const limits = {
    ...(maxDepth === undefined ? {} : { depth: parseWhole('--max-depth', maxDepth) }),
    ...(maxChildren === undefined ? {} : { children: parseWhole('--max-children', maxChildren) }),
    ...(maxAgents === undefined ? {} : { size: parseWhole('--max-agents', maxAgents) }),
  };
  return Object.keys(limits).length === 0 ? undefined : limits;
};

const withoutAbsent = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** Returns the definition of a new agent: the file's, with the options over it. */
export const agentSpecOf = (
  fromFile: Record<string, unknown>,
  name: string | undefined,
  options: SpawnOptions,
): Record<string, unknown> => {
  const { id, base, role, provider, model, systemPrompt, project, position, parent } = options;
  const spec: Record<string, unknown> = {
    ...fromFile,
    ...withoutAbsent({
      ...{ name, id, base, role, provider, model, systemPrompt, project, position, parent },
      capabilities: options.capabilities === undefined ? undefined : splitNames(options.capabilities),
      tools: options.tools === undefined ? undefined : splitNames(options.tools),
      maxIterations:
        options.maxIterations === undefined
          ? undefined
          : parseWhole('--max-iterations', options.maxIterations),
      whenFull: options.queue === true ? 'queue' : undefined,
      budget: parseBudget(options),
      limits: limitsOf(options),
    }),
  };
  if (spec['name'] === undefined)
    throw invalid('CLI.USAGE', 'the agent needs a name: `antiphon agent spawn NAME`, or `name` in its file');
  return spec;
};

const spawn = async (
  { output, http, cwd }: CommandContext,
  name: string | undefined,
  options: SpawnOptions,
): Promise<void> => {
  const { file } = options;
  const fromFile = file === undefined ? {} : await (await import('./agent-file.js')).readAgentFile(cwd, file);
  const body = agentSpecOf(fromFile, name, options);
  const spawned = (await http()).spawnAgent({ body: body as SpawnBody });
  const agent = await withProgress(output, 'spawning the agent', spawned);
  output.result(agent, renderAgent(agent));
};

interface ListOptions {
  readonly state?: string;
  readonly project?: string;
  readonly parent?: string;
  readonly capability?: string;
  readonly model?: string;
  readonly q?: string;
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listAgents({ query: options as ListQuery });
  const stale = page.stale ? ['an engine is down: this list comes from a cache'] : [];
  const table = page.agents.length === 0 ? 'no agents' : renderAgents(page.agents);
  output.result(page, [table, ...stale, ...nextPageLine(page.nextCursor)].join('\n'));
};

const get = async ({ output, http }: CommandContext, id: string, at: AtOption): Promise<void> => {
  const agent = await (await http()).getAgent({ params: { id }, query: at });
  output.result(agent, renderAgent(agent));
};

type Action = 'pause' | 'resume' | 'terminate';
interface ControlOptions {
  readonly reason?: string;
  readonly yes?: boolean;
}

const IN_PROGRESS: Readonly<Record<Action, string>> = {
  pause: 'pausing the agent and its descendants',
  resume: 'resuming the agent',
  terminate: 'terminating the agent and its descendants',
};

const control = async (
  { output, http }: CommandContext,
  id: string,
  action: Action,
  { reason, yes }: ControlOptions,
): Promise<void> => {
  const { getAgent, terminateAgent, controlAgent } = await http();
  const params = { id };
  if (action === 'terminate' && yes !== true) await confirmEnd(await getAgent({ params }), askAtTerminal());
  const request =
    action === 'terminate'
      ? terminateAgent({ params, query: { reason } })
      : controlAgent({ params, body: { action, reason } });
  const agent = await withProgress(output, IN_PROGRESS[action], request);
  output.result(agent, `${id}: ${agent.state}`);
};

interface PageOptions {
  readonly limit: string;
  readonly cursor?: string;
}

const history = async ({ output, http }: CommandContext, id: string, options: PageOptions): Promise<void> => {
  const page = await (await http()).readHistory({ params: { id }, query: options });
  output.result(page, [...page.changes.map(renderChange), ...nextPageLine(page.nextCursor)].join('\n'));
};

const EXAMPLES = `
Examples:
  antiphon agent spawn Researcher --capabilities research --project website
  antiphon agent spawn --file researcher.toml --budget-usd 0.50
  antiphon agent list --state idle --project website
  antiphon agent pause researcher-7f3a --reason "waits for the customer"
  antiphon agent history researcher-7f3a`;

const addSpawn = (agent: Command, context: ContextOf): void => {
  agent
    .command('spawn [name]')
    .description('spawn an agent, from options or from a file')
    .option('--file <file>', 'a definition as .toml, .json or .yaml; options win over it')
    .option('--id <id>', 'id of the agent (default: a new one from the name)')
    .option('--base <id>', 'configured agent to start from (default: the default agent)')
    .option('--role <role>', 'its role')
    .option('--provider <name>', 'a configured or connected provider')
    .option('--model <model>', 'a model of the provider')
    .option('--system-prompt <text>', 'its system prompt')
    .option('--capabilities <list>', 'what tasks it can do, separated by commas')
    .option('--tools <list>', 'tools that it may call, separated by commas')
    .option('--project <name>', 'its project')
    .option('--position <name>', 'its position in the organisation')
    .option('--max-iterations <n>', 'model calls of one turn, 1 to 100')
    .option('--parent <id>', 'living agent whose child it becomes')
    .option('--queue', 'wait for a place if the tree is full, instead of failing')
    .option('--budget-tokens <n>', 'tokens that it and its descendants may spend')
    .option('--budget-usd <usd>', 'US dollars that it and its descendants may spend, such as 0.50')
    .option('--max-depth <n>', 'limit of a new tree: generations below the agent')
    .option('--max-children <n>', 'limit of a new tree: living children of one agent')
    .option('--max-agents <n>', 'limit of a new tree: living agents')
    .addHelpText('after', EXAMPLES)
    .action((name: string | undefined, options: SpawnOptions, command: Command) =>
      spawn(context(command), name, options),
    );
};

const addControl = (agent: Command, context: ContextOf): void => {
  const descriptions: Readonly<Record<Action, string>> = {
    pause: 'pause an agent and its descendants at the next step of their turns',
    resume: 'resume a paused agent, or one in the state error',
    terminate: 'end an agent and its descendants for good; their history stays readable',
  };
  for (const action of ['pause', 'resume', 'terminate'] as const) {
    const command = agent
      .command(`${action} <id>`)
      .description(descriptions[action])
      .option('--reason <text>', 'why; the history shows it');
    if (action === 'terminate')
      command.option('--yes', 'do not ask before the end of an agent of the configuration, which is final');
    command
      .addHelpText('after', `\nExample:\n  antiphon agent ${action} researcher-7f3a --reason "a reason"`)
      .action((id: string, options: ControlOptions, self: Command) =>
        control(context(self), id, action, options),
      );
  }
};

/** Adds `antiphon agent spawn|list|get|set|metrics|capabilities|pause|resume|terminate|history`. */
export const addAgent = (program: Command, context: ContextOf): void => {
  const agent = program
    .command('agent')
    .description('spawn, list, change, pause, resume and terminate agents')
    .addHelpText('after', EXAMPLES);
  addSpawn(agent, context);
  agent
    .command('list')
    .description('list agents, configured and spawned')
    .option('--state <state>', 'spawning, idle, working, paused, error or terminated')
    .option('--project <name>', 'only agents of this project')
    .option('--parent <id>', 'only children of this agent')
    .option('--capability <name>', 'only agents with this capability')
    .option('--model <model>', 'only agents of this model')
    .option('--q <text>', 'part of the id, name, role or project')
    .option('--limit <n>', 'agents per page, 1 to 1000', '100')
    .option('--cursor <cursor>', 'start after this page')
    .addHelpText('after', '\nExample:\n  antiphon agent list --state working --project website')
    .action((options: ListOptions, command: Command) => list(context(command), options));
  agent
    .command('get <id>')
    .description('show one agent: its state, its definition and its result')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText('after', '\nExample:\n  antiphon agent get researcher-7f3a')
    .action((id: string, at: AtOption, command: Command) => get(context(command), id, at));
  addAgentSet(agent, context);
  addAgentMetrics(agent, context);
  addControl(agent, context);
  agent
    .command('history <id>')
    .description("show the changes of an agent's state, newest first")
    .option('--limit <n>', 'changes per page, 1 to 1000', '100')
    .option('--cursor <cursor>', 'start after this page')
    .addHelpText('after', '\nExample:\n  antiphon agent history researcher-7f3a --limit 20')
    .action((id: string, options: PageOptions, command: Command) => history(context(command), id, options));
};
