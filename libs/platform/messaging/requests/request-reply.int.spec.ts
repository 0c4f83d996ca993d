import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Controller, Module } from '@nestjs/common';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { z } from 'zod';
import { AppError, ERROR_KINDS } from '@antiphon/kernel';
import { defineRequest } from '@antiphon/contracts/messaging';
import {
  contextFrom,
  createLogger,
  currentContext,
  runWithContext,
  silentLogger,
} from '@antiphon/observability';
import { DLQ_HEADERS } from '../consumers/dead-letters.js';
import { HandleRequest } from './request-server.js';
import { connectNats } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { LocalRequests } from './local-requests.js';
import { createRequestClient } from './request-client.js';
import type { RequestClient } from './request-client.js';
import { RequestServer } from './request-server.js';

const url = process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
// Own subjects isolate spec files that run in parallel.
const area = `t${randomUUID().slice(0, 8)}`;
const anything = z.record(z.string(), z.unknown());

const echo = defineRequest({
  subject: `cmd.${area}.echo`,
  request: z.strictObject({ text: z.string(), times: z.int().default(1) }),
  reply: z.object({ text: z.string(), context: anything }),
  timeoutMs: 2_000,
});
/** As `echo`, for one process. */
const direct = defineRequest({ ...echo, subject: `cmd.${area}.direct`, toProcess: true });
const failing = defineRequest({
  subject: `cmd.${area}.fail`,
  request: z.strictObject({ kind: z.string() }),
  reply: z.object({}),
  timeoutMs: 2_000,
});
const slow = defineRequest({
  subject: `cmd.${area}.slow`,
  request: z.strictObject({}),
  reply: z.object({ done: z.boolean() }),
  timeoutMs: 50,
});
const huge = defineRequest({
  subject: `cmd.${area}.huge`,
  request: z.strictObject({}),
  reply: z.object({ text: z.string() }),
  timeoutMs: 2_000,
});
const broken = defineRequest({
  subject: `cmd.${area}.broken`,
  request: z.strictObject({}),
  reply: z.object({ text: z.string() }),
  timeoutMs: 2_000,
});

/** Maximum size of a message on this server, bytes. */
let maxPayload = 0;
let release: () => void = () => {};
let started: () => void = () => {};

@Controller()
class EchoController {
  @HandleRequest(echo)
  async echo({ text, times }: z.output<typeof echo.request>): Promise<z.input<typeof echo.reply>> {
    await Promise.resolve();
    return { text: text.repeat(times), context: { ...currentContext() } };
  }

  @HandleRequest(direct)
  direct(request: z.output<typeof echo.request>): Promise<z.input<typeof echo.reply>> {
    return this.echo(request);
  }

  @HandleRequest(failing)
  fail({ kind }: z.output<typeof failing.request>): Promise<Record<string, never>> {
    if (kind === 'unexpected') throw new TypeError('password=hunter2 at /srv/secret.js:1');
    const data = { scope: 'session' };
    return Promise.reject(
      new AppError(kind as (typeof ERROR_KINDS)[number], 'TEST.FAILED', `it is ${kind}`, { data }),
    );
  }

  @HandleRequest(slow)
  async slow(): Promise<{ done: boolean }> {
    const released = new Promise<void>((resolve) => (release = resolve));
    started();
    await released;
    return { done: true };
  }

  @HandleRequest(huge)
  huge(): { text: string } {
    return { text: 'x'.repeat(maxPayload) };
  }

  @HandleRequest(broken)
  broken(): { text: string } {
    return { text: 5 as unknown as string };
  }
}

@Module({ controllers: [EchoController] })
class EchoModule {}

const lines: Record<string, unknown>[] = [];
const logger = createLogger({
  service: 'agent',
  sink: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
});
const lineOf = (correlationId: string) => lines.find((line) => line['correlationId'] === correlationId);

