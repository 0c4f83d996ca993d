import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ERROR_KINDS, type AppError } from '@antiphon/kernel';
import { contextFrom, runWithContext, silentLogger } from '@antiphon/observability';
import { connectNats } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { LocalRequests } from './local-requests.js';
import { createRequestClient } from './request-client.js';
import type { RequestClient } from './request-client.js';
import { RequestServer } from './request-server.js';

import {
  EchoModule,
  broken,
  control,
  echo,
  failing,
  huge,
  logger,
  slow,
  url,
} from '../testing/echo-service.js';

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
    control.maxPayload = sender.connection.info?.max_payload ?? 0;
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
      client.request(echo, { text: 'x'.repeat(control.maxPayload) }),
    );
    expect(actual).toMatchObject({ kind: 'invalid', code: 'MESSAGING.TOO_LARGE' });
    expect(expected).toMatchObject({ kind: 'invalid', code: 'MESSAGING.TOO_LARGE' });
  });

  it('goes to NATS if the sender may not send it, and after the service has closed', async () => {
    const before = found.length;
    await expect(local.request(slow, {})).rejects.toMatchObject({ code: 'MESSAGING.TIMEOUT' });
    control.release();
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
    const begun = new Promise<void>((resolve) => (control.started = resolve));
    const asked = client.request({ ...slow, timeoutMs: 5_000 }, {});
    await begun;
    const closing = slowApp.close();
    control.release();
    await expect(asked).resolves.toEqual({ done: true });
    await closing;
  });
});
