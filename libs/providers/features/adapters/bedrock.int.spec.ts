import { createHash, createHmac } from 'node:crypto';
import { afterEach, describe, expect, it } from '@jest/globals';
import { parseConfig } from '@antiphon/config';
import type { ModelAnswer, ModelFailure, ModelMessage, ModelRequest } from '@antiphon/providers-domain';
import { startHttpProvider, type SeenRequest } from '@antiphon/testing/providers';
import { ZOO, startZoo, type ZooResponse } from '@antiphon/testing/zoo';
import { createModels, type Models } from './create-models.js';

// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

const ID = 'AKIAIOSFODNN7EXAMPLE';
const SECRET = 'wJalrXUtnFEMI/K7MDENG/canaryEXAMPLEKEY';
const TOKEN = 'IQoJb3JpZ2luX2VjEEXAMPLE/canary==';
const BEARER = 'ABSKQmVkcm9ja0FQSUtleS1jYW5hcnk=';
const MODEL = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
type Json = Readonly<Record<string, unknown>>;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const modelsAt = (url: string, env: Readonly<Record<string, string>>, keyEnv?: string): Models => {
  const key = keyEnv === undefined ? '' : `api_key_env = "${keyEnv}"`;
  const text = `[[providers]]\nname = "it"\nkind = "bedrock"\nbase_url = "${url}"\n${key}\n[[agents]]\nid = "a"\nmodel = "m"\n`;
  const config = parseConfig(text, { source: null, folder: '/', homeDir: '/', env, requireKeys: true });
  const models = createModels(config, env, { now: () => Date.parse('2026-11-27T13:00:00.000Z') });
  cleanups.push(() => models.close());
  return models;
};

const USER: ModelMessage = { role: 'user', text: 'hello' };
const ask = (models: Models, more: Partial<ModelRequest> = {}): Promise<ModelAnswer> =>
  models.complete(
    {
      ...{ provider: 'it', model: MODEL, system: 'Be brief.', messages: [USER], tools: [] },
      ...{ maxOutputTokens: 4_096, signal: new AbortController().signal, streaming: true, ...more },
    },
    { onText: () => undefined, onThought: () => undefined },
  );
const failureOf = (models: Models, more: Partial<ModelRequest> = {}) =>
  ask(models, more).then(
    () => Promise.reject(new Error('the call did not fail')),
    (error: unknown) => error as ModelFailure,
  );

const SERVER = ZOO.find(({ kind }) => kind === 'bedrock')!;
const streamOf = (pieces: readonly string[]): ZooResponse => ({
  pieces: pieces.map((piece) => Buffer.from(piece, 'latin1')),
  type: 'application/vnd.amazon.eventstream',
});

/** Starts a server that plays these responses, one for each request. */
const start = async (responses: readonly ZooResponse[]) => {
  let next = 0;
  const provider = await startZoo(() => responses[next++] ?? { status: 500, body: '' });
  cleanups.push(() => provider.close());
  const models = modelsAt(provider.url, { AWS_BEARER_TOKEN_BEDROCK: BEARER });
  return { provider, models, bodyOf: (index = 0) => provider.requests[index]?.body as Json };
};