describe('request/reply', () => {
  let serverLink: NatsLink;
  let clientLink: NatsLink;
  let app: INestMicroservice;
  let client: RequestClient;

  beforeAll(async () => {
    [serverLink, clientLink] = await Promise.all([
      connectNats({ url, service: 'agent', logger: silentLogger }),
      connectNats({ url, service: 'gateway', logger: silentLogger }),
    ]);
    const strategy = new RequestServer({ link: serverLink, logger });
    app = await NestFactory.createMicroservice(EchoModule, { strategy, logger: false });
    await app.listen();
    await serverLink.connection.flush();
    client = createRequestClient(clientLink);
    maxPayload = clientLink.connection.info?.max_payload ?? 0;
  });

  afterAll(async () => {
    await app.close();
    await Promise.all([serverLink.drain(), clientLink.drain()]);
  });

  const ask = (correlationId: string, kind: string) =>
    runWithContext(contextFrom('gateway', { correlationId }), () => client.request(failing, { kind }));

  it('replies with defaults filled in, in the context of the caller', async () => {
    const context = contextFrom('gateway', { correlationId: 'req-1', causationId: 'frame-1' });
    const reply = await runWithContext(context, () => client.request(echo, { text: 'ab', times: 2 }));
    expect(reply.text).toBe('abab');
    expect(reply.context).toMatchObject({ correlationId: 'req-1', causationId: 'frame-1', service: 'agent' });
    const [, trace, span] = String(reply.context['traceparent']).split('-');
    expect(trace).toBe(context.traceparent.split('-')[1]);
    expect(span).not.toBe(context.traceparent.split('-')[2]);
  });

  it('transmits errors of every kind unchanged', async () => {
    for (const kind of ERROR_KINDS) {
      const error = await ask(randomUUID(), kind).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        kind,
        code: 'TEST.FAILED',
        message: `it is ${kind}`,
        data: { scope: 'session' },
      });
    }
  });

  it('hides the details of an unexpected error from the caller and logs them', async () => {
    const error = (await ask('req-bug', 'unexpected').catch((thrown: unknown) => thrown)) as AppError;
    expect(error).toMatchObject({ kind: 'bug', code: 'INTERNAL.UNEXPECTED' });
    expect(JSON.stringify({ ...error, message: error.message })).not.toContain('hunter2');
    expect(lineOf('req-bug')).toMatchObject({ level: 'error', err: { type: 'TypeError' } });
  });

  it('rejects a request that breaks its contract, logs it and stays healthy', async () => {
    const bad = { text: 1 } as unknown as { text: string };
    const context = contextFrom('gateway', { correlationId: 'req-bad' });
    await expect(runWithContext(context, () => client.request(echo, bad))).rejects.toMatchObject({
      kind: 'invalid',
      code: 'REQUEST.INVALID',
      message: expect.stringContaining('text') as unknown as string,
    });
    expect(lineOf('req-bad')).toMatchObject({ level: 'info', code: 'REQUEST.INVALID' });
    await expect(client.request(echo, { text: 'ok' })).resolves.toMatchObject({ text: 'ok' });
  });

  it('ignores a field that it does not know, as of a newer service', async () => {
    const newer = { text: 'newer', extra: 1 } as unknown as { text: string };
    await expect(client.request(echo, newer)).resolves.toMatchObject({ text: 'newer' });
  });

  it.each([
    ['bytes that are no text', new Uint8Array([0xff, 0xfe])],
    ['text that is no JSON', '{"text":'],
    ['JSON of 100,000 levels', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['nothing', ''],
    ['null', 'null'],
  ])('rejects %s', async (_what, payload) => {
    const reply = await clientLink.connection.request(echo.subject, payload, { timeout: 2_000 });
    expect(reply.json()).toMatchObject({ ok: false, error: { kind: 'invalid', code: 'REQUEST.INVALID' } });
  });

  it('stores a broken command without a reply subject as a dead letter', async () => {
    const letters = clientLink.connection.subscribe('dlq.agent-requests', { max: 1 });
    await clientLink.connection.flush();
    clientLink.connection.publish(echo.subject, new Uint8Array([0xff, 0xfe]));
    for await (const letter of letters) {
      expect(letter.headers?.get(DLQ_HEADERS.code)).toBe('REQUEST.INVALID');
      expect(letter.headers?.get(DLQ_HEADERS.subject)).toBe(echo.subject);
      expect([...letter.data]).toEqual([0xff, 0xfe]);
    }
    await expect(client.request(echo, { text: 'ok' })).resolves.toMatchObject({ text: 'ok' });
  });

  it('reports that no process responds', async () => {
    const unserved = { ...echo, subject: `cmd.${area}.unserved` as const };
    await expect(client.request(unserved, { text: '' })).rejects.toMatchObject({
      kind: 'transient',
      code: 'MESSAGING.NO_RESPONDERS',
    });
  });

  it('rejects after the timeout', async () => {
    const asked = client.request(slow, {});
    await expect(asked).rejects.toMatchObject({ kind: 'transient', code: 'MESSAGING.TIMEOUT' });
    release();
  });

  it('reports a request or a reply that is larger than a message may be', async () => {
    await expect(client.request(echo, { text: 'x'.repeat(maxPayload) })).rejects.toMatchObject({
      code: 'MESSAGING.TOO_LARGE',
    });
    await expect(client.request(huge, {})).rejects.toMatchObject({
      kind: 'bug',
      code: 'MESSAGING.REPLY_FAILED',
    });
  });

  it('does not send a reply that breaks its contract', async () => {
    await expect(client.request(broken, {})).rejects.toMatchObject({
      kind: 'bug',
      code: 'INTERNAL.BAD_REPLY',
    });
  });

  it('distributes requests over the processes of a service, one reply each', async () => {
    const second = await connectNats({ url, service: 'agent', logger: silentLogger });
    const app2 = await NestFactory.createMicroservice(EchoModule, {
      strategy: new RequestServer({ link: second, logger }),
      logger: false,
    });
    await app2.listen();
    await second.connection.flush();
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) => client.request(echo, { text: String(i) })),
    );
    expect(replies.map(({ text }) => text)).toEqual(Array.from({ length: 50 }, (_, i) => String(i)));
    await app2.close();
    expect(second.connection.stats().inMsgs + serverLink.connection.stats().inMsgs).toBeGreaterThanOrEqual(
      50,
    );
    await second.drain();
    await expect(client.request(echo, { text: 'still' })).resolves.toMatchObject({ text: 'still' });
  });

  it('reaches the process that a request names, and any other one if that is gone', async () => {
    const processId = randomUUID();
    const named = await connectNats({ url, service: 'agent', logger: silentLogger });
    const strategy = new RequestServer({ link: named, logger, processId });
    const app2 = await NestFactory.createMicroservice(EchoModule, { strategy, logger: false });
    await app2.listen();
    await named.connection.flush();
    const receivedBy = async (contract: typeof echo, to?: string): Promise<number> => {
      const before = named.connection.stats().inMsgs;
      for (let i = 0; i < 20; i++)
        expect(await client.request(contract, { text: `${i}` }, { processId: to })).toMatchObject({
          text: `${i}`,
        });
      return named.connection.stats().inMsgs - before;
    };
    expect(await receivedBy(direct, processId)).toBe(20);
    // A contract without processes, and a process that is not there.
    expect(await receivedBy(echo, processId)).toBeLessThan(20);
    expect(await receivedBy(direct, randomUUID())).toBeLessThan(20);
    await app2.close();
    expect(await receivedBy(direct, processId)).toBe(0);
    await named.drain();
  });

  it('finishes requests in progress before it closes and accepts no new one', async () => {
    const link = await connectNats({ url, service: 'memory', logger: silentLogger });
    const own = { ...slow, timeoutMs: 5_000 };
    const draining = await NestFactory.createMicroservice(EchoModule, {
      strategy: new RequestServer({ link, logger }),
      logger: false,
    });
    await app.close();
    await draining.listen();
    await link.connection.flush();
    const begun = new Promise<void>((resolve) => (started = resolve));
    const asked = client.request(own, {});
    await begun;
    const closing = draining.close();
    await expect(
      (async () => {
        for (;;) await client.request(echo, { text: 'new' });
      })(),
    ).rejects.toMatchObject({ code: 'MESSAGING.NO_RESPONDERS' });
    release();
    await expect(asked).resolves.toEqual({ done: true });
    await closing;
    await link.drain();
  });

  it('reports at once that NATS is unreachable', async () => {
    const link = await connectNats({ url, service: 'gateway', logger: silentLogger });
    await link.drain();
    await expect(createRequestClient(link).request(echo, { text: '' })).rejects.toMatchObject({
      kind: 'transient',
      code: 'MESSAGING.UNAVAILABLE',
    });
    await expect(
      connectNats({
        url: 'nats://127.0.0.1:1',
        service: 'gateway',
        logger: silentLogger,
        connectTimeoutMs: 10,
      }),
    ).rejects.toMatchObject({ kind: 'transient', code: 'MESSAGING.UNAVAILABLE' });
  });
});

