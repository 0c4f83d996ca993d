import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { listDeadLetters } from '@antiphon/contracts/log';
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
const list = (workspace: string, options: object = {}) =>
  letters.list(listDeadLetters.request.parse({ workspace, limit: 10, ...options }));

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
    expect(await list('default')).toEqual({ messages: [], nextAfter: null });
    await send('evt.default.session.session-1', 1);
    await send('evt.acme.session.session-2', 2);
    await send('evt.default.session.session-3', 3);
    await send('cmd.metering.budget.settle', 4, 'metering-requests');
    const { messages } = await list('default', { includesRequests: true });
    expect(messages).toMatchObject([
      { sequence: 1, consumer: DURABLE, eventId: EVENT_ID, code: 'INTERNAL.UNEXPECTED', deliveries: 5 },
      { sequence: 3, subject: 'evt.default.session.session-3' },
      { sequence: 4, consumer: 'metering-requests', eventId: null },
    ]);
    const acme = await list('acme', { includesRequests: true });
    expect(acme.messages.map(({ sequence }) => sequence)).toEqual([2]);
  });

  it('are listed in pages, without those of requests unless they are asked for', async () => {
    const first = await list('default', { limit: 1 });
    expect(first).toMatchObject({ messages: [{ sequence: 1 }], nextAfter: 2 });
    expect(await list('default', { limit: 1, after: 2 })).toMatchObject({
      ...{ messages: [{ sequence: 3 }], nextAfter: null },
    });
    const all = await list('default', { limit: 2, includesRequests: true });
    expect(all).toMatchObject({ messages: [{ sequence: 1 }, { sequence: 3 }], nextAfter: 3 });
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
    const { messages } = await list('default', { includesRequests: true });
    expect(messages.map(({ sequence }) => sequence)).toEqual([3, 4]);
  });

  it('are replayed by two operators at once without an error', async () => {
    const one = { workspace: 'default', sequence: 3 };
    const replays = [letters.replay(one), letters.replay(one)];
    expect(await Promise.all(replays)).toEqual([{ replayed: true }, { replayed: true }]);
    expect((await list('default')).messages).toEqual([]);
  });
});
