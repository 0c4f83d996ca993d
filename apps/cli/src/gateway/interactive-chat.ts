import { ClientError, createClient, type ChatEvent } from '@antiphon/client';
import { AppError } from '@antiphon/kernel';
import { KIND_OF_STATUS } from '../connection/gateway-http.js';
import { INTERRUPTED, type CommandContext } from '../output.js';
import { blockedNotice, cutNotice } from './chat.command.js';
import type { FrameData } from './chat.command.js';
import { ChatInput } from './chat-input.js';

export interface InteractiveOptions {
  readonly agent?: string;
  readonly role?: string;
  /** Id or name of the chat to continue. A new name begins a chat. */
  readonly chat?: string;
  readonly workspace: string;
}

type Client = ReturnType<typeof createClient>;
type Chat = Awaited<ReturnType<Client['http']['createChat']>>;

/** Time in which a second Ctrl-C cancels the turn, ms. */
const CANCEL_MS = 1_500;
const HELP = '/quit ends, /cancel stops the answer; Ctrl-C detaches, and a second one cancels';

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
const prefixed = (prefix: string, text: string): string =>
  text
    .split('\n')
    .map((line) => `${prefix} ${line}\n`)
    .join('');

/** Renders the arguments of a call. Those of an edit are shown as the lines that go and come. */
export const renderCall = (name: string, input: unknown): string => {
  const fields = (typeof input === 'object' && input !== null ? input : {}) as Record<string, unknown>;
  const { old: before, new: after, path } = fields;
  if (typeof before !== 'string' || typeof after !== 'string') return `[${name} ${textOf(input)}]\n`;
  return `[${name} ${textOf(path)}]\n${prefixed('-', before)}${prefixed('+', after)}`;
};

/** Renders the call of an approval: the change of files, or the arguments. */
const renderApproval = ({ preview, name, input }: ChatEvent['data']): string =>
  typeof preview === 'string' ? `[${textOf(name)}]\n${preview}\n` : renderCall(textOf(name), input);

const noticeLine = (notice: string | null): string => (notice === null ? '' : `[${notice}]\n`);

/** Renders an event of a chat as text for a terminal. */
export const renderChatEvent = ({ event, data }: ChatEvent): string => {
  switch (event) {
    case 'text':
      return textOf(data['text']);
    case 'call':
      return `\n${renderCall(textOf(data['name']), data['input'])}`;
    case 'observation':
      return `[${data['is_error'] === true ? 'failed: ' : '= '}${textOf(data['content'])}]\n`;
    case 'restart':
      return '\n[the answer starts again]\n';
    case 'error':
      return `\n[${textOf(data['code'])}: ${textOf(data['message'])}]\n`;
    case 'blocked':
      return `\n${blockedNotice(data as FrameData)}\n`;
    case 'approval':
      return `\n[waits for an approval]\n${renderApproval(data)}`;
    case 'approval_update':
      return `[${textOf(data['status'])}]\n`;
    case 'done':
      if (data['status'] !== 'completed') return `\n[${textOf(data['status'])}]\n`;
      return `\n${noticeLine(cutNotice({ event, data }))}`;
    default:
      return '';
  }
};

/** Returns the decision of an approval, which its digest binds to the call that was shown. */
export const decisionOf = ({ data }: ChatEvent, isApproved: boolean) => ({
  command: isApproved ? ('approve' as const) : ('deny' as const),
  approvalId: String(data['approvalId']),
  ...(typeof data['digest'] === 'string' ? { digest: data['digest'] } : {}),
});

const toAppError = (error: unknown): unknown =>
  error instanceof ClientError
    ? new AppError(KIND_OF_STATUS[error.status ?? 0] ?? 'bug', error.code, error.message)
    : error;

/** An interactive chat: lines of the person are messages, and the events of the chat are printed. */
class InteractiveChat {
  readonly #context: CommandContext;
  readonly #client: Client;
  readonly #chat: Chat;
  readonly #params: { readonly id: string; readonly chat: string };
  readonly #input: ChatInput;
  /** Turns of the approvals that were asked for. */
  readonly #asked = new Map<string, string>();
  readonly #ended = new Set<string>();
  #onDone: () => void = () => undefined;
  #interrupts = 0;
  #failure: unknown = null;

