import type { RememberingTurn } from '@antiphon/contracts/agent';
import type { MemoryEntry } from '@antiphon/contracts/memory';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { AtOption } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';

interface QueryOptions {
  readonly session?: string;
  readonly agent?: string;
  readonly limit: string;
  readonly at?: string;
  readonly superseded?: boolean;
  readonly full?: boolean;
}

const renderEntry = ({ memoryId, text, learnedAt, supersededAt, source }: MemoryEntry): string => {
  const end = supersededAt === null ? '' : `, replaced ${supersededAt}`;
  const message = source === null ? '' : `\n  from turn ${source.turnId}: ${source.content}`;
  return `${memoryId}  ${text}  (learned ${learnedAt}${end})${message}`;
};

const query = async (
  { output, http }: CommandContext,
  text: string | undefined,
  { session, agent, limit, at, superseded, full }: QueryOptions,
): Promise<void> => {
  if ((session === undefined) === (agent === undefined))
    throw invalid('CLI.USAGE', 'name one of --session ID and --agent ID');
  const flags = { detail: full ? ('full' as const) : undefined, superseded: superseded ? 'true' : undefined };
  const page = await (
    await http()
  ).queryMemory({
    query: { session, agent, limit, at, query: text, ...flags },
  });
  const lines = page.entries.length === 0 ? ['memory has no such entries'] : page.entries.map(renderEntry);
  output.result(page, [...lines, `as of position ${page.position} of ${page.head}`].join('\n'));
};

const show = async ({ output, http }: CommandContext, id: string, at: AtOption): Promise<void> => {
  const entry = await (await http()).recallMemory({ params: { memoryId: id }, query: at });
  output.result(entry, renderEntry(entry));
};

interface TurnsOptions extends AtOption {
  readonly limit: string;
  readonly cursor?: string;
}

const renderTurn = ({ turnId, sessionId, requestedAt, content }: RememberingTurn): string =>
  `${requestedAt}  turn ${turnId} of session ${sessionId}${content === null ? '' : `\n  ${content}`}`;

const turns = async ({ output, http }: CommandContext, id: string, query: TurnsOptions): Promise<void> => {
  const page = await (await http()).listTurnsOfEntry({ params: { memoryId: id }, query });
  const lines =
    page.turns.length === 0 ? ['no turn of this page used the entry'] : page.turns.map(renderTurn);
  const more = page.nextCursor === null ? [] : [`older turns: --cursor ${page.nextCursor}`];
  output.result(page, [...lines, ...more].join('\n'));
};

const EXAMPLES = `
Examples:
  antiphon memory query --agent main
  antiphon memory query "where does she live" --session 01998f3e-6c1a-7b52-9d0e-5a4c3b2a1f00
  antiphon memory query --agent main --superseded --at 1024
  antiphon memory show 01998f42-3d22-7e5f-a0b1-c2d3e4f5a6b7
  antiphon memory turns 01998f42-3d22-7e5f-a0b1-c2d3e4f5a6b7`;

/** Adds `antiphon memory query|show|turns`. */
export const addMemory = (program: Command, context: ContextOf): void => {
  const memory = program
    .command('memory')
    .description('query what agents have learned from conversations')
    .addHelpText('after', EXAMPLES);
  memory
    .command('query [text]')
    .description('list entries, newest first, or those that match a text, most relevant first')
    .option('--session <id>', 'entries of the key of this session')
    .option('--agent <id>', 'entries of all sessions of this agent')
    .option('--at <position>', 'as of this position of the log (default: now)')
    .option('--superseded', 'list entries that newer ones replaced, too')
    .option('--full', 'print the message that each entry was learned from')
    .option('--limit <n>', 'entries, 1 to 100', '20')
    .addHelpText('after', EXAMPLES)
    .action((text: string | undefined, options: QueryOptions, command: Command) =>
      query(context(command), text, options),
    );
  memory
    .command('show <id>')
    .description('print one entry with the message that it was learned from')
    .option('--at <position>', 'as of this position of the log')
    .addHelpText('after', '\nExample:\n  antiphon memory show 01998f42-3d22-7e5f-a0b1-c2d3e4f5a6b7')
    .action((id: string, at: AtOption, command: Command) => show(context(command), id, at));
  memory
    .command('turns <id>')
    .description('list the turns whose context had an entry, newest first')
    .option('--at <position>', 'as of this position of the log')
    .option('--limit <n>', 'turns to compare with the entry, 1 to 50', '20')
    .option('--cursor <cursor>', 'older turns, from the page before')
    .addHelpText('after', '\nExample:\n  antiphon memory turns 01998f42-3d22-7e5f-a0b1-c2d3e4f5a6b7')
    .action((id: string, options: TurnsOptions, command: Command) => turns(context(command), id, options));
};
