import type { RouteReply } from '@antiphon/client';
import { notFound } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { AtOption } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';
import { renderTable } from './agent-views.js';
import { addMcp, mcpLines, showMcpServer } from './mcp.command.js';

type Catalogue = RouteReply<'listTools'>;
type Tool = Catalogue['tools'][number];

const callsOf = ({ calls }: Tool): string => {
  if (calls === null) return '-';
  return calls.count === 0 ? 'never called' : `${calls.count}, ${calls.failures} failed`;
};

const sourceOf = ({ source, workers }: Tool): string =>
  workers === null ? source : `${source}, ${workers} ${workers === 1 ? 'worker' : 'workers'}`;

const rowOf = (tool: Tool): string[] => [
  tool.name,
  sourceOf(tool),
  tool.capabilities.join(', ') || '-',
  String(tool.agentCount),
  String(tool.agents.filter(({ approval }) => approval !== null).length),
  callsOf(tool),
];

/** Returns what is missing: plug-ins that are not loaded, and names without a tool. */
const renderMissing = ({ plugins, unknown, hasPlugins }: Catalogue): string[] => [
  ...(hasPlugins ? [] : ['the sandbox does not respond: tools of plug-ins are missing']),
  ...(plugins ?? []).map(({ name, status, reason }) => `plug-in ${name} is ${status}: ${reason ?? ''}`),
  ...unknown.map(({ name, agents }) => `no tool is named ${name}, which ${agents.join(', ')} should have`),
];

const list = async ({ output, http }: CommandContext, query: AtOption): Promise<void> => {
  const client = await http();
  const [catalogue, { servers }] = await Promise.all([client.listTools({ query }), client.listMcpServers()]);
  const header = ['TOOL', 'SOURCE', 'MAY REACH', 'AGENTS', 'WITH APPROVAL', 'CALLS IN 24 H'];
  const table = renderTable(header, catalogue.tools.map(rowOf));
  output.result(catalogue, [table, ...mcpLines(servers), ...renderMissing(catalogue)].join('\n'));
};

const renderTool = (tool: Tool): string[] => [
  `${tool.name}  (${sourceOf(tool)})`,
  tool.description,
  `module      ${tool.moduleDigest ?? 'none'}`,
  `may reach   ${tool.capabilities.join(', ') || 'nothing outside'}`,
  `limits      ${tool.timeoutMs ?? 'no'} ms, ${tool.memoryMb ?? 'no'} MiB`,
  `idempotent  ${tool.isIdempotent ? 'yes' : 'no'}`,
  `calls       ${callsOf(tool)} in 24 h`,
  ...tool.agents.map(({ id, approval }) => {
    const rule = approval === null ? 'no approval' : `approval ${approval.ask}, by ${approval.answerBy}`;
    return `agent       ${id}: ${rule}`;
  }),
  JSON.stringify(tool.inputSchema, null, 2),
];

const show = async (context: CommandContext, name: string, query: AtOption): Promise<void> => {
  const { output, http } = context;
  const { tools } = await (await http()).listTools({ query });
  const tool = tools.find((one) => one.name === name);
  if (!tool && (await showMcpServer(context, name))) return;
  if (!tool) throw notFound('TOOL.UNKNOWN', `there is no tool named "${name}": see antiphon tool list`);
  output.result(tool, renderTool(tool).join('\n'));
};

const AT = ['--at <position>', 'agents and calls as of this position of the log (default: now)'] as const;

/** Adds `antiphon tool list|show`, and the commands of MCP servers. */
export const addTool = (program: Command, context: ContextOf): void => {
  const tool = program
    .command('tool')
    .description('list the tools that agents may have, and add MCP servers');
  tool
    .command('list')
    .description('list all tools with their sources and workers, and plug-ins that are not loaded')
    .option(...AT)
    .addHelpText('after', '\nExample:\n  antiphon tool list')
    .action((at: AtOption, command: Command) => list(context(command), at));
  tool
    .command('show <name>')
    .description('show a tool: its arguments, limits, agents and approval rules')
    .option(...AT)
    .addHelpText('after', '\nExample:\n  antiphon tool show calculator')
    .action((name: string, at: AtOption, command: Command) => show(context(command), name, at));
  addMcp(tool, context);
};
