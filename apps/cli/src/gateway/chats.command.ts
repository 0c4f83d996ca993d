import type { ChatView } from '@antiphon/contracts/agent';
import type { Command } from 'commander';
import { nextPageLine } from '../connection/gateway-http.js';
import { escapeText } from '../escape-text.js';
import type { CommandContext, ContextOf } from '../output.js';

interface ChatsOptions {
  readonly workspace: string;
  readonly limit?: string;
  readonly cursor?: string;
}

const render = ({ id, name, agentId, createdAt }: ChatView): string =>
  `${id}  ${createdAt}  ${agentId.padEnd(16)} ${escapeText(name)}`;

const list = async ({ output, http }: CommandContext, options: ChatsOptions): Promise<void> => {
  const { workspace, limit = '50', cursor } = options;
  const page = await (await http()).listChats({ params: { id: workspace }, query: { limit, cursor } });
  const lines = page.chats.length === 0 ? ['no chats'] : page.chats.map(render);
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

const rename = async (
  { output, http }: CommandContext,
  [chat, name]: readonly [string, string],
  { workspace: id }: ChatsOptions,
): Promise<void> => {
  const renamed = await (await http()).renameChat({ params: { id, chat }, body: { name } });
  output.result(renamed, render(renamed));
};

const remove = async (
  { output, http }: CommandContext,
  chat: string,
  { workspace: id }: ChatsOptions,
): Promise<void> => {
  const deleted = await (await http()).deleteChat({ params: { id, chat } });
  output.result(deleted, `${escapeText(deleted.name)}: deleted`);
};

const EXAMPLES = `
Examples:
  antiphon chats list
  antiphon chats rename notes "notes of June"
  antiphon chats delete "notes of June"`;

/** Adds `antiphon chats list|rename|delete`. */
export const addChats = (program: Command, context: ContextOf): void => {
  const chats = program
    .command('chats')
    .description('list, rename and delete the chats of a workspace')
    .addHelpText('after', EXAMPLES);
  const add = (name: string, description: string): Command =>
    chats.command(name).description(description).option('--workspace <id>', 'the workspace', 'default');
  add('list', 'list chats, oldest first')
    .option('--limit <n>', 'chats per page, 1 to 200', '50')
    .option('--cursor <cursor>', 'start after this page')
    .action((options: ChatsOptions, command: Command) => list(context(command), options));
  add('rename <chat> <name>', 'give a chat another name, and its file another path').action(
    (chat: string, name: string, options: ChatsOptions, command: Command) =>
      rename(context(command), [chat, name], options),
  );
  add('delete <chat>', 'remove a chat and its file; its session stays in the log').action(
    (chat: string, options: ChatsOptions, command: Command) => remove(context(command), chat, options),
  );
};
