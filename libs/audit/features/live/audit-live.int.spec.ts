import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { AckPolicy, jetstream } from '@nats-io/jetstream';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import { STREAMS, connectNats, ensureStream, openJetStreamManager, startRelay } from '@antiphon/messaging';
import type { NatsLink, Relay } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { openTemporal } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import { startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { AT, admin, agent, append, inAuditWorld, playTurn, reader } from '../audit-world.spec.js';
import { auditLive } from './audit-live.js';

const ADDRESS = process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '';
let server: TestNatsServer;
let link: NatsLink;
let relay: Relay;
let temporal: TemporalLink;
let connection: Connection;
/** Task queue of this spec on the shared server; no worker polls it. */
let taskQueue: string;

beforeAll(async () => {
  connection = await Connection.connect({ address: ADDRESS });
  temporal = openTemporal(ADDRESS);
});
afterAll(async () => {
  await Promise.all([connection.close(), temporal.close()]);
});
// Runs before the world ends its pools: hooks run in the order of their registration.
afterEach(async () => {
  await relay.stop();
  await link.drain();
  await server.remove();
});
inAuditWorld();
beforeEach(async () => {
  taskQueue = `spec-${randomUUID()}`;
  server = await startNatsServer();
  link = await connectNats({ url: server.url, service: 'operator', logger: silentLogger });
  const log = createPostgresEventStore(admin);
  const leases = createLeaseStore(admin);
  relay = startRelay({ link, log, leases, owner: 'spec', logger: silentLogger, pollMs: 20, leaseMs: 1_000 });
});

const head = async (): Promise<number> =>
  Number((await admin.query<{ head: string }>('select max(position) as head from events')).rows[0]?.head);
/** Returns 0 until the relay has created the stream. */
const lastSequence = async (): Promise<number> => {
  const { streams } = await openJetStreamManager(link.connection);
  return streams.info('EVENTS').then(
    ({ state }) => state.last_seq,
    () => 0,
  );
};
const relayed = () => until(async () => (await lastSequence()) === (await head()));

const look = async (strictQuiesced = false) => {
  const reports = await auditLive({
    ...{ pool: reader, nats: link.connection, temporal, taskQueue, strictQuiesced },
    patienceMs: 300,
  });
  const messages = reports.flatMap(({ first, firstOpen }) => (first ?? firstOpen ?? []) as never[]);
  return {
    reports,
    checked: Object.fromEntries(reports.map(({ name, checked }) => [name, checked])),
    broken: reports.filter(({ violations }) => violations > 0).map(({ name }) => name),
    said: (messages as { message: string }[]).map(({ message }) => message),
  };
};

describe('JetStream compared with the log', () => {
  it('is equal after turns and reports the number of messages', async () => {
    await playTurn();
    await playTurn();
    await relayed();
    const { checked, broken, said } = await look(true);
    expect({ broken, said }).toEqual({ broken: [], said: [] });
    expect(checked['relay-equals-the-log']).toBe(await head());
  });

  it('is open while it is behind, and a violation in a strict audit', async () => {
    await playTurn();
    await relayed();
    await relay.stop();
    await playTurn();
    expect(await look()).toMatchObject({
      broken: [],
      said: [expect.stringContaining('not yet in JetStream')],
    });
    expect((await look(true)).broken).toEqual(['relay-equals-the-log']);
  });

  it('is reported for another event at a position', async () => {
    const { stream } = await playTurn();
    await relayed();
    await relay.stop();
    const manager = await openJetStreamManager(link.connection);
    await manager.streams.delete('EVENTS');
    await ensureStream(manager, STREAMS.EVENTS);
    const events = await agent.readLog({ after: 0, limit: 100 });
    for (const { position, eventId } of events)
      await jetstream(link.connection).publish('evt.default.session.Tested', 'x', {
        msgID: position === 2 ? randomUUID() : eventId,
      });
    const { reports, broken } = await look();
    expect(broken).toEqual(['relay-equals-the-log']);
    expect(reports[0]?.first).toMatchObject({ position: 2, streamId: stream, eventId: events[1]?.eventId });
  });

  it('is reported for events that are not in the log, as after a restore', async () => {
    await playTurn();
    await relayed();
    await relay.stop();
    await jetstream(link.connection).publish('evt.default.session.Tested', 'phantom');
    expect(await look()).toMatchObject({
      broken: ['relay-equals-the-log'],
      said: [expect.stringContaining('it has events that are not in the log')],
    });
  });

  it('is open while a consumer has events left', async () => {
    await playTurn();
    await relayed();
    const manager = await openJetStreamManager(link.connection);
    await manager.consumers.add('EVENTS', { durable_name: 'sleeper', ack_policy: AckPolicy.Explicit });
    expect(await look()).toMatchObject({
      broken: [],
      said: [`consumer sleeper has ${await head()} events left`],
    });
  });
});

describe('Temporal compared with the log', () => {
  const startRun = async (): Promise<string> => {
    const runId = randomUUID();
    const data = {
      ...{ runId, workflowId: null, workflowVersion: null, inputs: {}, startedAt: AT },
      definition: { name: 'spec', tasks: [] },
    };
    await append(`run-${runId}`, [{ type: 'RunStarted', schemaVersion: 1, data } as never]);
    return runId;
  };
  const startWorkflow = async (runId: string) => {
    const client = new Client({ connection, namespace: 'antiphon' });
    const handle = await client.workflow.start('unknownWorkflow', { workflowId: `run/${runId}`, taskQueue });
    const query = `TaskQueue = '${taskQueue}'`;
    await until(async () => (await client.workflow.count(query)).count > 0);
    return handle;
  };

  it('waits for an open run', async () => {
    const runId = await startRun();
    const handle = await startWorkflow(runId);
    await relayed();
    const { checked, broken, said } = await look(true);
    expect({ broken, said }).toEqual({ broken: [], said: [] });
    expect(checked['workflows-equal-the-log']).toBe(1);
    await handle.terminate();
  });

  it('is open without the workflow of a run until the reconciler has had time', async () => {
    const runId = await startRun();
    await relayed();
    expect(await look()).toMatchObject({
      broken: [],
      said: [`run/${runId} is open in the log, and Temporal has no workflow for it`],
    });
    expect((await look(true)).broken).toEqual(['workflows-equal-the-log']);
  });

  it('is reported for a workflow whose run has ended', async () => {
    const runId = randomUUID();
    const handle = await startWorkflow(runId);
    expect(await look()).toMatchObject({
      said: [`workflow run/${runId} is open, but its item in the log is not`],
    });
    await handle.terminate();
  });
});
