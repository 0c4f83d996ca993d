import { randomUUID } from 'node:crypto';
import { AppError, invalid } from '@antiphon/kernel';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';
import type { GatewayAddress } from '../connection/gateway-address.js';
import type { ChatFrame, ChatRequest } from './chat-client.js';
import { Detachment } from './detach.js';

interface ChatOptions {
  readonly role?: string;
  readonly chat?: string;
  readonly workspace: string;
  readonly agent?: string;
  readonly session?: string;
  readonly channel: string;
  readonly account: string;
  readonly peer: string;
}

/** Maximum size of a message, bytes; the gateway refuses larger frames. */
const MAX_INPUT_BYTES = 1024 * 1024;

/** Reads a text from standard input. Throws `CLI.USAGE` if it is too long, or empty. */
export const readInput = async (): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_INPUT_BYTES) throw invalid('CLI.USAGE', 'the message on standard input is over 1 MiB');
    chunks.push(chunk);
  }
  // Removes a byte order mark, which programs of Windows write.
  const text = new TextDecoder().decode(Buffer.concat(chunks)).trimEnd();
  if (text === '')
    throw invalid('CLI.USAGE', 'there is no text on standard input; pipe one, or give it as an argument');
  return text;
};

const toRequest = (content: string, options: ChatOptions): ChatRequest => {
  const { agent, session: sessionId, channel, account, peer } = options;
  const idempotencyKey = randomUUID();
  return sessionId === undefined
    ? { method: 'chat.send', params: { channel, account, peer, content, idempotencyKey, agent } }
    : { method: 'session.send', params: { sessionId, content, idempotencyKey } };
};

export interface FrameData {
  readonly name?: string;
  readonly approvalId?: string;
  readonly input?: unknown;
  readonly content?: string;
  readonly code?: string;
  readonly message?: string;
  readonly status?: string;
  readonly preview?: string;
  readonly remedy?: string;
}

/** Renders why a turn waits, and what to do. */
export const blockedNotice = ({ message, remedy }: FrameData): string =>
  `[waits: ${message ?? 'the agent may not continue'}. What to do: ${remedy ?? 'wait'}]`;

/** Renders the change of files that an approval is about. */
const renderPreview = ({ preview }: FrameData): string => (preview === undefined ? '' : `${preview}\n`);

/** Renders the frames of one turn as text. */
export class ChatRenderer {
  /** True while text of the current model call is shown: only then does a restart void any. */
  private hasShownText = false;

  render({ event, data }: ChatFrame): string {
    const fields = (typeof data === 'object' && data !== null ? data : {}) as FrameData;
    switch (event) {
      case 'text':
        this.hasShownText ||= String(data) !== '';
        return String(data);
      case 'blocked':
        return `${blockedNotice(fields)}\n`;
      case 'restart':
        return this.restart();
      case 'tool_use':
        return `[${fields.name} ${JSON.stringify(fields.input)}]\n`;
      case 'progress':
        return fields.message === undefined ? '' : `[${fields.name}: ${fields.message}]\n`;
      case 'tool_result':
        return `[= ${fields.content}]\n`;
      case 'usage':
        // Ends a model call: its text is final, and a later restart voids only what follows.
        this.hasShownText = false;
        return '';
      case 'approval':
        return `${renderPreview(fields)}[waits for an approval: antiphon approvals approve|deny ${fields.approvalId}]\n`;
      case 'approval_update':
        return `[${fields.status}]\n`;
      default:
        return '';
    }
  }

  private restart(): string {
    const note = this.hasShownText ? '\n[the answer starts again]\n' : '';
    this.hasShownText = false;
    return note;
  }
}

/** Returns the notice of an answer that ends early; null for one that the model finished. */
export const cutNotice = ({
  event,
  data,
}: {
  readonly event: string;
  readonly data: unknown;
}): string | null => {
  const cutBy = event === 'done' ? (data as { readonly cut_by?: unknown }).cut_by : undefined;
  if (cutBy === undefined) return null;
  return cutBy === 'length'
    ? 'cut: the answer reached its output limit'
    : 'cut: a filter of the provider ended the answer';
};

/** Returns the failure that a turn ended with, as the error that sets the exit code. */
const toFailure = (frame: ChatFrame): AppError => {
  const { code = 'TURN.FAILED', message = 'the turn failed' } = frame.data as FrameData;
  return new AppError(code.startsWith('BUDGET.') ? 'exhausted' : 'provider', code, message);
};

const runChat = async (
  { output, gateway, ...rest }: CommandContext,
  text: string | undefined,
  options: ChatOptions,
): Promise<void> => {
  if (text === undefined)
    return (await import('./interactive-chat.js')).runInteractiveChat({ output, gateway, ...rest }, options);
  const content = text === '-' ? await readInput() : text;
  await printTurn(output, await gateway(), toRequest(content, options), new Detachment(output));
};

/** Sends a request and prints its frames until the turn has ended, or the user detaches. */
export const printTurn = async (
  output: CommandContext['output'],
  gateway: GatewayAddress,
  request: ChatRequest,
  detachment: Detachment,
): Promise<void> => {
  const { chat } = await import('./chat-client.js');
  const renderer = new ChatRenderer();
  let failure: AppError | undefined;
  let notice: string | null = null;
  const print = (frame: ChatFrame): void => {
    detachment.see(frame);
    if (frame.event === 'error') failure = toFailure(frame);
    notice ??= cutNotice(frame);
    if (output.json) output.line(frame, '');
    else output.piece(renderer.render(frame));
  };
  const { signal } = detachment;
  const result = await chat(gateway, request, print, { signal }).finally(() => detachment.end());
  if (signal.aborted) return;
  if (result !== undefined) output.result(result, JSON.stringify(result));
  else output.piece('\n');
  if (notice) output.note(`[${notice}]`);
  if (failure) throw failure;
};

/** Adds `antiphon chat [--agent ID] [--session ID] [TEXT|-]`. */
export const addChat = (program: Command, context: ContextOf): void => {
  program
    .command('chat')
    .description('send a message to an agent and print its answer while it arrives')
    .argument(
      '[text]',
      'the message, or - to read it from standard input; without it the chat is interactive',
    )
    .option('--agent <id>', 'use this agent instead of the one that the bindings choose')
    .option('--session <id>', 'continue this session')
    .option('--chat <name>', 'interactive: continue the chat with this name or id, or begin it')
    .option('--role <name>', 'interactive: the role of the agent of a new chat')
    .option('--workspace <id>', 'interactive: the workspace of the chat', 'default')
    .option('--channel <name>', 'the channel of the message', 'cli')
    .option('--account <name>', 'the account on that channel', 'local')
    .option('--peer <name>', 'the sender', 'user')
    .addHelpText(
      'after',
      '\nCtrl-C detaches: the turn continues, and the command that returns to it is printed.\nWithout a text each line is a message, and approvals are asked for in place; a second Ctrl-C cancels.\n\nExamples:\n  antiphon chat --chat notes\n  antiphon chat "What is 6 times 7?"\n  git diff | antiphon chat --agent reviewer -',
    )
    .action((text: string | undefined, options: ChatOptions, command: Command) =>
      runChat(context(command), text, options),
    );
};