describe('a request to a service of the same process', () => {
  let link: NatsLink;
  let sender: NatsLink;
  let app: INestMicroservice;
  let byNats: RequestClient;
  let local: RequestClient;
  /** Requests that reached the handlers without NATS. */
  let found: string[];

  beforeAll(async () => {
    [link, sender] = await Promise.all([
      connectNats({ url, service: 'metering', logger: silentLogger }),
      connectNats({ url, service: 'agent', logger: silentLogger }),
    ]);
    found = [];
    const requests = new LocalRequests((subject) => subject !== slow.subject);
    const find = requests.find.bind(requests);
    requests.find = (subject) => {
      if (find(subject)) found.push(subject);
      return find(subject);
    };
    const strategy = new RequestServer({ link, logger, local: requests });
    app = await NestFactory.createMicroservice(EchoModule, { strategy, logger: false });
    await app.listen();
    await link.connection.flush();
    byNats = createRequestClient(sender);
    local = createRequestClient(sender, requests);
    maxPayload = sender.connection.info?.max_payload ?? 0;
  });
  afterAll(() => Promise.all([link.drain(), sender.drain()]));

  /** Sends the same request in both ways. Returns both outcomes, with errors as their wire form. */
  const sendBoth = async (send: (client: RequestClient) => Promise<unknown>): Promise<unknown[]> =>
    Promise.all(
      [byNats, local].map((client) =>
        runWithContext(contextFrom('agent', { correlationId: 'req-both' }), () => send(client)).catch(
          ({ kind, code, message, data }: AppError) => ({ kind, code, message, data: data ?? {} }),
        ),
      ),
    );
  const withoutSpan = (reply: unknown): unknown =>
    JSON.parse(JSON.stringify(reply, (key, value: unknown) => (key === 'traceparent' ? '' : value)));

  it.each<[string, (client: RequestClient) => Promise<unknown>]>([
    ['a reply with defaults filled in', (client) => client.request(echo, { text: 'ab' })],
    ...ERROR_KINDS.map((kind): [string, (client: RequestClient) => Promise<unknown>] => [
      `an error of kind ${kind}`,
      (client) => client.request(failing, { kind }),
    ]),
    ['an unexpected error', (client) => client.request(failing, { kind: 'unexpected' })],
    ['a request that breaks its contract', (client) => client.request(echo, { text: 1 } as never)],
    ['an unknown field', (client) => client.request(echo, { text: 'a', extra: 1 } as never)],
    ['a reply that breaks its contract', (client) => client.request(broken, {})],
    ['a reply that is too large', (client) => client.request(huge, {})],
  ])('has the same outcome as by NATS: %s', async (_what, send) => {
    const before = found.length;
    const [expected, actual] = await sendBoth(send);
    expect(withoutSpan(actual)).toEqual(withoutSpan(expected));
    expect(found.length).toBe(before + 1);
  });

  it('is refused with the same code if it is too large', async () => {
    const [expected, actual] = await sendBoth((client) =>
      client.request(echo, { text: 'x'.repeat(maxPayload) }),
    );
    expect(actual).toMatchObject({ kind: 'invalid', code: 'MESSAGING.TOO_LARGE' });
    expect(expected).toMatchObject({ kind: 'invalid', code: 'MESSAGING.TOO_LARGE' });
  });

  it('goes to NATS if the sender may not send it, and after the service has closed', async () => {
    const before = found.length;
    await expect(local.request(slow, {})).rejects.toMatchObject({ code: 'MESSAGING.TIMEOUT' });
    release();
    expect(found.length).toBe(before);
    await app.close();
    await expect(local.request(echo, { text: 'late' })).rejects.toMatchObject({
      code: 'MESSAGING.NO_RESPONDERS',
    });
  });

  it('rejects after the timeout, and the service finishes it before it closes', async () => {
    const requests = new LocalRequests(() => true);
    const strategy = new RequestServer({ link, logger, local: requests });
    const slowApp = await NestFactory.createMicroservice(EchoModule, { strategy, logger: false });
    await slowApp.listen();
    const client = createRequestClient(sender, requests);
    await expect(client.request(slow, {})).rejects.toMatchObject({ code: 'MESSAGING.TIMEOUT' });
    const begun = new Promise<void>((resolve) => (started = resolve));
    const asked = client.request({ ...slow, timeoutMs: 5_000 }, {});
    await begun;
    const closing = slowApp.close();
    release();
    await expect(asked).resolves.toEqual({ done: true });
    await closing;
  });
});
