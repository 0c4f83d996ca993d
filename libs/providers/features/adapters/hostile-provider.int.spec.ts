import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ModelFailure, type ModelAnswer, type ModelRequest } from '@antiphon/providers-domain';
import type { AntiphonConfig } from '@antiphon/config';
import {
  anthropicMessage,
  anthropicStream,
  closedPort,
  openAiCompletion,
  openAiStream,
  startHttpProvider,
  startRawProvider,
  type MockReply,
} from '@antiphon/testing/providers';
import type { ProviderLimits } from '../transport/provider-call.js';
import { createModels, type Models } from './create-models.js';

const KEY = 'sk-hostile-canary-0123456789';
/** Timeouts so long that they decide no test that is not about timeouts. */
const PATIENT: Partial<ProviderLimits> = {
  connectMs: 20_000,
  firstByteMs: 20_000,
  idleMs: 20_000,
  totalMs: 20_000,
};

const FORMATS = [
  { kind: 'anthropic', path: '', stream: anthropicStream, whole: anthropicMessage },
  { kind: 'openai', path: '/v1', stream: openAiStream, whole: openAiCompletion },
] as const;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
const closeLater = <T extends { close(): unknown }>(thing: T): T => {
  cleanups.push(() => thing.close());
  return thing;
};

interface Attempt {
  readonly models: Models;
  readonly result: Promise<ModelAnswer | ModelFailure>;
  readonly text: () => string;
}

const modelsAt = (kind: string, baseUrl: string, limits: Partial<ProviderLimits> = PATIENT): Models =>
  closeLater(
    createModels(
      {
        source: null,
        parameters: [],
        providers: [{ name: 'it', kind, baseUrl, apiKeyEnv: 'KEY' }],
      } as unknown as AntiphonConfig,
      { KEY },
      { limits },
    ),
  );

