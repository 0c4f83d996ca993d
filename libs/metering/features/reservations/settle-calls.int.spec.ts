import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jetstream } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import { eventSubject } from '@antiphon/contracts/log';
import { sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import {
  EVENT_HEADERS,
  STREAMS,
  connectNats,
  createConsumerHost,
  ensureStream,
  openJetStreamManager,
} from '@antiphon/messaging';
import type { ConsumerHost, NatsLink } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { callAborted, callCompleted, openMetering } from '../metering-fixtures.spec.js';
import { settleCalls } from './settle-budget.handler.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
let server: TestNatsServer;
let link: NatsLink;
let host: ConsumerHost;

beforeAll(async () => {
  [metering, server] = await Promise.all([openMetering(), startNatsServer()]);
  link = await connectNats({ url: server.url, service: 'metering', logger: silentLogger });
  await ensureStream(await openJetStreamManager(link.connection), STREAMS.EVENTS);
  host = createConsumerHost({ link, logger: silentLogger });
});
afterAll(async () => {
  await host.stop();
  await link.drain();
  await Promise.all([metering.close(), server.remove()]);
});

/** Appends an event and publishes it as the relay does. */
const publish = async (sessionId: string, event: SessionEvent): Promise<void> => {
  await metering.sessionSays(sessionId, event);
  return publishOnly(sessionId, event);
};
const publishOnly = async (sessionId: string, event: SessionEvent): Promise<void> => {
  const eventId = randomUUID();
  const carried = headers();
  carried.set(EVENT_HEADERS.type, event.type);
  const stored = {
    ...event,
    workspace: 'default',
    category: 'session',
    streamId: sessionStream(sessionId),
    eventId,
  };
  const client = jetstream(link.connection);
  await client.publish(eventSubject(stored), JSON.stringify(stored), { msgID: eventId, headers: carried });
};

it('settles each call once by its events or the sweep when its agent died', async () => {
  const { reserve, settleBudget, endReservations } = metering.start();
  host.run(settleCalls, settleBudget);
  const completed = metering.request();
  const lost = metering.request();
  const unsent = metering.request();
  for (const request of [completed, lost, unsent]) await reserve(request);
  await publish(completed.sessionId, callCompleted(completed, 40, 2));
  await publish(completed.sessionId, callCompleted(completed, 40, 2));
  await publish(lost.sessionId, callAborted(lost, true));
  await publish(unsent.sessionId, callAborted(unsent, false));
  // This event is not in the log.
  const forged = metering.request();
  await reserve(forged);
  await publishOnly(forged.sessionId, callCompleted(forged, 0, 0));
  // This call has no reservation.
  await publish(randomUUID(), callCompleted(metering.request(), 1, 1));
  const ended = async ({ reservationId }: { reservationId: string }) =>
    (await metering.budgetEvents(reservationId)).slice(1);
  await until(async () => (await Promise.all([lost, unsent].map(ended))).every((end) => end.length > 0));
  // The commit that completes a call settles it. The sweep finds the others.
  expect(await ended(completed)).toEqual([]);
  await endReservations.sweep();
  const manager = await openJetStreamManager(link.connection);
  await until(async () => {
    const { num_pending, num_ack_pending } = await manager.consumers.info('EVENTS', settleCalls.durable);
    return num_pending + num_ack_pending === 0;
  });
  expect(await ended(forged)).toEqual([]);
  expect(await ended(completed)).toMatchObject([
    { type: 'BudgetSettled', data: { inputTokens: 40, outputTokens: 2 } },
  ]);
  expect(await ended(lost)).toMatchObject([
    { type: 'BudgetSettled', data: { inputTokens: 100, estimated: true } },
  ]);
  expect(await ended(unsent)).toMatchObject([{ type: 'BudgetReleased' }]);
});
