import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import { once } from 'node:events';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelAnswer, ModelRequest } from '@antiphon/providers-domain';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import { createCertificates, type TestCertificates } from '@antiphon/testing';
import { openAiStream } from '@antiphon/testing/providers';
import { until } from '@antiphon/testing/waits';
import { createModels, type Models } from './create-models.js';

let certificates: TestCertificates;
beforeAll(() => {
  certificates = createCertificates();
});
afterAll(() => certificates.remove());

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Handle = (request: Http2ServerRequest, response: Http2ServerResponse, n: number) => void;

/** Starts a server that speaks HTTP/2 alone. */
const startHttp2 = async (handle: Handle) => {
  const sessions = new Set<ServerHttp2Session>();
  let requests = 0;
  const server = createSecureServer(
    { cert: readFileSync(certificates.serverCert), key: readFileSync(certificates.serverKey) },
    (request, response) => handle(request, response, (requests += 1)),
  );
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined);
    session.once('close', () => sessions.delete(session));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(async () => {
    for (const session of sessions) session.destroy();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return { baseUrl: `https://127.0.0.1:${port}/v1`, sessions, requests: () => requests };
};

const modelsAt = (baseUrl: string, settings: Partial<ProviderConfig> = {}): Models => {
  const provider = { name: 'it', kind: 'openai-compatible', apiKeyEnv: null, baseUrl, ...settings };
  const config = { source: null, providers: [{ ...provider, caFile: certificates.ca }] };
  const models = createModels(config as unknown as AntiphonConfig, {});
  cleanups.push(() => models.close());
  return models;
};

const ask = (models: Models, more: Partial<ModelRequest> = {}): Promise<ModelAnswer | ModelFailure> =>
  models
    .complete(
      {
        ...{ provider: 'it', model: 'm', system: '', messages: [{ role: 'user', text: 'hi' }], tools: [] },
        ...{ maxOutputTokens: 10, signal: new AbortController().signal, streaming: true },
        ...more,
      },
      { onText: () => undefined, onThought: () => undefined },
    )
    .catch((error: unknown) => {
      if (error instanceof ModelFailure) return error;
      throw error;
    });

const pieces = openAiStream('m', { text: ['hel', 'lo'] });
const answer: Handle = (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(pieces.join(''));
};

describe('a provider that speaks HTTP/2 alone', () => {
  it('answers many calls at once', async () => {
    const { baseUrl } = await startHttp2(answer);
    const models = modelsAt(baseUrl);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(models)));
    for (const one of answers) expect(one).toMatchObject({ text: 'hello' });
  });

  it('sees the end of a call that is cancelled, and answers the next one', async () => {
    let closed = false;
    const { baseUrl, requests } = await startHttp2((request, response, n) => {
      if (n > 1) return answer(request, response, n);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(pieces[0] ?? '');
      response.stream.once('close', () => (closed = true));
    });
    const models = modelsAt(baseUrl);
    const cancel = new AbortController();
    const first = ask(models, { signal: cancel.signal });
    await until(() => requests() === 1);
    cancel.abort();
    expect(await first).toMatchObject({ reason: 'cancelled' });
    await until(() => closed);
    expect(await ask(models)).toMatchObject({ text: 'hello' });
  });

  it('has the same limits', async () => {
    const { baseUrl } = await startHttp2(() => undefined);
    expect(await ask(modelsAt(baseUrl, { firstByteMs: 200 }))).toMatchObject({
      message: 'provider timeout: no first byte within 0.2 s (first_byte_s of provider it)',
      dispatched: true,
    });
  });

  it('is understood where it refuses a call, also by a redirect', async () => {
    const { baseUrl } = await startHttp2((_request, response, n) => {
      if (n > 1) response.writeHead(308, { location: 'https://other.example/v1' }).end();
      else response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}');
    });
    const models = modelsAt(baseUrl);
    expect(await ask(models)).toMatchObject({ status: 401, retryable: false, refused: true });
    expect(await ask(models)).toMatchObject({
      status: 308,
      message: expect.stringContaining('redirects to https://other.example/v1'),
    });
  });

  it('is called over a new connection once it has closed the old one', async () => {
    const { baseUrl, sessions } = await startHttp2(answer);
    const models = modelsAt(baseUrl);
    expect(await ask(models)).toMatchObject({ text: 'hello' });
    for (const session of sessions) session.close();
    await until(() => sessions.size === 0);
    expect(await ask(models)).toMatchObject({ text: 'hello' });
  });

  it('breaks off a call as a provider of HTTP/1.1 does', async () => {
    const { baseUrl } = await startHttp2((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(pieces[0] ?? '', () => response.stream.destroy());
    });
    expect(await ask(modelsAt(baseUrl))).toMatchObject({ reason: 'provider_protocol', dispatched: true });
  });
});
