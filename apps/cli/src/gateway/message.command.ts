import type { RouteRequest } from '@antiphon/client';
import { invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import { nextPageLine } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';
import { renderMessage, withProgress } from './agent-views.js';
import { readInput } from './chat.command.js';

/** Options of `message send`. */
export interface SendOptions {
  readonly to?: string;
  readonly topic?: string;
  readonly everyone?: boolean;
  readonly type?: string;
  readonly cause?: string;
}

/** Types whose content is a text. */
const TEXT_TYPES: ReadonlySet<string> = new Set(['AgentSpoke', 'Request']);

const contentOf = (type: string, text: string): unknown => {
  if (TEXT_TYPES.has(type)) return { text };
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw invalid('CLI.USAGE', `a message of the type ${type} needs JSON, such as '{"version":2}'`);
  }
};

/** Returns the body that sends a message. Throws `CLI.USAGE`. */
export const messageOf = (text: string, options: SendOptions): Record<string, unknown> => {
  const { to: agent, topic, everyone, type = 'AgentSpoke', cause } = options;
  const targets = [
    ...(agent === undefined ? [] : [{ agent }]),
    ...(topic === undefined ? [] : [{ topic }]),
    ...(everyone === true ? [{ everyone }] : []),
  ];
  if (targets.length !== 1)
    throw invalid('CLI.USAGE', 'name one recipient: --to AGENT, --topic TOPIC or --everyone');
  return { to: targets[0], type, content: contentOf(type, text), cause };
};

const send = async ({ output, http }: CommandContext, text: string, options: SendOptions): Promise<void> => {
  const body = messageOf(text === '-' ? await readInput() : text, options);
  const sending = (await http()).sendMessage({ body: body as RouteRequest<'sendMessage'>['body'] });
  const sent = await withProgress(output, 'sending the message', sending);
  output.result(sent, sent.messageId);
};

interface ListOptions {
  readonly limit: string;
  readonly cursor?: string;
}

const list = async (
  { output, http }: CommandContext,
  agent: string | undefined,
  options: ListOptions,
): Promise<void> => {
  const { listMessages, listWorkspaceMessages } = await http();
  const page = await (agent === undefined
    ? listWorkspaceMessages({ query: options })
    : listMessages({ params: { id: agent }, query: options }));
  const lines = page.messages.length === 0 ? ['no messages'] : page.messages.map(renderMessage);
  output.result(page, [...lines, ...nextPageLine(page.nextCursor)].join('\n'));
};

const setSubscription = async (
  { output, http }: CommandContext,
  agent: string,
  topic: string,
  verb: 'subscribe' | 'unsubscribe',
): Promise<void> => {
  const routes = await http();
  const reply = await routes[verb]({ params: { id: agent, topic } });
  output.result(reply, `${agent}: ${reply.topics.length === 0 ? 'no topics' : reply.topics.join(', ')}`);
};

const EXAMPLES = `
Examples:
  antiphon message send "Please look at the tide tables first." --to researcher-7f3a
  antiphon message send '{"version":2}' --type Custom --topic releases
  antiphon message subscribe researcher-7f3a releases
  antiphon message list researcher-7f3a`;

/** Adds `antiphon message send|list|subscribe|unsubscribe`. */
export const addMessage = (program: Command, context: ContextOf): void => {
  const message = program
    .command('message')
    .description('send messages to agents, and list what they got')
    .addHelpText('after', EXAMPLES);
  message
    .command('send')
    .description('send a message to an agent, a topic or everyone; agents read it at their next step')
    .argument('<content>', 'the text, or JSON for other types than AgentSpoke, or - for standard input')
    .option('--to <agent>', 'the agent that gets it')
    .option('--topic <topic>', 'the topic whose subscribers get it')
    .option('--everyone', 'every agent of the workspace gets it')
    .option('--type <type>', 'type of the message (default: AgentSpoke)')
    .option('--cause <id>', 'id of the event or message that caused it')
    .addHelpText('after', EXAMPLES)
    .action((content: string, options: SendOptions, command: Command) =>
      send(context(command), content, options),
    );
  message
    .command('list [agent]')
    .description('list the messages of an agent, or of all agents, newest first')
    .option('--limit <n>', 'messages per page, 1 to 500', '100')
    .option('--cursor <cursor>', 'start after this page')
    .addHelpText('after', '\nExample:\n  antiphon message list researcher-7f3a')
    .action((agent: string | undefined, options: ListOptions, command: Command) =>
      list(context(command), agent, options),
    );
  for (const [verb, description] of [
    ['subscribe', 'subscribe an agent to a topic'],
    ['unsubscribe', 'end the subscription of an agent'],
  ] as const)
    message
      .command(`${verb} <agent> <topic>`)
      .description(description)
      .addHelpText('after', `\nExample:\n  antiphon message ${verb} researcher-7f3a releases`)
      .action((agent: string, topic: string, _: unknown, command: Command) =>
        setSubscription(context(command), agent, topic, verb),
      );
};