const sha = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** Computes the signature of a request as the vendor's documentation does, without its library. */
const signatureOf = ({ method, path, headers }: SeenRequest, body: string, secret: string): string => {
  const [, date = '', region = '', names = ''] =
    /Credential=[^/]+\/(\d+)\/([^/]+)\/bedrock\/aws4_request, SignedHeaders=([^,]+),/.exec(
      headers.authorization ?? '',
    ) ?? [];
  const signed = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  // The path is encoded once more.
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  const canonical = [method, encoded, '', signed.join(''), names, sha(body)].join('\n');
  const scope = `${date}/${region}/bedrock/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha(canonical)].join('\n');
  const key = [region, 'bedrock', 'aws4_request'].reduce(hmac as never, hmac(`AWS4${secret}`, date));
  return hmac(key, toSign).toString('hex');
};

describe('a request to Bedrock', () => {
  it.each([
    ['an access key', {}, undefined],
    ['an access key of a session', { CORP_SESSION_TOKEN: TOKEN }, TOKEN],
  ])('is signed with %s from variables that the first one names', async (_what, session, token) => {
    const provider = await startHttpProvider((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(SERVER.whole({ text: ['hi'] })));
    });
    cleanups.push(() => provider.close());
    const env = {
      CORP_ACCESS_KEY_ID: ID,
      CORP_SECRET_ACCESS_KEY: SECRET,
      AWS_REGION: 'eu-west-1',
      ...session,
    };
    expect(await ask(modelsAt(provider.url, env, 'CORP_ACCESS_KEY_ID'))).toMatchObject({ text: 'hi' });
    const [seen] = provider.requests;
    const { headers } = seen!;
    expect(seen?.path).toBe(`/model/${encodeURIComponent(MODEL)}/converse-stream`);
    expect(headers['x-amz-security-token']).toBe(token);
    expect(headers.authorization).toContain(`Credential=${ID}/20261127/eu-west-1/bedrock/aws4_request`);
    const signature = signatureOf(seen!, JSON.stringify(seen?.body), SECRET);
    expect(headers.authorization).toContain(`Signature=${signature}`);
  });

  it('carries an API key of Bedrock', async () => {
    const { provider, models } = await start([streamOf(SERVER.stream({ text: ['hi'] }))]);
    expect(await ask(models)).toMatchObject({ text: 'hi' });
    expect(provider.requests[0]?.headers.authorization).toBe(`Bearer ${BEARER}`);
  });

  it('is not sent where nothing names the region', async () => {
    const env = { AWS_ACCESS_KEY_ID: ID, AWS_SECRET_ACCESS_KEY: SECRET };
    const failure = await failureOf(modelsAt('http://127.0.0.1:1', env, 'AWS_ACCESS_KEY_ID'));
    expect(failure).toMatchObject({ dispatched: false, retryable: false });
    expect(failure.message).toContain('base_url names no region');
  });

  it('is not sent without the secret of its access key', async () => {
    const models = modelsAt('http://127.0.0.1:1', { AWS_ACCESS_KEY_ID: ID }, 'AWS_ACCESS_KEY_ID');
    const failure = await failureOf(models);
    expect(failure).toMatchObject({ dispatched: false, retryable: false });
    expect(failure.message).toContain('AWS_SECRET_ACCESS_KEY is not set');
  });

  it('shows no part of its key in a refusal that repeats it', async () => {
    const provider = await startHttpProvider((_seen, response) => {
      response.writeHead(403, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ message: `not for ${SECRET}, ${TOKEN}` }));
    });
    cleanups.push(() => provider.close());
    const env = { AWS_ACCESS_KEY_ID: ID, AWS_SECRET_ACCESS_KEY: SECRET, AWS_SESSION_TOKEN: TOKEN };
    const models = modelsAt(provider.url, { ...env, AWS_REGION: 'us-east-1' }, 'AWS_ACCESS_KEY_ID');
    const failure = await failureOf(models);
    expect(failure).toMatchObject({ status: 403, refused: true, retryable: false });
    expect(failure.message).toContain('the provider refused the key');
    expect(failure.message).not.toContain('canary');
  });

  it('has the parts of Converse, with cache points where the model takes them', async () => {
    const tools = [{ name: 'echo', description: '', inputSchema: { type: 'object' } }];
    const { models, bodyOf } = await start([
      streamOf(SERVER.stream({ text: ['hi'] })),
      streamOf(SERVER.stream({ text: ['hi'] })),
    ]);
    await ask(models, { tools, temperature: 0.5, thinking: 2_048 });
    const cachePoint = { type: 'default' };
    expect(bodyOf()).toEqual({
      messages: [{ role: 'user', content: [{ text: 'hello' }, { cachePoint }] }],
      system: [{ text: 'Be brief.' }, { cachePoint }],
      toolConfig: {
        tools: [{ toolSpec: { name: 'echo', inputSchema: { json: { type: 'object', properties: {} } } } }],
      },
      inferenceConfig: { maxTokens: 4_096 },
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2_048 } },
    });
    await ask(models, { model: 'meta.llama3-3-70b-instruct-v1:0', temperature: 0.5, thinking: 'high' });
    expect(bodyOf(1)).toEqual({
      messages: [{ role: 'user', content: [{ text: 'hello' }] }],
      system: [{ text: 'Be brief.' }],
      inferenceConfig: { maxTokens: 4_096, temperature: 0.5 },
    });
  });
});

describe('an answer of Bedrock', () => {
  it('has its usage with the parts of the prompt cache', async () => {
    const usage = { inputTokens: 3, outputTokens: 5, cacheReadInputTokens: 100, cacheWriteInputTokens: 20 };
    const body = { ...(SERVER.whole({ text: ['hi'] }) as Json), usage };
    const { models } = await start([{ status: 200, body }]);
    expect(await ask(models, { streaming: false })).toMatchObject({
      usage: { inputTokens: 123, outputTokens: 5, cacheReadTokens: 100, cacheWriteTokens: 20 },
    });
  });

  it('gets its signed reasoning and its calls back unchanged', async () => {
    const calls = [{ id: 'tooluse_A1', name: 'echo', json: ['{"say":', '"hi"}'] }];
    const { models, bodyOf } = await start([
      streamOf(SERVER.stream({ thought: ['let me ', 'see'], text: ['Looking.'], calls })),
      streamOf(SERVER.stream({ text: ['done'] })),
    ]);
    const asked = await ask(models);
    expect(asked).toMatchObject({ thought: 'let me see', text: 'Looking.', finishReason: 'tool_calls' });
    const { providerState, text, thought } = asked;
    const toolCalls = [{ id: 'tooluse_A1', name: 'echo', input: { say: 'hi' } }];
    const messages: ModelMessage[] = [
      USER,
      { role: 'assistant', text, thought, toolCalls, ...(providerState ? { providerState } : {}) },
      { role: 'tool', results: [{ id: 'tooluse_A1', name: 'echo', content: 'no', isError: true }] },
    ];
    expect(await ask(models, { messages })).toMatchObject({ text: 'done' });
    const [, assistant, results] = bodyOf(1)['messages'] as readonly { readonly content: readonly Json[] }[];
    expect(assistant?.content.filter((part) => !('cachePoint' in part))).toEqual([
      { reasoningContent: { reasoningText: { text: 'let me see', signature: 'c2lnbmVk' } } },
      { text: 'Looking.' },
      { toolUse: { toolUseId: 'tooluse_A1', name: 'echo', input: { say: 'hi' } } },
    ]);
    expect(results?.content[0]).toEqual({
      toolResult: { toolUseId: 'tooluse_A1', content: [{ text: 'no' }], status: 'error' },
    });
  });

  it.each([
    ['a changed byte', (bytes: Buffer) => bytes.fill(0x21, 60, 61), 'is damaged'],
    ['a length over the limit', (bytes: Buffer) => bytes.fill(0x7f, 0, 1), 'bytes'],
  ])('with %s fails with a reason', async (_what, change, why) => {
    const [first = '', ...rest] = SERVER.stream({ text: ['hi'] });
    const pieces = [change(Buffer.from(first, 'latin1')), ...rest.map((one) => Buffer.from(one, 'latin1'))];
    const { models } = await start([{ pieces, type: 'application/vnd.amazon.eventstream' }]);
    const failure = await failureOf(models);
    expect(failure).toMatchObject({ reason: 'provider_protocol', dispatched: true });
    expect(failure.message).toContain(why);
  });
});
