import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ERROR_KINDS, transient, type AppError } from '@antiphon/kernel';
import { contextFrom, runWithContext, silentLogger } from '@antiphon/observability';
import { DLQ_HEADERS } from '../consumers/dead-letters.js';
import { connectNats } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { createRequestClient, requestWithRetry } from './request-client.js';
import type { RequestClient } from './request-client.js';
import { RequestServer } from './request-server.js';
import { startSubject } from './service-starts.js';

import {
  EchoModule,
  area,
  broken,
  control,
  direct,
  echo,
  failing,
  huge,
  lines,
  logger,
  slow,
  url,
} from '../testing/echo-service.js';

const lineOf = (correlationId: string) => lines.find((line) => line['correlationId'] === correlationId);

describe('request/reply', () => {
  let serverLink: NatsLink;
  let clientLink: NatsLink;
  let app: INestMicroservice;
  let client: RequestClient;
  /** Positions that requests demanded. */
  const reachedFor: number[] = [];

  beforeAll(async () => {
    [serverLink, clientLink] = await Promise.all([
      connectNats({ url, service: 'agent', logger: silentLogger }),
      connectNats({ url, service: 'gateway', logger: silentLogger }),
    ]);
    const reach = (position: number): Promise<void> => {
      if (position === 13) return Promise.reject(transient('LOG.PROJECTION_BEHIND', 'too far'));
      reachedFor.push(position);
      return Promise.resolve();
    };
    const strategy = new RequestServer({ link: serverLink, logger, reach });
    app = await NestFactory.createMicroservice(EchoModule, { strategy, logger: false });
    await app.listen();
    await serverLink.connection.flush();
    client = createRequestClient(clientLink);
    control.maxPayload = clientLink.connection.info?.max_payload ?? 0;
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

  it('handles a request that demands a position once it is reached, and passes the demand on', async () => {
    const after = (position: number) =>
      runWithContext(contextFrom('gateway', { after: position }), () => client.request(echo, { text: 'a' }));
    expect((await after(7)).context).toMatchObject({ after: 7 });
    expect(reachedFor).toEqual([7]);
    await client.request(echo, { text: 'a' });
    await expect(after(13)).rejects.toMatchObject({ kind: 'transient', code: 'LOG.PROJECTION_BEHIND' });
    expect(reachedFor).toEqual([7]);
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
    control.release();
  });

  it('sends an idempotent request again as soon as a process of the service starts', async () => {
    const patient = { ...slow, timeoutMs: 60_000 };
    const nextCall = () => new Promise<void>((resolve) => (control.started = resolve));
    const [first, asked] = [
      nextCall(),
      requestWithRetry((options) => client.request(patient, {}, { ...options, timeoutMs: 60_000 })),
    ];
    await first;
    // The first call gets no reply until the end, as of a process that died.
    const [endFirst, second] = [control.release, nextCall()];
    clientLink.connection.publish(startSubject(area));
    await second;
    control.release();
    await expect(asked).resolves.toEqual({ done: true });
    endFirst();
  });

  it('announces its start once it serves requests', async () => {
    const starts = clientLink.connection.subscribe(startSubject(area), { max: 1 });
    await clientLink.connection.flush();
    const second = await connectNats({ url, service: 'agent', logger: silentLogger });
    const strategy = new RequestServer({ link: second, logger });
    const app2 = await NestFactory.createMicroservice(EchoModule, { strategy, logger: false });
    await app2.listen();
    let count = 0;
    for await (const _start of starts) count += 1;
    expect(count).toBe(1);
    await app2.close();
    await second.drain();
  });

  it('reports a request or a reply that is larger than a message may be', async () => {
    await expect(client.request(echo, { text: 'x'.repeat(control.maxPayload) })).rejects.toMatchObject({
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
    const begun = new Promise<void>((resolve) => (control.started = resolve));
    const asked = client.request(own, {});
    await begun;
    const closing = draining.close();
    await expect(
      (async () => {
        for (;;) await client.request(echo, { text: 'new' });
      })(),
    ).rejects.toMatchObject({ code: 'MESSAGING.NO_RESPONDERS' });
    control.release();
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
