import { randomUUID } from 'node:crypto';
import { AppError, invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext } from '../command-context.js';
import { chat, type ChatFrame } from './chat-client.js';

interface ChatOptions {
  readonly agent?: string;
  readonly session?: string;
  readonly channel: string;
  readonly account: string;
  readonly peer: string;
}

/** Messages are as large as a frame at most; more than that is refused by the gateway anyway. */
const MAX_INPUT_BYTES = 1024 * 1024;

const readInput = async (): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_INPUT_BYTES) throw invalid('CLI.USAGE', 'the message on standard input is over 1 MiB');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8').trimEnd();
};

const requestOf = (content: string, options: ChatOptions) => {
  const { agent, session, channel, account, peer } = options;
  const idempotencyKey = randomUUID();
  if (session !== undefined)
    return { method: 'session.send', params: { sessionId: session, content, idempotencyKey } };
  const named = agent === undefined ? {} : { agent };
  return { method: 'chat.send', params: { channel, account, peer, content, idempotencyKey, ...named } };
};

interface FrameData {
  readonly name?: string;
  readonly approvalId?: string;
  readonly input?: unknown;
  readonly content?: string;
  readonly code?: string;
  readonly message?: string;
  readonly status?: string;
}

const textOf = ({ event, data }: ChatFrame): string => {
  const fields = (typeof data === 'object' && data !== null ? data : {}) as FrameData;
  if (event === 'text') return String(data);
  if (event === 'tool_use') return `[${fields.name} ${JSON.stringify(fields.input)}]\n`;
  if (event === 'tool_result') return `[= ${fields.content}]\n`;
  if (event === 'approval')
    return `[waits for somebody's word: antiphon approvals approve|deny ${fields.approvalId}]\n`;
  if (event === 'approval_update') return `[${fields.status}]\n`;
  if (event === 'restart') return '\n[the answer begins again]\n';
  return '';
};

/** The failure that a turn ended with, as the error that sets the exit code. */
const failureOf = (frame: ChatFrame | undefined): AppError | undefined => {
  if (frame?.event !== 'error') return undefined;
  const { code = 'TURN.FAILED', message = 'the turn failed' } = frame.data as FrameData;
  return new AppError(code.startsWith('BUDGET.') ? 'exhausted' : 'provider', code, message);
};

const runChat = async (
  { output, gateway }: CommandContext,
  text: string,
  options: ChatOptions,
): Promise<void> => {
  const content = text === '-' ? await readInput() : text;
  let failure: ChatFrame | undefined;
  const result = await chat(gateway(), requestOf(content, options), (frame) => {
    if (frame.event === 'error') failure = frame;
    if (output.json) output.line(frame, '');
    else output.piece(textOf(frame));
  });
  if (result !== undefined) output.result(result, JSON.stringify(result));
  else output.piece('\n');
  const error = failureOf(failure);
  if (error) throw error;
};

/** `antiphon chat [--agent ID] [--session ID] TEXT|-` */
export const addChat = (program: Command, context: (command: Command) => CommandContext): void => {
  program
    .command('chat')
    .description('say something to an agent and print its answer as it comes')
    .argument('<text>', 'the message, or - to read it from standard input')
    .option('--agent <id>', 'this agent instead of the one that the bindings choose')
    .option('--session <id>', 'go on with this session')
    .option('--channel <name>', 'where the message comes from', 'cli')
    .option('--account <name>', 'the account on that channel', 'local')
    .option('--peer <name>', 'who speaks', 'user')
    .addHelpText(
      'after',
      '\nExamples:\n  antiphon chat "What is 6 times 7?"\n  git diff | antiphon chat --agent reviewer -',
    )
    .action((text: string, options: ChatOptions, command: Command) =>
      runChat(context(command), text, options),
    );
};
