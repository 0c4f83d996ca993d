import { readFileSync, writeFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AddressInfo, Server, Socket } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { TEXTS } from '@antiphon/contracts/causes';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelAnswer } from '@antiphon/providers-domain';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import { createCertificates, type TestCertificates } from '@antiphon/testing';
import {
  closedPort,
  openAiStream,
  startForwardProxy,
  startHttpProvider,
  type ForwardProxyOptions,
} from '@antiphon/testing/providers';
import { createModels } from './create-models.js';

const KEY = 'sk-way-canary-0123456789';
const PASSWORD = 'proxy-canary-123';

let certificates: TestCertificates;
let pem: Record<'ca' | 'server' | 'serverKey' | 'named' | 'namedKey', string>;
beforeAll(() => {
  certificates = createCertificates();
  const read = (path: string): string => readFileSync(path, 'utf8');
  pem = {
    ca: read(certificates.ca),
    ...{ server: read(certificates.serverCert), serverKey: read(certificates.serverKey) },
    ...{ named: read(certificates.strangerCert), namedKey: read(certificates.strangerKey) },
  };
});
afterAll(() => certificates.remove());

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
const closeLater = <T extends { close(): unknown }>(thing: T): T => {
  cleanups.push(() => thing.close());
  return thing;
};

const portOf = (url: string): number => Number(new URL(url).port);

const listen = async (server: Server): Promise<string> => {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
};

const REPLY = { text: ['hel', 'lo'] };
const answer = (
  _request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
): void => {
  response.setHeader('content-type', 'text/event-stream');
  response.statusCode = 200;
  response.end(openAiStream('m', REPLY).join(''));
};

/** Starts a provider over TLS. Its certificate is for loopback, or for `stranger.example`. */
const startTls = (cert: 'server' | 'named' = 'server'): Promise<string> => {
  const key = cert === 'server' ? pem.serverKey : pem.namedKey;
  return listen(createServer({ cert: pem[cert], key }, answer));
};

const call = async (
  settings: Partial<ProviderConfig>,
  { env = {}, streaming = true }: { env?: Record<string, string>; streaming?: boolean } = {},
): Promise<ModelAnswer | ModelFailure> => {
  const provider = { name: 'it', kind: 'openai-compatible', apiKeyEnv: 'KEY', ...settings };
  const config = { source: null, parameters: [], providers: [provider] } as unknown as AntiphonConfig;
  const models = closeLater(createModels(config, { KEY, ...env }));
  const request = {
    ...{ provider: 'it', model: 'm', system: '', messages: [{ role: 'user', text: 'hi' }] as const },
    ...{ tools: [], maxOutputTokens: 10, signal: new AbortController().signal, streaming },
  };
  return models
    .complete(request, { onText: () => undefined, onThought: () => undefined })
    .catch((error: unknown) => {
      if (error instanceof ModelFailure) return error;
      throw error;
    });
};

const messageOf = async (result: Promise<ModelAnswer | ModelFailure>): Promise<string> =>
  ((await result) as ModelFailure).message;

