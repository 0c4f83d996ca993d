import type { ServerResponse } from 'node:http';
import { startHttpProvider, type HttpProvider, type SeenRequest } from './http-provider.js';
import {
  anthropicMessage,
  anthropicStream,
  openAiCompletion,
  openAiStream,
  type MockReply,
} from './wire-formats.js';

/** A request to a mock model, in a form common to both vendors. */
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
  /** Requests in order of arrival. */
  readonly calls: readonly MockRequest[];
}

type Answer =
  MockReply | { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };

/** Called before each piece of a stream is written, so that a test can hold the stream. */
export type BeforePiece = (piece: string, index: number) => Promise<void> | undefined;

type Response =
  | Answer
  | { readonly reply: MockReply; readonly before: BeforePiece }
  /** The body of an event stream, as it is. */
  | { readonly raw: string };

/** Returns the response to a request. */
export type MockScript = (request: MockRequest) => Response | Promise<Response>;

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

const parseRequest = (seen: SeenRequest): MockRequest => {
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
  const scripted = await script(request);
  if ('status' in scripted) return sendJson(response, scripted.status, scripted.body, scripted.headers);
  if ('raw' in scripted) return stream(response, [scripted.raw]);
  const { reply, before } = 'reply' in scripted ? scripted : { reply: scripted, before: undefined };
  const { format, model } = request;
  if (request.streaming)
    return stream(response, (format === 'anthropic' ? anthropicStream : openAiStream)(model, reply), before);
  sendJson(response, 200, (format === 'anthropic' ? anthropicMessage : openAiCompletion)(model, reply));
};

/** Models that a mock lists unless a test says otherwise. */
const MOCK_MODELS = ['claude-sonnet-4-5', 'gpt-4o', 'mock-large'];
const listMockModels: MockModelList = () => ({
  status: 200,
  body: { data: MOCK_MODELS.map((id) => ({ id, object: 'model' })) },
});

/** Returns the response to a request for the list of models, whose headers carry the key. */
export type MockModelList = (seen: SeenRequest) => { readonly status: number; readonly body: unknown };

/**
 * Serves a scripted model over HTTP and SSE, in the vendor's format that the path names
 * (`…/messages`, `…/chat/completions`). Its base_url is `url` for Anthropic's kind, and `url` +
 * `/v1` for the others.
 */
export const startMockModel = async (
  script: MockScript,
  listModels: MockModelList = listMockModels,
): Promise<MockModel> => {
  const calls: MockRequest[] = [];
  const provider = await startHttpProvider((seen, response) => {
    if (seen.method === 'GET' && /\/models(?:\?|$)/.test(seen.path)) {
      const { status, body } = listModels(seen);
      return sendJson(response, status, body);
    }
    if (seen.body === undefined)
      return sendJson(response, 400, { error: { message: 'the body is not JSON' } });
    const request = parseRequest(seen);
    calls.push(request);
    answer(request, response, script).catch((error: unknown) => {
      if (!response.headersSent) sendJson(response, 500, { error: { message: `mock: ${String(error)}` } });
      else response.destroy();
    });
  });
  return { ...provider, calls };
};
