import { encodeCursor } from '@antiphon/contracts/log';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import { getJson } from '../connection/http-client.js';
import { addArchive } from './archive.command.js';

interface EventFilter {
  readonly type?: string;
  readonly agent?: string;
  readonly stream?: string;
  readonly severity?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly cursor?: string;
}
interface LoggedEvent {
  readonly position: number;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly type: string;
  readonly recordedAt: string;
  readonly data: unknown;
}
interface Page {
  readonly events: readonly LoggedEvent[];
  readonly nextCursor: string | null;
}

const FILTERS = ['type', 'agent', 'stream', 'severity', 'since', 'until', 'limit', 'cursor'] as const;
const MAX_WIDTH = 160;
const POLL_MS = 500;

const pathOf = (filter: EventFilter): string => {
  const query = new URLSearchParams();
  for (const name of FILTERS) if (filter[name] !== undefined) query.set(name, filter[name]);
  return `/api/v1/events?${query}`;
};

const render = (event: LoggedEvent): string =>
  `${String(event.position).padStart(7)} ${event.recordedAt} ${event.streamId}@${event.streamVersion} ${event.type} ${JSON.stringify(event.data)}`.slice(
    0,
    MAX_WIDTH,
  );

const list = async ({ output, gateway }: CommandContext, filter: EventFilter): Promise<void> => {
  const page = (await getJson(gateway(), pathOf(filter))) as Page;
  const rest = page.nextCursor === null ? [] : [`more: --cursor ${page.nextCursor}`];
  output.result(page, [...page.events.map(render), ...rest].join('\n'));
};

/** Prints what is there, then what comes, until it is stopped. */
const tail = async (
  { output, gateway }: CommandContext,
  filter: EventFilter,
  once: boolean,
): Promise<void> => {
  const address = gateway();
  let cursor = filter.cursor;
  for (;;) {
    const at = cursor === undefined ? {} : { cursor };
    const page = (await getJson(address, pathOf({ ...filter, ...at }))) as Page;
    for (const event of page.events) output.line(event, render(event));
    const last = page.events.at(-1);
    if (last) cursor = encodeCursor(last.position);
    if (page.nextCursor === null && once) return;
    if (page.nextCursor === null) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

const addFilters = (command: Command): Command =>
  command
    .option('--type <name>', 'event type, such as TurnCompleted')
    .option('--agent <id>', "only this agent's sessions")
    .option('--stream <id>', 'only this event stream')
    .option('--severity <level>', 'info, warning or error')
    .option('--since <time>', 'ISO 8601')
    .option('--until <time>', 'ISO 8601, exclusive')
    .option('--limit <n>', 'events a page, 1 to 1000', '100')
    .option('--cursor <cursor>', 'where an earlier page ended');

/** `antiphon events list|tail|archive|archives|restore` */
export const addEvents = (program: Command, context: ContextOf): void => {
  const events = program
    .command('events')
    .description('read the log; let old events leave it, and come back');
  addArchive(events, context);
  addFilters(events.command('list').description('one page of the log, oldest first'))
    .addHelpText('after', '\nExample:\n  antiphon events list --severity error --since 2026-11-21T00:00:00Z')
    .action((filter: EventFilter, command: Command) => list(context(command), filter));
  addFilters(events.command('tail').description('the log from the beginning, and on as it grows'))
    .option('--once', 'stop at the end of the log')
    .addHelpText('after', '\nExample:\n  antiphon events tail --type ToolCallCompleted --json')
    .action((filter: EventFilter & { once?: boolean }, command: Command) => {
      if (filter.until !== undefined && filter.once !== true)
        throw invalid('CLI.USAGE', '--until needs --once: a tail without an end cannot end');
      return tail(context(command), filter, filter.once === true);
    });
};
