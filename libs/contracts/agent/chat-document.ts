import { textOf as textOfCause } from '../log/causes.js';
import type { ChatView } from './chat-requests.js';
import { messageIdOf } from './chat-events.js';
import type { MessagePart } from './chat-events.js';
import type { MediaFacts, MessageFile } from './content-parts.js';
import type { SessionEvent, SessionEventOf } from './events.js';

type Json = SessionEventOf<'ToolCallRequested'>['data']['input'];

/** A tool call of an answer. `result` is null until the call has one. */
export interface ChatCall {
  readonly callId: string;
  readonly name: string;
  /** Arguments that the call was made with; those that the model asked for before an approval. */
  input: Json;
  result: string | null;
  isError: boolean;
}

/** One message of a chat. The text of a deleted one is empty. */
export interface ChatMessage {
  readonly id: string;
  readonly role: 'user' | 'agent';
  readonly at: string;
  readonly text: string;
  /** Files of the message. Absent without any. */
  readonly files?: readonly MessageFile[];
  readonly status?: 'open' | 'completed' | 'failed' | 'cancelled';
  readonly error?: string;
  readonly calls?: readonly ChatCall[];
  readonly editedAt?: string;
  readonly deletedAt?: string;
}

/** A snapshot of a file that the chat refers to. */
export interface ChatAttachment {
  readonly path: string;
  readonly digest: string;
  readonly size: number;
  /** Absent for a file that models get as text. */
  readonly media?: MediaFacts;
}

/**
 * A chat at a version. Its messages are the turns of the session, with edits and deletions applied.
 */
export interface ChatDocument {
  readonly chatId: string;
  readonly name: string;
  readonly agentId: string;
  readonly role: string | null;
  readonly sessionId: string;
  readonly version: number;
  readonly attachments: readonly ChatAttachment[];
  readonly messages: readonly ChatMessage[];
}

interface Change {
  readonly at: string;
  /** Null for a deletion. */
  readonly content: string | null;
}

interface Turn {
  readonly turnId: string;
  readonly askedAt: string;
  readonly content: string;
  readonly files?: readonly MessageFile[];
  readonly texts: string[];
  readonly calls: ChatCall[];
  answeredAt: string;
  status: NonNullable<ChatMessage['status']>;
  error: string;
  readonly changes: Partial<Record<MessagePart, Change>>;
}

/** Maximum length of a tool result in Markdown, UTF-16 units. JSON has all of it. */
const MAX_SHOWN = 1_000;

const quote = (text: string): string => text.replaceAll(/^/gm, '> ');

const clip = (text: string): string =>
  text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)`;

const callLines = ({ name, input, result, isError }: ChatCall): string => {
  const called = `call \`${name}\` ${JSON.stringify(input)}`;
  return quote(result === null ? called : `${called}\n${isError ? 'error' : 'result'}: ${clip(result)}`);
};

const ENDED = { open: '_(the turn is open)_', cancelled: '_(stopped)_', completed: '' } as const;

const endNote = ({ status = 'completed', error = '' }: ChatMessage): string =>
  status === 'failed' ? `_(failed: ${error})_` : ENDED[status];

const fileLine = ({ path, digest, size }: ChatAttachment): string =>
  `- \`${path}\` (${size} bytes, sha256 ${digest})`;

/** Renders one message as Markdown. */
const renderMessage = (agentId: string, message: ChatMessage): string => {
  const { id, role, at, text, files = [], calls = [], editedAt, deletedAt } = message;
  const heading = `## ${role === 'user' ? 'You' : agentId} · ${at}${editedAt === undefined ? '' : ' · edited'}`;
  const parts =
    deletedAt === undefined
      ? [...calls.map(callLines), text, ...files.map(fileLine), endNote(message)]
      : ['_(deleted)_'];
  return [`<!-- ${id} -->`, heading, ...parts.filter((part) => part !== '')].join('\n\n');
};