describe('a provider over TLS', () => {
  it('is trusted by the certificates of its ca_file', async () => {
    const baseUrl = await startTls();
    expect(await call({ baseUrl, caFile: certificates.ca })).toMatchObject({ text: 'hello' });
  });

  it('is refused without them once, before the key is sent, and the error names ca_file', async () => {
    const baseUrl = await startTls();
    for (const settings of [{}, { caFile: certificates.otherCa }]) {
      const failure = await call({ baseUrl, ...settings });
      expect(failure).toMatchObject({ dispatched: false, retryable: false });
      expect((failure as ModelFailure).message).toMatch(
        /^provider unreachable: the certificate of 127\.0\.0\.1:\d+ is not trusted \([A-Z_]+\); set ca_file/,
      );
    }
  });

  it('is refused under another name', async () => {
    const baseUrl = await startTls('named');
    expect(await messageOf(call({ baseUrl, caFile: certificates.ca }))).toMatch(
      /the certificate of 127\.0\.0\.1:\d+ is for another name; check base_url$/,
    );
  });

  it('is named where it does not speak TLS at all', async () => {
    const plain = closeLater(await startHttpProvider((_request, response) => response.end()));
    const baseUrl = plain.url.replace('http:', 'https:');
    expect(await messageOf(call({ baseUrl }))).toMatch(
      /does not speak TLS \([A-Z_]+\); check base_url: http:/,
    );
  });

  it.each([
    ['a missing file', () => join(tmpdir(), 'no-such-file.pem'), 'cannot be read (ENOENT)'],
    ['a folder', () => tmpdir(), 'cannot be read (EISDIR)'],
    ['a key', () => certificates.serverKey, 'holds no certificate in PEM form'],
  ])('fails each call with %s as its ca_file', async (_name, path, problem) => {
    const baseUrl = await startTls();
    const caFile = path();
    expect(await messageOf(call({ baseUrl, caFile }))).toBe(
      `provider it cannot be reached: ca_file ${caFile} ${problem}`,
    );
  });

  it('fails each call with a damaged certificate as its ca_file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'antiphon-damaged-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const caFile = join(folder, 'ca.pem');
    writeFileSync(caFile, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    expect(await messageOf(call({ baseUrl: 'https://x.example', caFile }))).toContain(
      'holds a certificate that cannot be read',
    );
  });

  it.each([
    ['HTTP/2 alone', { allowHTTP1: false }],
    ['HTTP/1.1 and 2', { allowHTTP1: true }],
  ])('is spoken to where it speaks %s, also by a second call', async (_name, options) => {
    const { server: cert, serverKey: key } = pem;
    const seen: string[] = [];
    const server = createSecureServer({ cert, key, ...options }, (request, response) => {
      seen.push(request.httpVersion);
      answer(request, response);
    });
    const baseUrl = await listen(server as unknown as Server);
    const config = {
      source: null,
      parameters: [],
      providers: [
        { name: 'it', kind: 'openai-compatible', apiKeyEnv: null, baseUrl, caFile: certificates.ca },
      ],
    } as unknown as AntiphonConfig;
    const models = closeLater(createModels(config, {}));
    for (let n = 0; n < 2; n += 1) {
      const request = {
        ...{ provider: 'it', model: 'm', system: '', messages: [{ role: 'user', text: 'hi' }] as const },
        ...{ tools: [], maxOutputTokens: 10, signal: new AbortController().signal, streaming: true },
      };
      const result = await models.complete(request, { onText: () => undefined, onThought: () => undefined });
      expect(result).toMatchObject({ text: 'hello' });
    }
    expect(seen).toEqual(options.allowHTTP1 ? ['1.1', '1.1'] : ['2.0', '2.0']);
  });
});

const proxyTo = async (url: string, more: Partial<ForwardProxyOptions> = {}) =>
  closeLater(await startForwardProxy({ portOf: () => portOf(url), ...more }));

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((entry) => entry?.address === '::1');

describe('a provider on this machine', () => {
  // @shows U60
  it.each([
    ['localhost', '127.0.0.1'],
    ['127.0.0.1', '127.0.0.1'],
    ...(hasIpv6 ? [['[::1]', '::1'] as const, ['[0:0:0:0:0:0:0:1]', '::1'] as const] : []),
  ])('is reached at %s where it listens on %s alone', async (name, address) => {
    const server = createPlainServer(answer).listen(0, address);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const result = await call({ baseUrl: `http://${name}:${port}/v1` });
    server.closeAllConnections();
    server.close();
    expect(result).toMatchObject({ text: 'hello' });
  });
});

