import type { ChatView, DeletedChat, listChats } from '@antiphon/contracts/agent';
import type { Command } from 'commander';
import type { z } from 'zod';
import { getJson, nextPageLine, requestJson } from '../connection/http-client.js';
import { escapeText } from '../escape-text.js';
import type { CommandContext, ContextOf } from '../output.js';

interface ChatsOptions {
  readonly workspace: string;
  readonly limit?: string;
  readonly cursor?: string;
}

type Page = z.output<typeof listChats.reply>;

const pathOf = ({ workspace }: ChatsOptions, chat?: string): string =>
  `/api/v1/workspaces/${encodeURIComponent(workspace)}/chats${chat === undefined ? '' : `/${encodeURIComponent(chat)}`}`;

const render = ({ id, name, agentId, createdAt }: ChatView): string =>
  `${id}  ${createdAt}  ${agentId.padEnd(16)} ${escapeText(name)}`;

const list = async ({ output, gateway }: CommandContext, options: ChatsOptions): Promise<void> => {
  const { limit = '50', cursor } = options;
  const query = new URLSearchParams({ limit, ...(cursor === undefined ? {} : { cursor }) });
  const page = await getJson<Page>(await gateway(), `${pathOf(options)}?${query}`);
  const lines = page.chats.length === 0 ? ['no chats'] : page.chats.map(render);
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

const rename = async (
  { output, gateway }: CommandContext,
  [chat, name]: readonly [string, string],
  options: ChatsOptions,
): Promise<void> => {
  const request = { method: 'PATCH', body: { name } } as const;
  const renamed = await requestJson<ChatView>(await gateway(), pathOf(options, chat), request);
  output.result(renamed, render(renamed));
};

const remove = async (
  { output, gateway }: CommandContext,
  chat: string,
  options: ChatsOptions,
): Promise<void> => {
  const deleted = await requestJson<DeletedChat>(await gateway(), pathOf(options, chat), {
    method: 'DELETE',
  });
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
