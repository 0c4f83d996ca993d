import type { ServerResponse } from 'node:http';
import { startHttpProvider, type HttpProvider, type SeenRequest } from './http-provider.js';
import {
  anthropicMessage,
  anthropicStream,
  openAiCompletion,
  openAiStream,
  type MockReply,
} from './wire-formats.js';

/** A request to a mock model, without the vendor's wrapping. */
export interface MockRequest {
  readonly format: 'anthropic' | 'openai';
  readonly model: string;
  readonly streaming: boolean;
  /** The text of the last user message. */
  readonly user: string;
  /** The contents of the tool results that follow it, oldest first. */
  readonly toolResults: readonly string[];
  readonly seen: SeenRequest;
}

export interface MockModel extends HttpProvider {
  /** In the order in which they came. */
  readonly calls: readonly MockRequest[];
}

type Answer =
  MockReply | { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };

/** Awaited before each piece of a stream, as it will be written: the place to hold a stream until a fact has happened. */
export type BeforePiece = (piece: string, index: number) => Promise<void> | undefined;

type Said = Answer | { readonly reply: MockReply; readonly before: BeforePiece };

/** Decides an answer. */
export type MockScript = (request: MockRequest) => Said | Promise<Said>;

interface Part {
  readonly type?: string;
  readonly text?: string;
  readonly content?: unknown;
}
interface Message {
  readonly role: string;
  readonly content: unknown;
}

const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as Part[]).map((part) => part.text ?? '').join('');
};

const resultsOf = (message: Message): string[] => {
  if (message.role === 'tool') return [textOf(message.content)];
  if (!Array.isArray(message.content)) return [];
  return (message.content as Part[])
    .filter(({ type }) => type === 'tool_result')
    .map(({ content }) => textOf(content));
};

const isQuestion = (message: Message): boolean => message.role === 'user' && resultsOf(message).length === 0;

const view = (seen: SeenRequest): MockRequest => {
  const body = seen.body as { model: string; stream?: boolean; messages: Message[] };
  const last = body.messages.findLastIndex(isQuestion);
  return {
    format: seen.path.endsWith('/messages') ? 'anthropic' : 'openai',
    model: body.model,
    streaming: body.stream === true,
    user: textOf(body.messages[last]?.content),
    toolResults: body.messages.slice(last + 1).flatMap(resultsOf),
    seen,
  };
};

const sendJson = (response: ServerResponse, status: number, body: unknown, headers = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
};

const stream = async (
  response: ServerResponse,
  pieces: readonly string[],
  before?: BeforePiece,
): Promise<void> => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const [index, piece] of pieces.entries()) {
    await before?.(piece, index);
    if (response.destroyed) return;
    response.write(piece);
  }
  response.end();
};

const answer = async (request: MockRequest, response: ServerResponse, script: MockScript): Promise<void> => {
  const said = await script(request);
  if ('status' in said) return sendJson(response, said.status, said.body, said.headers);
  const { reply, before } = 'reply' in said ? said : { reply: said, before: undefined };
  const { format, model } = request;
  if (request.streaming)
    return stream(response, (format === 'anthropic' ? anthropicStream : openAiStream)(model, reply), before);
  sendJson(response, 200, (format === 'anthropic' ? anthropicMessage : openAiCompletion)(model, reply));
};

/**
 * A model over real HTTP and SSE that speaks both vendors' formats, by the path it is asked at
 * (`…/messages`, `…/chat/completions`), and says what the script says. Its base_url is `url` for Anthropic's kind
 * and `url` + `/v1` for the others.
 */
export const startMockModel = async (script: MockScript): Promise<MockModel> => {
  const calls: MockRequest[] = [];
  const provider = await startHttpProvider((seen, response) => {
    if (seen.body === undefined)
      return sendJson(response, 400, { error: { message: 'the body is not JSON' } });
    const request = view(seen);
    calls.push(request);
    answer(request, response, script).catch((error: unknown) => {
      if (!response.headersSent) sendJson(response, 500, { error: { message: `mock: ${String(error)}` } });
      else response.destroy();
    });
  });
  return { ...provider, calls };
};
