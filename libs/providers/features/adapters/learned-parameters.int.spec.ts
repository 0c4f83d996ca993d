import { afterEach, describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import { ModelFailure, type ModelRequest } from '@antiphon/providers-domain';
import { startMockModel, type MockModel, type MockRequest } from '@antiphon/testing/providers';
import { REFUSALS, TOOL, USER, has, openAiError } from '../testing/parameter-refusals.js';
import type { Body, Refusal } from '../testing/parameter-refusals.js';
import { createModels, type Models } from './create-models.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Server {
  readonly mock: MockModel;
  readonly models: Models;
  readonly bodies: () => Body[];
}

/** Starts a server that refuses some requests. `refuse` returns null for one that it takes. */
const start = async (
  kind: string,
  refuse: (body: Body, request: MockRequest) => Refusal | null,
  parameters: readonly object[] = [],
  settings: object = {},
): Promise<Server> => {
  const mock = await startMockModel((request) => {
    const refusal = refuse(request.seen.body as Body, request);
    return refusal === null ? { text: ['fine'] } : { status: 400, ...refusal };
  });
  cleanups.push(() => mock.close());
  const baseUrl = kind === 'anthropic' ? mock.url : `${mock.url}/v1`;
  const providers = [{ name: 'it', kind, baseUrl, apiKeyEnv: 'KEY', ...settings }];
  const config = { source: null, providers, parameters } as unknown as AntiphonConfig;
  const models = createModels(
    config,
    { KEY: 'a-key' },
    { readStoredKey: () => Promise.resolve('stored-key-1') },
  );
  cleanups.push(() => models.close());
  return { mock, models, bodies: () => mock.requests.map(({ body }) => body as Body) };
};

const ask = (models: Models, more: Partial<ModelRequest> = {}) =>
  models.complete(
    {
      ...{ provider: 'it', model: 'gpt-5', system: 'Be brief.', messages: [USER], tools: [TOOL] },
      ...{ maxOutputTokens: 4_096, signal: new AbortController().signal, streaming: true, ...more },
    },
    { onText: () => undefined, onThought: () => undefined },
  );

describe('a server that refuses', () => {
  // @shows U03 U04 U07
  it.each(Object.entries(REFUSALS))('%s is asked again at once, and never again so', async (_name, one) => {
    const server = await start(one.kind, one.refuse, [], one.provider);
    expect(await ask(server.models, one.request)).toMatchObject({ text: 'fine' });
    const [first, ...later] = server.bodies();
    expect(later.length).toBeGreaterThan(0);
    expect(later.at(-1)).toMatchObject(one.accepted);
    if (one.without !== undefined) {
      expect(first).toHaveProperty([one.without]);
      expect(later.at(-1)).not.toHaveProperty([one.without]);
    }
    // Also with another key of the same provider, whose adapter is another one.
    await ask(server.models, one.request);
    expect(server.bodies()).toHaveLength(later.length + 2);
    expect(server.bodies().at(-1)).toMatchObject(one.accepted);
  });

  it('a parameter within its stream is asked again, too', async () => {
    const mock = await startMockModel(({ seen }) =>
      has(seen.body as Body, 'stream_options')
        ? { raw: 'data: {"error":{"message":"Unknown parameter: stream_options","code":400}}\n\n' }
        : { text: ['fine'] },
    );
    cleanups.push(() => mock.close());
    const providers = [{ name: 'it', kind: 'openai-compatible', baseUrl: `${mock.url}/v1`, apiKeyEnv: null }];
    const models = createModels({ source: null, providers, parameters: [] } as unknown as AntiphonConfig, {});
    cleanups.push(() => models.close());
    expect(await ask(models)).toMatchObject({ text: 'fine' });
    expect(mock.requests).toHaveLength(2);
  });

  it('one model is asked as before for another', async () => {
    const refuse = REFUSALS['max_tokens, which OpenAI’s newer models refuse']?.refuse;
    const server = await start('openai-compatible', (body, request) =>
      body['model'] === 'gpt-5' ? (refuse?.(body, request) ?? null) : null,
    );
    await ask(server.models);
    await ask(server.models, { model: 'llama' });
    expect(server.bodies().at(-1)).toMatchObject({ model: 'llama', max_tokens: 4_096 });
  });

  // @shows U07
  it('a parameter that the configuration sets is not asked otherwise', async () => {
    const parameters = [{ provider: 'it', model: 'gpt-*', outputLimit: 'max_tokens' }];
    const refuse = REFUSALS['max_tokens, which OpenAI’s newer models refuse']?.refuse ?? (() => null);
    const server = await start('openai-compatible', refuse, parameters);
    expect(await ask(server.models).catch((error: unknown) => error)).toBeInstanceOf(ModelFailure);
    expect(server.bodies()).toHaveLength(1);
  });

  it.each([
    ['everything, by every name', 'Unsupported: max_tokens, max_completion_tokens, stream_options'],
    ['a request without a name', 'Bad request'],
    ['a name in another sense', 'The answer may not mention max_tokens'],
  ])('%s fails after a few requests', async (_name, message) => {
    const server = await start('openai-compatible', () => openAiError(message));
    const failure = await ask(server.models).catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 400, refused: true, retryable: false });
    expect(server.bodies().length).toBeLessThan(8);
    expect((failure as ModelFailure).message).toContain(message);
  });

  it('the repeated request leaves nothing learned', async () => {
    let refusals = 0;
    const server = await start('openai-compatible', (body) => {
      if (refusals++ < 2)
        return has(body, 'stream_options')
          ? openAiError('Unknown: stream_options')
          : { status: 401, body: {} };
      return null;
    });
    expect(await ask(server.models).catch((error: unknown) => error)).toMatchObject({ status: 401 });
    await ask(server.models);
    expect(server.bodies().at(-1)).toHaveProperty('stream_options');
  });
});

describe('the configuration of a model', () => {
  it('wins over the table of families', async () => {
    const parameters = [
      { provider: 'other', model: '*', systemRole: 'user' },
      { provider: 'it', model: 'gpt-*', systemRole: 'developer', streamOptions: false },
      { provider: 'openai-compatible', model: '*', outputLimit: 'max_completion_tokens', systemRole: 'user' },
    ];
    const server = await start('openai-compatible', () => null, parameters);
    await ask(server.models);
    expect(server.bodies()[0]).toMatchObject({
      max_completion_tokens: 4_096,
      messages: [{ role: 'developer' }, { role: 'user' }],
    });
    expect(server.bodies()[0]).not.toHaveProperty('stream_options');
  });
});