/** Returns a chat as Markdown: the text of its `.chat` file. */
export const toMarkdown = ({ name, agentId, attachments, messages }: ChatDocument): string => {
  const files = attachments.map(fileLine);
  const sections = [
    `# ${name}`,
    ...(files.length > 0 ? [`Attached files:\n\n${files.join('\n')}`] : []),
    ...messages.map((message) => renderMessage(agentId, message)),
  ];
  return `${sections.join('\n\n')}\n`;
};

/** Data of an event that may concern a call or the text of a turn. */
type Fold = (transcript: ChatTranscript, data: never) => void;

/**
 * Folds the events of a session into a chat, in the order of their versions. An event that was
 * applied before changes nothing, so that readers may share a transcript.
 */
export class ChatTranscript {
  readonly #turns = new Map<string, Turn>();
  readonly #calls = new Map<string, ChatCall>();
  readonly #attachments = new Map<string, ChatAttachment>();
  #version = 0;
  #chars = 0;

  /** Version of the last applied event. */
  get version(): number {
    return this.#version;
  }

  /** Length of all texts, UTF-16 units. */
  get chars(): number {
    return this.#chars;
  }

  /** Applies the event of a version. Unknown types only raise the version. */
  apply(event: Pick<SessionEvent, 'type' | 'data'>, version: number): void {
    if (version <= this.#version) return;
    this.#version = version;
    (FOLDS as Readonly<Record<string, Fold>>)[event.type]?.(this, event.data as never);
  }

  /** Returns the chat at the version of the last event. */
  toDocument({
    id,
    name,
    agentId,
    role,
    sessionId,
  }: Omit<ChatView, 'is_virtual' | 'revision'>): ChatDocument {
    const messages = [...this.#turns.values()].flatMap((turn) => this.#messagesOf(turn));
    const attachments = [...this.#attachments.values()];
    return { chatId: id, name, agentId, role, sessionId, version: this.#version, attachments, messages };
  }

  request({ turnId, content, files, requestedAt }: SessionEventOf<'TurnRequested'>['data']): void {
    this.#chars += content.length;
    const turn: Turn = {
      ...{ turnId, content, askedAt: requestedAt, answeredAt: requestedAt },
      ...{ texts: [], calls: [], status: 'open', error: '', changes: {} },
      ...(files === undefined ? {} : { files }),
    };
    this.#turns.set(turnId, turn);
  }

  answer(
    turnId: string,
    text: string,
    at: string,
    calls: SessionEventOf<'ModelCallCompleted'>['data']['toolCalls'],
  ): void {
    const turn = this.#turns.get(turnId);
    if (!turn) return;
    this.#chars += text.length;
    if (text !== '') turn.texts.push(text);
    for (const { callId, name, input } of calls) {
      const call: ChatCall = { callId, name, input, result: null, isError: false };
      turn.calls.push(call);
      this.#calls.set(callId, call);
    }
    turn.answeredAt = at;
  }

  /** Gives a call the arguments that its approver changed. */
  editCall(callId: string, input: Json): void {
    const call = this.#calls.get(callId);
    if (call) call.input = input;
  }

  finishCall(callId: string, result: string, isError: boolean): void {
    const call = this.#calls.get(callId);
    if (!call) return;
    this.#chars += result.length;
    call.result = result;
    call.isError = isError;
  }

  end(turnId: string, status: Turn['status'], at: string, error = ''): void {
    const turn = this.#turns.get(turnId);
    if (!turn) return;
    turn.status = status;
    turn.error = error;
    turn.answeredAt = at;
  }

  change(turnId: string, part: MessagePart, change: Change): void {
    const turn = this.#turns.get(turnId);
    if (!turn) return;
    this.#chars += change.content?.length ?? 0;
    turn.changes[part] = change;
  }

  /** Deletes a part of a turn at any version: its deletion may be later. */
  delete(turnId: string, part: MessagePart, at: string): void {
    this.change(turnId, part, { at, content: null });
  }

  attach({ path, digest, size, media }: ChatAttachment): void {
    this.#attachments.set(path, { path, digest, size, ...(media === undefined ? {} : { media }) });
  }

  detach(path: string): void {
    this.#attachments.delete(path);
  }

  #messagesOf(turn: Turn): ChatMessage[] {
    const { turnId, askedAt, answeredAt, texts, calls, status, error } = turn;
    const asked = { id: messageIdOf(turnId, 'message'), role: 'user', at: askedAt } as const;
    const answered = { id: messageIdOf(turnId, 'answer'), role: 'agent', at: answeredAt, status } as const;
    const { files } = turn;
    const sent = files === undefined ? {} : { files };
    const shown = { ...(status === 'failed' ? { error } : {}), ...(calls.length > 0 ? { calls } : {}) };
    return [
      { ...asked, ...textOf(turn.content, turn.changes.message, sent) },
      { ...answered, ...textOf(texts.join('\n\n'), turn.changes.answer, shown) },
    ];
  }
}

/** Returns the text of a message and what changed it. A deleted answer shows no calls. */
const textOf = (
  text: string,
  change: Change | undefined,
  shown: Pick<ChatMessage, 'error' | 'calls' | 'files'> = {},
): Pick<ChatMessage, 'text' | 'error' | 'calls' | 'files' | 'editedAt' | 'deletedAt'> => {
  if (!change) return { text, ...shown };
  if (change.content === null) return { text: '', deletedAt: change.at };
  return { text: change.content, ...shown, editedAt: change.at };
};

type Folds = {
  readonly [T in SessionEvent['type']]?: (
    transcript: ChatTranscript,
    data: SessionEventOf<T>['data'],
  ) => void;
};

const FOLDS: Folds = {
  TurnRequested: (to, data) => to.request(data),
  ModelCallCompleted: (to, { turnId, text, completedAt, toolCalls }) =>
    to.answer(turnId, text, completedAt, toolCalls),
  ModelCallAborted: (to, { turnId, reason, text, abortedAt }) => {
    // The text of any other attempt is void: the next attempt begins again.
    if (reason === 'cancelled') to.answer(turnId, text, abortedAt, []);
  },
  AnswerForwarded: (to, { turnId, text, forwardedAt }) => to.answer(turnId, text, forwardedAt, []),
  ToolCallCompleted: (to, { callId, content, isError }) => to.finishCall(callId, content, isError),
  ToolCallFailed: (to, { callId, cause }) => to.finishCall(callId, textOfCause(cause), true),
  ToolCallUnknown: (to, { callId, cause }) => to.finishCall(callId, textOfCause(cause), true),
  ApprovalGranted: (to, { callId, edited }) => {
    if (edited) to.editCall(callId, edited.input);
  },
  ApprovalDenied: (to, { callId, cause }) => to.finishCall(callId, textOfCause(cause), true),
  ApprovalExpired: (to, { callId, cause }) => to.finishCall(callId, textOfCause(cause), true),
  ApprovalVoided: (to, { callId, cause }) => to.finishCall(callId, textOfCause(cause), true),
  TurnCompleted: (to, { turnId, completedAt }) => to.end(turnId, 'completed', completedAt),
  TurnFailed: (to, { turnId, cause, failedAt }) => to.end(turnId, 'failed', failedAt, textOfCause(cause)),
  TurnCancelled: (to, { turnId, cancelledAt }) => to.end(turnId, 'cancelled', cancelledAt),
  ChatMessageEdited: (to, { turnId, part, content, at }) => to.change(turnId, part, { content, at }),
  ChatMessageDeleted: (to, { turnId, part, at }) => to.delete(turnId, part, at),
  ChatFileAttached: (to, data) => to.attach(data),
  ChatFileDetached: (to, { path }) => to.detach(path),
};