  constructor(context: CommandContext, client: Client, chat: Chat, workspace: string) {
    this.#context = context;
    this.#client = client;
    this.#chat = chat;
    this.#params = { id: workspace, chat: chat.id };
    this.#input = new ChatInput({
      input: process.stdin,
      prompt: (text) => void (process.stdin.isTTY && context.output.piece(text)),
      note: (text) => context.output.note(text),
      cancel: () => void this.#send({ command: 'cancel' }).catch(this.#noteError),
    });
  }

  async run(from: 'start' | 'end'): Promise<void> {
    const { output } = this.#context;
    const { id, chat } = this.#params;
    const stream = this.#client.followChat({ workspace: id, chat, from });
    process.on('SIGINT', this.#interrupt);
    const printed = this.#print(stream).catch((error: unknown) => {
      this.#failure = error;
      this.#input.close();
      this.#onDone();
    });
    try {
      for (;;) {
        const line = await this.#input.nextMessage();
        if (line === null || !(await this.#handle(line.trim()))) break;
      }
    } finally {
      process.off('SIGINT', this.#interrupt);
      stream.close();
      this.#input.close();
      await printed;
    }
    if (this.#failure !== null) throw toAppError(this.#failure);
    output.note(`continue with: antiphon chat --chat "${this.#chat.name}"`);
  }

  async #print(stream: AsyncIterable<ChatEvent>): Promise<void> {
    for await (const event of stream) {
      if (event.event !== 'approval' || this.#context.output.json) this.#show(event);
      if (event.event === 'approval') this.#offer(event);
      if (event.event === 'approval_update' && event.data['status'] !== 'escalated')
        this.#input.withdraw(String(event.data['approvalId']));
      if (event.event === 'done') this.#endTurn(String(event.data['turnId']));
    }
  }

  #show(event: ChatEvent): void {
    const { output } = this.#context;
    if (output.json) output.line(event, '');
    else output.piece(renderChatEvent(event));
  }

  #endTurn(turnId: string): void {
    // A cancelled or failed turn withdraws its approvals.
    for (const [approvalId, turn] of this.#asked) if (turn === turnId) this.#input.withdraw(approvalId);
    this.#ended.add(turnId);
    this.#onDone();
  }

  /** Returns false to end. */
  async #handle(line: string): Promise<boolean> {
    if (line === '/quit') return false;
    if (line === '') return true;
    if (line === '/help') return (this.#context.output.note(HELP), true);
    if (line === '/cancel') return (await this.#send({ command: 'cancel' }), true);
    const { turnId } = await this.#send({ command: 'message', content: line });
    while (!this.#ended.has(String(turnId)) && this.#failure === null)
      await new Promise<void>((resolve) => (this.#onDone = resolve));
    return this.#failure === null;
  }

  /** Asks for the decision of an approval once, also if the gateway sends it again. */
  #offer(event: ChatEvent): void {
    const { approvalId, turnId } = event.data;
    const id = String(approvalId);
    if (this.#asked.has(id)) return;
    this.#asked.set(id, String(turnId));
    void this.#input
      .ask(id, () => void (this.#context.output.json || this.#show(event)))
      .then((isApproved) => (isApproved === null ? undefined : this.#send(decisionOf(event, isApproved))))
      .catch(this.#noteError);
  }

  readonly #noteError = (error: unknown): void =>
    this.#context.output.note(error instanceof Error ? error.message : String(error));

  #send(body: Parameters<Client['http']['sendChatCommand']>[0]['body']) {
    return this.#client.http.sendChatCommand({ params: this.#params, body }).catch((error: unknown) => {
      throw toAppError(error);
    });
  }

  /** The first Ctrl-C detaches after a moment. A second one within it cancels the turn. */
  readonly #interrupt = (): void => {
    const { output } = this.#context;
    process.exitCode = INTERRUPTED;
    if (++this.#interrupts === 1) {
      output.note('\ndetaching; the turn continues. Ctrl-C again cancels it');
      setTimeout(() => this.#end(), CANCEL_MS);
      return;
    }
    if (this.#interrupts > 2) return;
    output.note('cancelled');
    void this.#send({ command: 'cancel' }).finally(() => this.#end());
  };

  #end(): void {
    this.#context.output.note(`continue with: antiphon chat --chat "${this.#chat.name}"`);
    process.exit();
  }
}

interface OpenedChat {
  readonly chat: Chat;
  /** Text of the chat before; null for a new one. */
  readonly past: string | null;
}

/** Returns the chat to continue with its text, or a new chat. */
const openChat = async (
  client: Client,
  { workspace: id, chat, agent, role }: InteractiveOptions,
): Promise<OpenedChat> => {
  const spec = { ...(agent === undefined ? {} : { agent }), ...(role === undefined ? {} : { role }) };
  const create = async (body: object): Promise<OpenedChat> => ({
    chat: await client.http.createChat({ params: { id }, body }),
    past: null,
  });
  if (chat === undefined) return create(spec);
  try {
    const text = await client.http.readChat({ params: { id, chat }, query: { format: 'json' } });
    const { chatId, name, agentId, sessionId } = JSON.parse(text) as { chatId: string } & Omit<Chat, 'id'>;
    const past = await client.http.readChat({ params: { id, chat }, query: { format: 'md' } });
    return { chat: { id: chatId, name, agentId, sessionId } as Chat, past };
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'CHAT.NOT_FOUND') throw error;
    return create({ ...spec, name: chat });
  }
};

/** Runs an interactive chat until the input ends or the person leaves. */
export const runInteractiveChat = async (
  context: CommandContext,
  options: InteractiveOptions,
): Promise<void> => {
  const { url, token } = await context.gateway();
  const client = createClient({ url, token: token ?? undefined });
  try {
    const { chat, past } = await openChat(client, options).catch((error: unknown) => {
      throw toAppError(error);
    });
    context.output.note(`chat "${chat.name}" with ${chat.agentId}. ${HELP}`);
    if (past !== null && !context.output.json) context.output.piece(past);
    await new InteractiveChat(context, client, chat, options.workspace).run(past === null ? 'start' : 'end');
  } finally {
    client.close();
  }
};
