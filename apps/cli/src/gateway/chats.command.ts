import type { RouteRequest } from '@antiphon/client';
import type { ChatView, ListedChat } from '@antiphon/contracts/agent';
import type { Command } from 'commander';
import { nextPageLine } from '../connection/gateway-http.js';
import { escapeText } from '../escape-text.js';
import type { CommandContext, ContextOf } from '../output.js';

interface ChatsOptions {
  readonly workspace: string;
  readonly limit?: string;
  readonly cursor?: string;
}

interface ListOptions extends ChatsOptions {
  readonly agent?: string;
  readonly agentPart?: string;
  readonly state?: string;
  readonly q?: string;
  readonly since?: string;
  readonly until?: string;
  readonly recent?: boolean;
}

const render = ({ id, name, agentId, createdAt }: ChatView): string =>
  `${id}  ${createdAt}  ${agentId.padEnd(16)} ${escapeText(name)}`;

/** Renders a chat of a list, with what it does if the list says so. */
const renderListed = ({ state, turns, lastAt, ...chat }: ListedChat): string =>
  state === undefined ? render(chat) : `${render(chat)}  ${state}, ${turns} turns, ${lastAt ?? 'archived'}`;

const list = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const { workspace, limit = '50', recent = false, ...filter } = options;
  const query = { ...filter, limit, ...(recent ? { order: 'recent' } : {}) };
  const page = await (
    await http()
  ).listChats({ params: { id: workspace }, query: query as RouteRequest<'listChats'>['query'] });
  const lines = page.chats.length === 0 ? ['no chats'] : page.chats.map(renderListed);
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

interface BranchOptions extends ChatsOptions {
  readonly at: string;
  readonly ownFiles?: boolean;
  readonly agent?: string;
}

const branch = async (
  { output, http }: CommandContext,
  [chat, content]: readonly [string, string | undefined],
  { workspace: id, at: atMessage, ownFiles = false, agent }: BranchOptions,
): Promise<void> => {
  const body = { atMessage, files: ownFiles ? ('own' as const) : ('shared' as const), content, agent };
  const made = await (await http()).branchChat({ params: { id, chat }, body });
  output.result(made, render(made));
};

const branches = async (
  { output, http }: CommandContext,
  chat: string,
  { workspace: id }: ChatsOptions,
): Promise<void> => {
  const family = await (await http()).listChatBranches({ params: { id, chat } });
  output.result(family, family.chats.map(render).join('\n'));
};

const EXAMPLES = `
Examples:
  antiphon chats list --recent --q tides
  antiphon chats rename notes "notes of June"
  antiphon chats branch notes "Shorter, please" --at <turn id>
  antiphon chats branches notes
  antiphon chats delete "notes of June"`;

/** Adds `antiphon chats list|rename|branch|branches|delete`. */
export const addChats = (program: Command, context: ContextOf): void => {
  const chats = program
    .command('chats')
    .description('list, rename, branch and delete the chats of a workspace')
    .addHelpText('after', EXAMPLES);
  const add = (name: string, description: string): Command =>
    chats.command(name).description(description).option('--workspace <id>', 'the workspace', 'default');
  add('list', 'list chats, oldest first; with --recent or a filter the most recently active first')
    .option('--recent', 'the most recently active first, with state, turns and last activity')
    .option('--agent <id>', 'only chats with this agent')
    .option('--agent-part <text>', 'only chats whose agent id contains this text')
    .option('--state <state>', 'idle, working or waiting')
    .option('--q <words>', 'only chats with these words in the name or the first message')
    .option('--since <time>', 'only those with activity since then, ISO 8601')
    .option('--until <time>', 'only those without activity since then, ISO 8601')
    .option('--limit <n>', 'chats per page, 1 to 200', '50')
    .option('--cursor <cursor>', 'start after this page')
    .action((options: ListOptions, command: Command) => list(context(command), options));
  add('rename <chat> <name>', 'give a chat another name, and its file another path').action(
    (chat: string, name: string, options: ChatsOptions, command: Command) =>
      rename(context(command), [chat, name], options),
  );
  add('branch <chat> [text]', 'continue before a message on a chat of its own; the first one stays')
    .requiredOption('--at <turn>', 'turn of the message that the branch replaces')
    .option('--own-files', 'a copy of the files as of the message. Default: those of the workspace')
    .option('--agent <id>', 'the agent that answers. Default: the one of the chat')
    .action((chat: string, text: string | undefined, options: BranchOptions, command: Command) =>
      branch(context(command), [chat, text], options),
    );
  add('branches <chat>', 'list a chat with all its branches').action(
    (chat: string, options: ChatsOptions, command: Command) => branches(context(command), chat, options),
  );
  add('delete <chat>', 'remove a chat and its file; its session stays in the log').action(
    (chat: string, options: ChatsOptions, command: Command) => remove(context(command), chat, options),
  );
};
