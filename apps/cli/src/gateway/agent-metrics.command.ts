import type { RouteReply } from '@antiphon/client';
import type { Command } from 'commander';
import { type AtOption, nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';
import { renderTable } from './agent-views.js';

type Page = RouteReply<'listAgentMetrics'>;
interface MetricsOptions extends AtOption {
  readonly limit: string;
  readonly cursor?: string;
}

const MICRO_USD = 1_000_000;
const MIB = 1_048_576;
const inMib = (bytes: number): string => `${(bytes / MIB).toFixed(1)} MiB`;

const rowOf = ({ agentId, latest, today }: Page['agents'][number]): string[] => [
  agentId,
  latest?.at ?? 'no sample yet',
  ...(latest
    ? [`${Math.round(latest.cpuMs)} ms`, inMib(latest.memoryBytes), inMib(latest.diskBytes)]
    : ['-', '-', '-']),
  today ? String(today.settledTokens) : '-',
  today ? (today.settledMicroUsd / MICRO_USD).toFixed(4) : '-',
];

const metrics = async (
  { output, http }: CommandContext,
  ids: readonly string[],
  options: MetricsOptions,
): Promise<void> => {
  const query = { ...options, ...(ids.length > 0 && { agents: ids.join(',') }) };
  const page = await (await http()).listAgentMetrics({ query });
  const header = ['ID', 'SAMPLE', 'CPU', 'MEMORY', 'DISK', 'TOKENS TODAY', 'USD TODAY'];
  const table = page.agents.length === 0 ? 'no agents' : renderTable(header, page.agents.map(rowOf));
  output.result(page, [table, ...nextPageLine(page.nextCursor)].join('\n'));
};

const capabilities = async ({ output, http }: CommandContext, at: AtOption): Promise<void> => {
  const reply = await (await http()).listCapabilities({ query: at });
  const rows = reply.capabilities.map(({ name, count, agents }) => [
    name,
    String(count),
    agents.map(({ id, state }) => `${id} (${state})`).join(', '),
  ]);
  output.result(
    reply,
    rows.length === 0 ? 'no capabilities' : renderTable(['CAPABILITY', 'COUNT', 'AGENTS'], rows),
  );
};

/** Adds `antiphon agent metrics|capabilities`. */
export const addAgentMetrics = (agent: Command, context: ContextOf): void => {
  agent
    .command('metrics [ids...]')
    .description('show the newest sample of agents, and their tokens and cost of the day')
    .option('--limit <n>', 'agents per page, 1 to 1000', '100')
    .option('--cursor <cursor>', 'start after this page')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText('after', '\nExample:\n  antiphon agent metrics main researcher-7f3a')
    .action((ids: string[], options: MetricsOptions, command: Command) =>
      metrics(context(command), ids, options),
    );
  agent
    .command('capabilities')
    .description('list what agents can do, and who can do it')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText('after', '\nExample:\n  antiphon agent capabilities')
    .action((at: AtOption, command: Command) => capabilities(context(command), at));
};
