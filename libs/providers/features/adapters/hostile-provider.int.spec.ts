import { describe, expect, it } from '@jest/globals';
import type { ModelFailure } from '@antiphon/providers-domain';
import { closedPort, startHttpProvider, startRawProvider } from '@antiphon/testing/providers';
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
const HELP = 'check base_url, and that the server runs';

describe.each(FORMATS)('a hostile provider of kind $kind', ({ kind, path, stream, whole }) => {
  const at = (url: string, limits = PATIENT) => closeLater(modelsAt(kind, `${url}${path}`, limits));

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
    const { result } = attempt(closeLater(modelsAt(kind, 'http://user:secret@provider.invalid')));
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
});
