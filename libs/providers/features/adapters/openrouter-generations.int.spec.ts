import { afterEach, describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import type { ModelFailure } from '@antiphon/providers-domain';
import { startHttpProvider } from '@antiphon/testing/providers';
import { createModels } from './create-models.js';

// https://openrouter.ai/docs/api/api-reference/generations/get-request-&-usage-metadata-for-a-generation

const KEY = 'sk-or-canary-0123456789abcdef';
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Respond = Parameters<typeof startHttpProvider>[0];
const start = async (respond: Respond, kind = 'openrouter') => {
  const provider = await startHttpProvider(respond);
  cleanups.push(() => provider.close());
  const providers = [{ name: 'it', kind, baseUrl: `${provider.url}/api/v1`, apiKeyEnv: 'KEY' }];
  const config = { source: null, providers, parameters: [] } as unknown as AntiphonConfig;
  const models = createModels(config, { KEY });
  cleanups.push(() => models.close());
  return { provider, models };
};
type Vendor = Awaited<ReturnType<typeof start>>;

const ask = ({ models }: Vendor) =>
  models.complete(
    {
      ...{ provider: 'it', model: 'm', system: '', tools: [], maxOutputTokens: 99, streaming: true },
      ...{ messages: [{ role: 'user', text: 'hello' }], signal: new AbortController().signal },
    },
    { onText: () => undefined, onThought: () => undefined },
  );
const find = ({ models }: Vendor) => {
  const signal = new AbortController().signal;
  return models.findUsage({ workspace: 'default', provider: 'it', model: 'm', id: 'gen-1/&x', signal });
};
const answering =
  (status: number, body: object): Respond =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

const chunk = (id: string, more: object = {}) =>
  `data: ${JSON.stringify({ id, choices: [{ index: 0, delta: { content: 'hi' }, ...more }] })}\n\n`;
/** Streams a part of an answer, and breaks the connection. */
const breaking =
  (id: string): Respond =>
  (_request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write(`: OPENROUTER PROCESSING\n\n${chunk(id)}`);
    setTimeout(() => response.destroy(), 20);
  };

describe('a call of OpenRouter', () => {
  it.each([
    ['openrouter', 'gen-1', 'gen-1'],
    ['openrouter', `gen-${KEY}`, undefined],
    ['openai-compatible', 'chatcmpl-1', undefined],
  ])(
    'that breaks at kind %s keeps the id of a generation whose figure comes later',
    async (kind, id, kept) => {
      const vendor = await start(breaking(id), kind);
      const failure = (await ask(vendor).catch((error: unknown) => error)) as ModelFailure;
      expect(failure).toMatchObject({ dispatched: true, reason: 'provider_protocol' });
      expect(failure.generationId).toBe(kept);
    },
  );

  it('that is refused keeps none', async () => {
    const vendor = await start(answering(429, { id: 'gen-1', error: { message: 'slow down', code: 429 } }));
    expect(await ask(vendor).catch((error: unknown) => error)).not.toHaveProperty('generationId');
  });

  it('that completes keeps it next to its usage', async () => {
    const vendor = await start((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${chunk('gen-7', { finish_reason: 'stop' })}data: [DONE]\n\n`);
    });
    expect(await ask(vendor)).toMatchObject({ text: 'hi', usage: null, generationId: 'gen-7' });
  });
});

describe('the usage of an earlier call', () => {
  const data = { id: 'gen-1/&x', total_cost: 0.01, tokens_prompt: 9, tokens_completion: 9 };
  const native = { native_tokens_prompt: 120, native_tokens_completion: 34, native_tokens_cached: 100 };

  it('is asked for by GET with the key, and counted by the tokenizer of the model', async () => {
    const vendor = await start(answering(200, { data: { ...data, ...native, native_tokens_reasoning: 30 } }));
    expect(await find(vendor)).toEqual({ inputTokens: 120, outputTokens: 34, cacheReadTokens: 100 });
    const [request] = vendor.provider.requests;
    expect(request).toMatchObject({ method: 'GET', path: '/api/v1/generation?id=gen-1%2F%26x' });
    expect(request?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(request?.headers['content-type']).toBeUndefined();
  });

  it.each([
    ['is not known yet', 404, { error: { message: 'Generation not found', code: 404 } }],
    ['has no counts yet', 200, { data: { id: 'gen-1/&x', native_tokens_prompt: null } }],
    ['is that of another call', 200, { data: { ...data, id: 'gen-2' } }],
    ['has no form that is known', 200, { data: [] }],
  ])('is null where it %s', async (_why, status, body) => {
    expect(await find(await start(answering(status, body)))).toBeNull();
  });

  it('is null at a vendor that tells none, without a request', async () => {
    const vendor = await start(answering(500, {}), 'openai');
    expect(await find(vendor)).toBeNull();
    expect(vendor.provider.requests).toEqual([]);
  });

  it.each([401, 500])('fails where the vendor answers %i', async (status) => {
    const vendor = await start(answering(status, { error: { message: `not for ${KEY}` } }));
    const failure = (await find(vendor).catch((error: unknown) => error)) as ModelFailure;
    expect(failure).toMatchObject({ status, refused: true });
    expect(failure.message).not.toContain(KEY);
  });
});
