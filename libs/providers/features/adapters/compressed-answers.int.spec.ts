import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import type { ModelAnswer, ModelFailure } from '@antiphon/providers-domain';
import { openAiCompletion, openAiStream, startHttpProvider } from '@antiphon/testing/providers';
import { attempt, closeAfterEach, modelsAt } from '../testing/attempt-call.js';

const REPLY = { text: ['hel', 'lo'] };
const closeLater = closeAfterEach();
const callAt = (baseUrl: string, streaming = true): Promise<ModelAnswer | ModelFailure> =>
  attempt(closeLater(modelsAt('openai-compatible', baseUrl)), { streaming }).result;

describe('a compressed answer', () => {
  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('is read as %s: a stream, a whole answer, and an error', async (encoding, compress) => {
    const bodies = [
      [200, 'text/event-stream', openAiStream('m', REPLY).join('')],
      [200, 'application/json', JSON.stringify(openAiCompletion('m', REPLY))],
      [400, 'application/json', JSON.stringify({ error: { message: 'not like this' } })],
    ] as const;
    let next = 0;
    const provider = closeLater(
      await startHttpProvider((_request, response) => {
        const [status, type, body] = bodies[next++] ?? bodies[0];
        response.writeHead(status, { 'content-type': type, 'content-encoding': encoding });
        response.end(compress(body));
      }),
    );
    const baseUrl = `${provider.url}/v1`;
    expect(await callAt(baseUrl)).toMatchObject({ text: 'hello' });
    expect(await callAt(baseUrl, false)).toMatchObject({ text: 'hello' });
    expect(((await callAt(baseUrl)) as ModelFailure).message).toContain('provider error 400: not like this');
  });

  it('that breaks off after the model has finished is used, and one that breaks off before is not', async () => {
    const pieces = openAiStream('m', REPLY);
    let keep = pieces.length - 1;
    const provider = closeLater(
      await startHttpProvider((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
        response.end(gzipSync(pieces.slice(0, keep).join('')).subarray(0, -8));
      }),
    );
    expect(await callAt(`${provider.url}/v1`)).toMatchObject({ text: 'hello' });
    keep = 2;
    expect(await callAt(`${provider.url}/v1`)).toMatchObject({ reason: 'provider_protocol' });
  });
});
