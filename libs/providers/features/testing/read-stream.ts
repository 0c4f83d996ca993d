import type { ModelAnswer, ModelFailure, ModelRequest } from '@antiphon/providers-domain';
import type { Dispatcher } from 'undici';
import { createAnthropicAdapter } from '../adapters/anthropic.adapter.js';
import { createOpenAiAdapter } from '../adapters/openai.adapter.js';
import { LearnedParameters } from '../adapters/learned-parameters.js';
import { createHttpTransport, type HttpTransport } from '../transport/http-transport.js';
import type { ProviderAdapter } from '../transport/provider-call.js';
import { TEST_LIMITS } from './limits.js';

const environment = {
  limitsOf: () => TEST_LIMITS,
  redact: (text: string) => text,
  now: () => 0,
};

/** A transport within this process: it delivers exactly these chunks, without a socket. */
const transportOf = (chunks: readonly Uint8Array[]): HttpTransport => {
  const respond = (handler: Dispatcher.DispatchHandler): void => {
    let isAborted = false;
    const controller = { abort: () => (isAborted = true) } as unknown as Dispatcher.DispatchController;
    handler.onRequestStart?.(controller, null);
    handler.onResponseStart?.(controller, 200, { 'content-type': 'text/event-stream' });
    for (const chunk of chunks) {
      if (isAborted) return;
      handler.onResponseData?.(controller, chunk as Buffer);
    }
    if (!isAborted) handler.onResponseEnd?.(controller, {});
  };
  const dispatch: Dispatcher['dispatch'] = (_options, handler) => {
    setImmediate(respond, handler);
    return true;
  };
  return createHttpTransport({ dispatch }, environment);
};

export type Format = 'anthropic' | 'openai';
const adapterFor = (format: Format, transport: HttpTransport): ProviderAdapter => {
  const kind = format;
  const parameters = new LearnedParameters({ parameters: [] }, { name: 'it', kind });
  const deps = { ...environment, baseUrl: 'http://provider.test', apiKey: 'k', transport, parameters };
  return format === 'anthropic' ? createAnthropicAdapter(deps) : createOpenAiAdapter({ ...deps, kind });
};

export interface Read {
  readonly answer: ModelAnswer | ModelFailure;
  readonly text: string;
  readonly thought: string;
}

/** Reads the chunks of a stream. Returns the answer or its failure, and what was streamed. */
export const read = async (format: Format, chunks: readonly Uint8Array[]): Promise<Read> => {
  const said = { text: '', thought: '' };
  const request: ModelRequest = {
    provider: 'it',
    model: 'm',
    system: '',
    messages: [{ role: 'user', text: 'hello' }],
    tools: [],
    maxOutputTokens: 10,
    signal: new AbortController().signal,
    streaming: true,
  };
  const answer = await adapterFor(format, transportOf(chunks))
    .complete(request, {
      onText: (delta) => void (said.text += delta),
      onThought: (delta) => void (said.thought += delta),
    })
    .catch((error: unknown) => error as ModelFailure);
  return { answer, ...said };
};
export const readText = (format: Format, text: string): Promise<Read> => read(format, [Buffer.from(text)]);
