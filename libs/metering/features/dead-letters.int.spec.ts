import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SERVICES } from '@antiphon/contracts/messaging';
import {
  connectNats,
  createConsumerHost,
  defineConsumer,
  ensureStream,
  natsPermissions,
  openJetStreamManager,
  sendDeadLetter,
  STREAMS,
  type NatsLink,
} from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { startNatsServer, type TestNatsServer } from '@antiphon/testing';
import { z } from 'zod';
import { DeadLetters } from './dead-letters.handler.js';

const PASSWORD = 'test-only';
const DURABLE = 'metering-settle-calls';

let server: TestNatsServer;
let link: NatsLink;
let letters: DeadLetters;
const handled: number[] = [];
let isFixed = false;

const connect = () =>
  connectNats({
    ...{ url: server.url, user: 'metering', password: PASSWORD, service: 'metering' },
    logger: silentLogger,
  });
const send = (subject: string, n: number, consumer = DURABLE) =>
  sendDeadLetter(link, {
    ...{ consumer, id: `EVENTS:${n}:${EVENT_ID}`, subject, data: JSON.stringify({ n }) },
    ...{ error: new Error('no such column'), deliveryCount: 5 },
  });
const EVENT_ID = randomUUID();

beforeAll(async () => {
  const users = SERVICES.map((user) => {
    const { publish, subscribe, allowResponses } = natsPermissions(user);
    return { user, password: PASSWORD, permissions: { publish, subscribe, allow_responses: allowResponses } };
  });
  server = await startNatsServer({ config: `authorization ${JSON.stringify({ users })}` });
  link = await connect();
  await ensureStream(await openJetStreamManager(link.connection), STREAMS.DLQ);
  letters = new DeadLetters(link);
  createConsumerHost({ link, logger: silentLogger }).run(
    defineConsumer<z.ZodObject<{ n: z.ZodNumber }>, (message: { n: number }) => Promise<void>>({
      ...{ durable: DURABLE, subject: 'evt.*.session.>', schema: z.object({ n: z.number() }) },
      handle: (given) => given,
    }),
    ({ n }) => (isFixed ? Promise.resolve(void handled.push(n)) : Promise.reject(new Error('still broken'))),
  );
});
afterAll(async () => {
  await link.drain();
  await server.remove();
});

describe('dead letters, with the rights of the metering service', () => {
  it('are listed for the workspace of their event, with the event and the reason', async () => {
    expect(await letters.list({ workspace: 'default', limit: 10 })).toEqual({ messages: [], hasMore: false });
    await send('evt.default.session.session-1', 1);
    await send('evt.acme.session.session-2', 2);
    await send('evt.default.session.session-3', 3);
    await send('cmd.metering.budget.settle', 4, 'metering-requests');
    const { messages } = await letters.list({ workspace: 'default', limit: 10 });
    expect(messages).toMatchObject([
      { sequence: 1, consumer: DURABLE, eventId: EVENT_ID, code: 'INTERNAL.UNEXPECTED', deliveries: 5 },
      { sequence: 3, subject: 'evt.default.session.session-3' },
      { sequence: 4, consumer: 'metering-requests', eventId: null },
    ]);
    const acme = await letters.list({ workspace: 'acme', limit: 10 });
    expect(acme.messages.map(({ sequence }) => sequence)).toEqual([2]);
    expect(await letters.list({ workspace: 'default', limit: 2 })).toMatchObject({
      ...{ messages: [{ sequence: 1 }, { sequence: 3 }], hasMore: true },
    });
  });

  it('stay after a replay that fails, and are deleted after one that succeeds', async () => {
    const replay = (workspace: string, sequence: number) => letters.replay({ workspace, sequence });
    await expect(replay('default', 1)).rejects.toMatchObject({ kind: 'bug' });
    isFixed = true;
    expect(await replay('default', 1)).toEqual({ replayed: true });
    expect(handled).toEqual([1]);
    await expect(replay('default', 1)).rejects.toMatchObject({ code: 'LOG.DEAD_LETTER_NOT_FOUND' });
    await expect(replay('default', 2)).rejects.toMatchObject({ code: 'LOG.DEAD_LETTER_NOT_FOUND' });
    await expect(replay('default', 4)).rejects.toMatchObject({ code: 'LOG.DEAD_LETTER_OF_REQUEST' });
    const { messages } = await letters.list({ workspace: 'default', limit: 10 });
    expect(messages.map(({ sequence }) => sequence)).toEqual([3, 4]);
  });
});
