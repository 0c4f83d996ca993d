import { afterEach } from '@jest/globals';
import { ModelFailure, type ModelAnswer, type ModelRequest } from '@antiphon/providers-domain';
import type { AntiphonConfig } from '@antiphon/config';
import {
  anthropicMessage,
  anthropicStream,
  openAiCompletion,
  openAiStream,
  type MockReply,
} from '@antiphon/testing/providers';
import type { ProviderLimits } from '../transport/provider-call.js';
import { createModels, type Models } from '../adapters/create-models.js';

const KEY = 'sk-hostile-canary-0123456789';

/** Timeouts so long that they decide no test that is not about timeouts. */
export const PATIENT: Partial<ProviderLimits> = {
  connectMs: 20_000,
  firstByteMs: 20_000,
  idleMs: 20_000,
  totalMs: 20_000,
};

/** The formats of providers, with the path of each and its renderers. */
export const FORMATS = [
  { kind: 'anthropic', path: '', stream: anthropicStream, whole: anthropicMessage },
  { kind: 'openai', path: '/v1', stream: openAiStream, whole: openAiCompletion },
] as const;

export const HELLO: MockReply = { text: ['one ', 'two ', 'three'] };
export const SSE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';

/** Registers the end of what the tests of a spec open, after each test. Returns the registration. */
export const closeAfterEach = (): (<T extends { close(): unknown }>(thing: T) => T) => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  return (thing) => {
    cleanups.push(() => thing.close());
    return thing;
  };
};

/** Creates the models of one provider, `it`, at an address. */
export const modelsAt = (kind: string, baseUrl: string, limits: Partial<ProviderLimits> = PATIENT): Models =>
  createModels(
    {
      source: null,
      parameters: [],
      providers: [{ name: 'it', kind, baseUrl, apiKeyEnv: 'KEY' }],
    } as unknown as AntiphonConfig,
    { KEY },
    { limits },
  );

interface Attempt {
  readonly models: Models;
  readonly result: Promise<ModelAnswer | ModelFailure>;
  readonly text: () => string;
}

/** Calls the provider `it` once. The text is what has arrived so far. */
export const attempt = (
  models: Models,
  more: Partial<ModelRequest> & { onText?: (all: string) => void } = {},
): Attempt => {
  let text = '';
  const { onText, ...request } = more;
  const sink = {
    onText: (delta: string) => {
      text += delta;
      onText?.(text);
    },
    onThought: () => undefined,
  };
  const result = models
    .complete(
      {
        provider: 'it',
        model: 'm',
        system: '',
        messages: [{ role: 'user', text: 'hello' }],
        tools: [],
        maxOutputTokens: 100,
        signal: new AbortController().signal,
        streaming: true,
        ...request,
      },
      sink,
    )
    .catch((error: unknown) => {
      if (error instanceof ModelFailure) return error;
      throw error;
    });
  return { models, result, text: () => text };
};
