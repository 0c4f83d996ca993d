import type { SearchResult } from '@antiphon/contracts/reference';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';

interface SearchOptions {
  readonly kinds?: string;
  readonly limit: string;
  readonly cursor?: string;
  readonly at?: string;
}

const renderResult = ({ kind, id, title, text, at }: SearchResult): string => {
  const time = at === null ? '' : `${at}  `;
  return `${time}${kind} ${id}${title === id || title === '' ? '' : `  ${title}`}${text === '' ? '' : `\n  ${text}`}`;
};

const search = async (
  { output, http }: CommandContext,
  words: readonly string[],
  options: SearchOptions,
): Promise<void> => {
  const page = await (await http()).search({ query: { q: words.join(' '), ...options } });
  const lines = page.results.length === 0 ? ['nothing is found'] : page.results.map(renderResult);
  const more = page.nextCursor === null ? [] : [`older results: --cursor ${page.nextCursor}`];
  output.result(page, [...lines, ...more].join('\n'));
};

const EXAMPLES = `
Examples:
  antiphon search tide tables
  antiphon search harbour --kinds message,answer --limit 50
  antiphon search "order 4711" --at 1024`;

/** Adds `antiphon search`. */
export const addSearch = (program: Command, context: ContextOf): void => {
  program
    .command('search <words...>')
    .description('find messages, answers, chats, tasks, files and agents by words, newest first')
    .option('--kinds <kinds>', 'chat, message, answer, task, file, agent, with commas between')
    .option('--limit <n>', 'maximum number of results', '20')
    .option('--cursor <cursor>', 'cursor of the page before')
    .option('--at <position>', 'as of this position of the log (default: now)')
    .addHelpText('after', EXAMPLES)
    .action((words: string[], options: SearchOptions, command: Command) =>
      search(context(command), words, options),
    );
};