describe('a provider behind a proxy', () => {
  // @shows U70
  it('is reached through a tunnel of HTTPS_PROXY, whose name the proxy resolves', async () => {
    const proxy = await proxyTo(await startTls('named'));
    const settings = { baseUrl: 'https://stranger.example/v1', caFile: certificates.ca };
    expect(await call(settings, { env: { HTTPS_PROXY: proxy.url } })).toMatchObject({ text: 'hello' });
    expect(proxy.requests).toEqual([
      { method: 'CONNECT', target: 'stranger.example:443', authorization: undefined },
    ]);
  });

  it('is reached without TLS by the whole URL, through HTTP_PROXY', async () => {
    const plain = closeLater(
      await startHttpProvider((_request, response) => answer(_request as never, response)),
    );
    const proxy = await proxyTo(plain.url);
    const settings = { baseUrl: 'http://stranger.example/v1' };
    expect(await call(settings, { env: { http_proxy: proxy.url } })).toMatchObject({ text: 'hello' });
    expect(proxy.requests[0]?.target).toBe('http://stranger.example/v1/chat/completions');
    expect(plain.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  it('is reached through the proxy of its setting, over TLS, with a user and a password', async () => {
    const credentials = `Basic ${Buffer.from(`me:${PASSWORD}`).toString('base64')}`;
    const tls = { cert: pem.server, key: pem.serverKey };
    const proxy = await proxyTo(await startTls('named'), { credentials, tls });
    const own = proxy.url.replace('https://', `https://me:${PASSWORD}@`);
    const settings = { baseUrl: 'https://stranger.example/v1', caFile: certificates.ca, proxy: own };
    expect(await call(settings, { env: { HTTPS_PROXY: await closedPort() } })).toMatchObject({
      text: 'hello',
    });
  });

  it.each(['https://stranger.example/v1', 'http://stranger.example/v1'])(
    'is not reached at %s where the proxy wants another password, which no error shows',
    async (baseUrl) => {
      const proxy = await proxyTo(await startTls('named'), { credentials: 'Basic other' });
      const own = proxy.url.replace('http://', `http://me:${PASSWORD}@`);
      const failure = (await call({ baseUrl, proxy: own })) as ModelFailure;
      expect(failure).toMatchObject({ dispatched: false, retryable: false });
      expect(failure.message).toContain(
        `the proxy ${proxy.url} (proxy of provider it) refused the connection to stranger.example:`,
      );
      expect(failure.message).toContain(
        'with status 407; put the user and password of the proxy into its URL',
      );
      const everything = `${failure.stack}${String(failure.cause)}${JSON.stringify(failure)}`;
      for (const secret of [PASSWORD, Buffer.from(`me:${PASSWORD}`).toString('base64'), KEY])
        expect(everything).not.toContain(secret);
    },
  );

  it('is not reached where the proxy refuses the tunnel, or does not run', async () => {
    const settings = { baseUrl: 'https://stranger.example/v1' };
    const proxy = await proxyTo('http://127.0.0.1:1', { refuseWith: 403 });
    expect(await call(settings, { env: { HTTPS_PROXY: proxy.url } })).toMatchObject({
      message: `provider unreachable: the proxy ${proxy.url} (HTTPS_PROXY) refused the connection to stranger.example:443 with status 403; check the rules of the proxy, or add the host to NO_PROXY`,
      dispatched: false,
      retryable: false,
    });
    const dead = await closedPort();
    expect(await call(settings, { env: { HTTPS_PROXY: dead } })).toMatchObject({
      message: `provider unreachable: no connection to stranger.example:443 through the proxy ${dead} (HTTPS_PROXY) (ECONNREFUSED); check the proxy and base_url`,
      dispatched: false,
      retryable: true,
    });
  });

  it('is called at no address that a broken proxy setting could mean', async () => {
    const settings = { baseUrl: 'https://stranger.example/v1' };
    const socks = { HTTPS_PROXY: `socks5://me:${PASSWORD}@127.0.0.1:1` };
    expect(await call(settings, { env: socks })).toMatchObject({
      message:
        'provider it cannot be reached: HTTPS_PROXY is not the URL of an http or https proxy (not shown)',
      dispatched: false,
    });
  });

  it('is reached directly on this machine, also where a proxy is set', async () => {
    const baseUrl = await startTls();
    const dead = await closedPort();
    const env = { HTTPS_PROXY: dead, HTTP_PROXY: dead, NODE_USE_ENV_PROXY: '1' };
    const settings = { baseUrl, caFile: certificates.ca, proxy: dead };
    expect(await call(settings, { env })).toMatchObject({ text: 'hello' });
  });
});

describe('a failed call', () => {
  it('has a cause with fields, which is the same after each text was reworded', async () => {
    const html = { 'content-type': 'text/html' };
    const events = { 'content-type': 'text/event-stream' };
    const provider = closeLater(
      await startHttpProvider(({ path }, response) => {
        if (path.startsWith('/moved'))
          response.writeHead(307, { location: 'http://127.0.0.1/x?key=1' }).end();
        else if (path.startsWith('/page')) response.writeHead(404, html).end('<!doctype html>');
        else if (path.startsWith('/busy')) response.writeHead(503).end('{"error":{"message":"busy"}}');
        else if (path.startsWith('/type')) response.writeHead(200, html).end('<!doctype html>');
        else if (path.startsWith('/half')) response.writeHead(200, events).end('data: {"choices":[{}]}\n\n');
        else response.writeHead(200, { ...events, 'content-encoding': 'compress' }).end();
      }),
    );
    const { url } = provider;
    const refused = await closedPort();
    const causesOf = (): Promise<unknown[]> =>
      Promise.all(
        [refused, ...['moved', 'page', 'busy', 'type', 'half', 'coded'].map((path) => `${url}/${path}`)].map(
          async (baseUrl) => ((await call({ baseUrl })) as ModelFailure).why,
        ),
      );
    const causes = await causesOf();
    expect(causes).toEqual([
      expect.objectContaining({ kind: 'provider_unreachable', problem: 'none_local', code: 'ECONNREFUSED' }),
      expect.objectContaining({ kind: 'provider_refused', form: 'redirect', said: 'http://127.0.0.1/x' }),
      expect.objectContaining({ kind: 'provider_refused', form: 'html', advice: 'no_version', said: '' }),
      expect.objectContaining({ kind: 'provider_refused', form: 'text', said: 'busy', advice: 'overloaded' }),
      expect.objectContaining({ kind: 'provider_wrong_type', type: 'text/html' }),
      { kind: 'provider_answer_broken', problem: 'incomplete', detail: 0 },
      { kind: 'provider_answer_broken', problem: 'unknown_encoding', detail: 'compress' },
    ]);
    const kinds = Object.keys(TEXTS) as (keyof typeof TEXTS)[];
    const texts = kinds.map((kind) => jest.spyOn(TEXTS, kind).mockReturnValue('in another wording'));
    try {
      expect(await causesOf()).toEqual(causes);
    } finally {
      for (const text of texts) text.mockRestore();
    }
  });
});

describe('an address that is no endpoint', () => {
  // @shows U32
  it('is named in the error, with what is usually missing', async () => {
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response.writeHead(404, { 'content-type': 'text/html' }).end('<!doctype html><p>nothing here'),
      ),
    );
    expect(await messageOf(call({ baseUrl: provider.url }))).toBe(
      'provider error 404: an HTML page instead of an error message; check the name of the model and ' +
        `base_url, which ends in /v1 for most servers (model m at ${provider.url}/chat/completions)`,
    );
  });

  it('is named where a page answers with 200', async () => {
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>welcome'),
      ),
    );
    expect(await messageOf(call({ baseUrl: `${provider.url}/ui` }))).toContain(
      `check base_url (${provider.url}/ui/chat/completions)`,
    );
  });
});
