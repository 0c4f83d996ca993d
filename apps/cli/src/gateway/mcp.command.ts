import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { RouteReply } from '@antiphon/client';
import { invalid, notFound, rejected } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';

type Server = RouteReply<'listMcpServers'>['servers'][number];
type Tool = Server['tools'][number];

const isOpen = ({ state }: Tool): boolean => state !== 'pinned';

/** Name of a server from the host of its URL: `https://mcp.example.com/x` is `mcp-example-com`. */
const nameOf = (url: string): string => {
  const host = URL.parse(url)?.hostname;
  if (!host)
    throw invalid(
      'CLI.USAGE',
      `${JSON.stringify(url)} is not a URL: programs are added in the file of the operator`,
    );
  return host
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 24)
    .replaceAll(/^-|-$/g, '');
};

/** Returns a line for each server, for `tool list`. */
export const mcpLines = (servers: readonly Server[]): string[] =>
  servers.map(({ name, status, problem, tools }) => {
    const open = tools.filter(isOpen).length;
    const waits = open === 0 ? '' : `, ${open} to approve (antiphon tool show ${name})`;
    const why = problem === null ? '' : `: ${problem}`;
    return `MCP server ${name} is ${status}${why}, ${tools.length - open} tools${waits}`;
  });

const renderTool = ({ tool, name, state, description, pinned }: Tool): string[] =>
  state === 'pinned'
    ? [`${name}`]
    : [
        `${name}  (${state}: not called until it is approved)`,
        ...(pinned === null ? [] : [`  was  ${pinned}`]),
        `  is   ${description || tool}`,
      ];

const renderServer = (server: Server): string =>
  [
    `${server.name}  (MCP server of the ${server.origin === 'added' ? 'workspace' : 'configuration'})`,
    `reached by  ${server.url ?? 'standard input and output'}`,
    `status      ${server.status}${server.problem === null ? '' : `: ${server.problem}`}`,
    `protocol    ${server.protocol ?? 'not connected yet'}`,
    ...(server.addedBy === null ? [] : [`added by    ${server.addedBy} at ${server.addedAt ?? ''}`]),
    ...server.tools.flatMap(renderTool),
  ].join('\n');

/** Prints a server if there is one with this name. */
export const showMcpServer = async ({ output, http }: CommandContext, name: string): Promise<boolean> => {
  const { servers } = await (await http()).listMcpServers();
  const server = servers.find((one) => one.name === name);
  if (server) output.result(server, renderServer(server));
  return server !== undefined;
};

const add = async (
  { output, http }: CommandContext,
  url: string,
  { name = nameOf(url) }: { readonly name?: string },
): Promise<void> => {
  const server = await (await http()).addMcpServer({ params: { name }, body: { url } });
  output.result(server, renderServer(server));
};

const approve = async (
  { output, http }: CommandContext,
  name: string,
  names: readonly string[],
): Promise<void> => {
  const client = await http();
  const { servers } = await client.listMcpServers();
  const server = servers.find((one) => one.name === name);
  if (!server) throw notFound('MCP.NOT_FOUND', `there is no MCP server "${name}": see antiphon tool list`);
  const open = server.tools.filter(isOpen);
  const chosen =
    names.length === 0 ? open : open.filter((tool) => names.includes(tool.tool) || names.includes(tool.name));
  if (chosen.length === 0)
    throw rejected('MCP.NOTHING_TO_APPROVE', `no tool of "${name}" awaits this approval`);
  // The approval covers what is printed: each digest is that of the description above it.
  output.note(chosen.flatMap(renderTool).join('\n'));
  const tools = chosen.map(({ tool, digest }) => ({ tool, digest }));
  const after = await client.approveMcpTools({ params: { name }, body: { tools } });
  output.result(after, `${name}: ${chosen.length} approved`);
};

interface HttpOptions {
  readonly secret: string;
  readonly description: string;
  readonly schema?: string;
  readonly idempotent?: boolean;
  readonly timeoutMs?: number;
}

const readSchema = (cwd: string, file: string): Record<string, never> => {
  try {
    return JSON.parse(readFileSync(resolve(cwd, file), 'utf8')) as Record<string, never>;
  } catch (error) {
    throw invalid('CLI.USAGE', `${file} is not a file with JSON: ${String((error as Error).message)}`);
  }
};

const addHttp = async (
  { output, http, cwd }: CommandContext,
  name: string,
  url: string,
  { schema, ...options }: HttpOptions,
): Promise<void> => {
  const inputSchema = schema === undefined ? {} : { inputSchema: readSchema(cwd, schema) };
  const tool = await (await http()).addTool({ params: { name }, body: { url, ...options, ...inputSchema } });
  output.result(tool, `${name}: version ${tool.version}, called at ${url}`);
};

/** Removes an MCP server or, where there is none of this name, a remote tool. */
const remove = async ({ output, http }: CommandContext, name: string): Promise<void> => {
  const client = await http();
  const { servers } = await client.listMcpServers();
  if (servers.some((server) => server.name === name)) {
    const reply = await client.removeMcpServer({ params: { name } });
    return output.result(reply, `${name}: ${reply.removed ? 'removed with its tools' : 'was not added'}`);
  }
  const reply = await client.removeTool({ params: { name } });
  output.result(reply, `${name}: ${reply.removed ? 'removed' : 'was not added'}`);
};

/** Adds `antiphon tool add mcp|http`, `approve` and `remove`. */
export const addMcp = (tool: Command, context: ContextOf): void => {
  const adding = tool.command('add').description('add tools of others');
  adding
    .command('mcp <url>')
    .description('add an MCP server by its URL, and pin the descriptions of its tools')
    .option('--name <name>', 'name of the server, a part of the names of its tools; default: from the host')
    .addHelpText('after', '\nExample:\n  antiphon tool add mcp https://mcp.example.com/mcp --name docs')
    .action((url: string, options: { name?: string }, command: Command) =>
      add(context(command), url, options),
    );
  adding
    .command('http <name> <url>')
    .description('add a tool that is called over HTTP, with a signed POST for each call')
    .requiredOption('--secret <name>', 'stored secret that signs the calls (antiphon secret set)')
    .requiredOption('--description <text>', 'what the tool does, for models')
    .option('--schema <file>', 'file with the JSON Schema of the input; default: an empty object')
    .option('--idempotent', 'a call may be made again whose outcome is lost')
    .option('--timeout-ms <ms>', 'timeout of one try', Number)
    .addHelpText(
      'after',
      '\nExample:\n  antiphon tool add http invoice https://tools.example.com/invoice --secret invoices --description "Returns an invoice."',
    )
    .action((name: string, url: string, options: HttpOptions, command: Command) =>
      addHttp(context(command), name, url, options),
    );
  tool
    .command('approve <server> [tools...]')
    .description('approve changed and new descriptions of an MCP server: all, or those of the named tools')
    .addHelpText('after', '\nExample:\n  antiphon tool approve docs search')
    .action((server: string, tools: string[], _: unknown, command: Command) =>
      approve(context(command), server, tools),
    );
  tool
    .command('remove <name>')
    .description('remove an added MCP server with its tools, or a remote tool')
    .addHelpText('after', '\nExample:\n  antiphon tool remove docs')
    .action((name: string, _: unknown, command: Command) => remove(context(command), name));
};