const attempt = (
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

const HELP = 'check base_url, and that the server runs';
const SSE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';
const HELLO: MockReply = { text: ['one ', 'two ', 'three'] };

describe.each(FORMATS)('a hostile provider of kind $kind', ({ kind, path, stream, whole }) => {
  const at = (url: string, limits = PATIENT) => modelsAt(kind, `${url}${path}`, limits);

  it('is unreachable without dispatch when the connection is refused', async () => {
    const url = await closedPort();
    expect(await attempt(at(url)).result).toMatchObject({
      message: `provider unreachable: no connection to ${new URL(url).host} (ECONNREFUSED); ${HELP}`,
      reason: 'provider_unreachable',
      dispatched: false,
      retryable: true,
    });
  });

  it('is unreachable when its name does not resolve, and its credentials are not in the message', async () => {
    const { result } = attempt(modelsAt(kind, 'http://user:secret@provider.invalid'));
    const failure = await result;
    expect(failure).toMatchObject({ dispatched: false, retryable: true });
    const { message } = failure as ModelFailure;
    expect(message).toMatch(
      /^provider unreachable: no connection to provider\.invalid:80 \(E[A-Z_]+\); check base_url/,
    );
    expect(message).not.toContain('secret');
  });

  it('times out without dispatch when no connection is established', async () => {
    // The server accepts the connection and never responds to the TLS handshake.
    const raw = closeLater(await startRawProvider(() => undefined));
    const { result } = attempt(at(raw.url.replace('http:', 'https:'), { ...PATIENT, connectMs: 200 }));
    expect(await result).toMatchObject({
      message: 'provider timeout: no connection within 0.2 s (connect_s of provider it)',
      reason: 'provider_timeout',
      dispatched: false,
      retryable: true,
    });
  });

  it('times out when it accepts the connection and never responds', async () => {
    const provider = closeLater(await startHttpProvider(() => undefined));
    const { result } = attempt(at(provider.url, { ...PATIENT, firstByteMs: 200 }));
    expect(await result).toMatchObject({
      message: 'provider timeout: no first byte within 0.2 s (first_byte_s of provider it)',
      dispatched: true,
      // The same wait at a server of this machine.
      retryable: false,
    });
    await provider.requests[0]?.closed;
  });

  it('times out when its stream stops, after the text that had arrived', async () => {
    const provider = closeLater(
      await startHttpProvider((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(stream('m', HELLO).slice(0, -4).join(''));
      }),
    );
    const { result, text } = attempt(at(provider.url, { ...PATIENT, idleMs: 300 }));
    expect(await result).toMatchObject({
      message: 'provider timeout: no further byte within 0.3 s (between_bytes_s of provider it)',
      dispatched: true,
    });
    expect(text()).toMatch(/^one two/);
    await provider.requests[0]?.closed;
  });

  it('times out at the deadline of the whole call when it only sends comments', async () => {
    const provider = closeLater(
      await startHttpProvider((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const timer = setInterval(() => response.write(': still thinking\n\n'), 20);
        response.once('close', () => clearInterval(timer));
      }),
    );
    const { result } = attempt(at(provider.url, { ...PATIENT, totalMs: 600 }));
    expect(await result).toMatchObject({
      message: 'provider timeout: no whole answer within 0.6 s (attempt_s of provider it)',
    });
  });

  it('completes no step when the connection is reset after some deltas', async () => {
    let reset = (): void => undefined;
    const raw = closeLater(
      await startRawProvider((socket) => {
        reset = () => void socket.resetAndDestroy();
        socket.write(SSE_HEAD + stream('m', HELLO).slice(0, -4).join(''));
      }),
    );
    const { result, text } = attempt(at(raw.url), { onText: (all) => all.startsWith('one two') && reset() });
    expect(await result).toMatchObject({ reason: 'provider_protocol', dispatched: true, retryable: true });
    expect(text()).toMatch(/^one two/);
  });

  it('is unreachable, but dispatched, when the connection is reset before a response', async () => {
    const raw = closeLater(await startRawProvider((socket) => void socket.resetAndDestroy()));
    expect(await attempt(at(raw.url)).result).toMatchObject({
      message: expect.stringMatching(
        `^provider unreachable: the connection to ${new URL(raw.url).host} broke before a response.*; check base_url`,
      ),
      reason: 'provider_unreachable',
      dispatched: true,
    });
  });

  it('completes no step when the stream ends within a line', async () => {
    const body = stream('m', HELLO).join('');
    const raw = closeLater(
      await startRawProvider((socket) => socket.end(SSE_HEAD + body.slice(0, body.indexOf('three') + 2))),
    );
    expect(await attempt(at(raw.url)).result).toMatchObject({ reason: 'provider_protocol', retryable: true });
  });

  it('skips an event that is not JSON where the answer has its end', async () => {
    const [first, ...rest] = stream('m', HELLO);
    const broken = [first, 'event: content_block_delta\ndata: {"type":"content_\n\n', ...rest].join('');
    const raw = closeLater(await startRawProvider((socket) => socket.end(SSE_HEAD + broken)));
    expect(await attempt(at(raw.url)).result).toMatchObject({ text: 'one two three' });
  });

  it.each([
    ['a captive portal', 'text/html', '<html>log in</html>', false],
    ['plain text', 'text/plain', 'busy', true],
  ])('fails on %s with status 200', async (_name, type, body, streaming) => {
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response.writeHead(200, { 'content-type': type }).end(body),
      ),
    );
    const failure = await attempt(at(provider.url), { streaming }).result;
    expect(failure).toMatchObject({ reason: 'provider_protocol', retryable: false });
    expect((failure as ModelFailure).message).toContain(type);
  });

  it('is read where it does not stream although it was asked to', async () => {
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify(whole('m', HELLO))),
      ),
    );
    const { result, text } = attempt(at(provider.url));
    expect(await result).toMatchObject({ text: 'one two three', usage: { inputTokens: 10 } });
    expect(text()).toBe('one two three');
  });

  it.each(['text/plain', 'application/json', 'application/octet-stream'])(
    'is read where its stream has the content type %s',
    async (type) => {
      const provider = closeLater(
        await startHttpProvider((_request, response) =>
          response.writeHead(200, { 'content-type': type }).end(stream('m', HELLO).join('')),
        ),
      );
      expect(await attempt(at(provider.url)).result).toMatchObject({ text: 'one two three' });
    },
  );

  it('fails without another try on JSON that is no answer', async () => {
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}'),
      ),
    );
    expect(await attempt(at(provider.url)).result).toMatchObject({
      message: expect.stringContaining('answered with application/json instead of text/event-stream'),
      retryable: false,
    });
  });

  it.each([
    ['gzip', "the provider's answer is not valid gzip"],
    ['compress', "the provider's answer has the unknown encoding compress"],
    ['gzip, br', "the provider's answer has the unknown encoding gzip, br"],
  ])('fails on a body that is not what its encoding %s says', async (encoding, message) => {
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response
          .writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': encoding })
          .end('no such thing'),
      ),
    );
    expect(await attempt(at(provider.url)).result).toMatchObject({ reason: 'provider_protocol', message });
    expect(provider.requests[0]?.headers['accept-encoding']).toBe('identity');
  });

  it('aborts a compressed response that expands beyond the size limit', async () => {
    const bomb = gzipSync(`data: ${'x'.repeat(50_000_000)}`);
    expect(bomb.length).toBeLessThan(100_000);
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response
          .writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
          .end(bomb),
      ),
    );
    const { result } = attempt(at(provider.url, { ...PATIENT, maxAnswerBytes: 200_000 }));
    expect(await result).toMatchObject({
      message: "the provider's answer is over 200000 bytes",
    });
  });

  it('aborts a response over the size limit, in one line or in many', async () => {
    for (const filler of [`data: ${'x'.repeat(300_000)}`, `: ${'y'.repeat(98)}\n`.repeat(3_000)]) {
      const provider = closeLater(
        await startHttpProvider((_request, response) =>
          response.writeHead(200, { 'content-type': 'text/event-stream' }).write(filler),
        ),
      );
      const { result } = attempt(at(provider.url, { ...PATIENT, maxAnswerBytes: 200_000 }));
      expect(await result).toMatchObject({ reason: 'provider_protocol' });
      await provider.requests[0]?.closed;
    }
  });

  it('fails on a response that nests 100,000 levels deep', async () => {
    const deep = `{"content":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(deep),
      ),
    );
    expect(await attempt(at(provider.url), { streaming: false }).result).toMatchObject({
      reason: 'provider_protocol',
    });
  });

  it('fails when the server does not speak HTTP', async () => {
    const raw = closeLater(await startRawProvider((socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n')));
    expect(await attempt(at(raw.url)).result).toMatchObject({
      reason: 'provider_protocol',
      retryable: false,
    });
  });

  it('does not follow a redirect, which would forward the key', async () => {
    const thief = closeLater(await startHttpProvider((_request, response) => response.end()));
    const provider = closeLater(
      await startHttpProvider((_request, response) =>
        response.writeHead(307, { location: `${thief.url}/v2?key=canary` }).end(),
      ),
    );
    const failure = await attempt(at(provider.url)).result;
    expect(failure).toMatchObject({ reason: 'provider_error', status: 307, retryable: false, refused: true });
    const { message } = failure as ModelFailure;
    expect(message).toContain(`redirects to ${thief.url}/v2; a redirect is not followed`);
    expect(message).not.toContain('canary');
    expect(thief.requests).toHaveLength(0);
  });

  it('closes the connection within a second of a cancellation, and emits no more text', async () => {
    const provider = closeLater(
      await startHttpProvider((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(stream('m', HELLO).slice(0, -4).join(''));
      }),
    );
    const cancel = new AbortController();
    let at0 = 0;
    const { result, text } = attempt(at(provider.url, { ...PATIENT, idleMs: 60_000 }), {
      signal: cancel.signal,
      onText: (all) => {
        if (!all.startsWith('one two')) return;
        at0 = performance.now();
        cancel.abort();
      },
    });
    expect(await result).toMatchObject({
      reason: 'cancelled',
      message: 'cancelled',
      dispatched: true,
      retryable: false,
    });
    await provider.requests[0]?.closed;
    expect(performance.now() - at0).toBeLessThan(1_000);
    expect(text()).toMatch(/^one two/);
  });

  it('reuses one connection for calls that follow each other, streamed or not', async () => {
    const provider = closeLater(
      await startHttpProvider((request, response) => {
        if ((request.body as { stream?: boolean }).stream === true) {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          for (const piece of stream('m', HELLO)) response.write(piece);
          response.end();
        } else
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify(whole('m', HELLO)));
      }),
    );
    const models = at(provider.url);
    for (const streaming of [true, true, false, true, false])
      expect(await attempt(models, { streaming }).result).toMatchObject({
        text: 'one two three',
        usage: { inputTokens: 10, outputTokens: 5 },
      });
    expect(provider.requests).toHaveLength(5);
    expect(provider.connections()).toBe(1);
  });

  it('completes an answer although the connection stays open after the model has finished', async () => {
    const provider = closeLater(
      await startHttpProvider((_request, response) => {
        const pieces = stream('m', { ...HELLO, usage: null });
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(pieces.filter((piece) => !/message_stop|\[DONE\]/.test(piece)).join(''));
      }),
    );
    const { result } = attempt(at(provider.url, { ...PATIENT, afterFinishMs: 100 }));
    expect(await result).toMatchObject({ text: 'one two three', finishReason: 'stop', usage: null });
    await provider.requests[0]?.closed;
  });

  it('marks a tool call whose input was cut', async () => {
    const reply = { tools: [{ id: 'same', name: 'echo', input: { a: 'x'.repeat(20) } }] };
    const cut = stream('m', reply).filter((piece) => !piece.includes('xxxx\\"}'));
    const raw = closeLater(await startRawProvider((socket) => socket.end(SSE_HEAD + cut.join(''))));
    expect(await attempt(at(raw.url)).result).toMatchObject({
      toolCalls: [{ name: 'echo', input: {}, problem: 'not_json' }],
    });
  });

  it('preserves ids of tool calls, also repeated ones', async () => {
    const tools = [1, 2].map((n) => ({ id: 'same', name: 'echo', input: { n } }));
    const raw = closeLater(
      await startRawProvider((socket) => socket.end(SSE_HEAD + stream('m', { tools }).join(''))),
    );
    expect(await attempt(at(raw.url)).result).toMatchObject({
      finishReason: 'tool_calls',
      toolCalls: [
        { providerCallId: 'same', name: 'echo', input: { n: 1 } },
        { providerCallId: 'same', name: 'echo', input: { n: 2 } },
      ],
    });
  });
});
