import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import type { ModelFailure } from '@antiphon/providers-domain';
import { startHttpProvider, startRawProvider } from '@antiphon/testing/providers';
import {
  FORMATS,
  HELLO,
  PATIENT,
  SSE_HEAD,
  attempt,
  closeAfterEach,
  modelsAt,
} from '../testing/attempt-call.js';

const closeLater = closeAfterEach();

describe.each(FORMATS)('a hostile answer of a provider of kind $kind', ({ kind, path, stream, whole }) => {
  const at = (url: string, limits = PATIENT) => closeLater(modelsAt(kind, `${url}${path}`, limits));

  it('completes no step when the stream ends within a line', async () => {
    const body = stream('m', HELLO).join('');
    const raw = closeLater(
      await startRawProvider((socket) => socket.end(SSE_HEAD + body.slice(0, body.indexOf('three') + 2))),
    );
    expect(await attempt(at(raw.url)).result).toMatchObject({ reason: 'provider_protocol', retryable: true });
  });

  // @shows U11
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

  // @shows U30
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

  // @shows U06
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
