import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { EngineStatusChange } from '@antiphon/contracts/gateway';
import { StatusView } from '@antiphon/contracts/reference';
import { silentLogger } from '@antiphon/observability';
import { startService, type RunningService } from '@antiphon/service-host';
import {
  createTestDatabase,
  startNatsServer,
  until,
  type TestDatabase,
  type TestNatsServer,
} from '@antiphon/testing';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { startEngineProxy, type EngineProxy } from '@antiphon/testing/network';
import { configureGatewayHttp } from '../access/request-guard.js';
import { GatewayModule } from '../gateway.module.js';

jest.setTimeout(60_000);

let nats: TestNatsServer;
let database: TestDatabase;
let postgres: EngineProxy;
let gateway: RunningService;
let early: SocketClient;

const wsUrl = () => `ws://127.0.0.1:${gateway.port}/ws`;
const isNews = (type: unknown): boolean => String(type).startsWith('gateway.');
const newsOf = ({ received }: SocketClient) =>
  received
    .filter(({ type }) => isNews(type))
    .map((message) => EngineStatusChange.parse(message))
    .map(({ type, engines }) => [type, ...engines]);

beforeAll(async () => {
  [nats, database] = await Promise.all([startNatsServer(), createTestDatabase()]);
  const url = new URL(database.urlFor('gateway'));
  postgres = await startEngineProxy(url.hostname, Number(url.port));
  url.port = String(postgres.port);
  gateway = await startService({
    service: 'gateway',
    module: GatewayModule,
    configure: configureGatewayHttp,
    env: {
      ANTIPHON_SERVICE_DATABASE_URL: url.href,
      ANTIPHON_SERVICE_NATS_URL: nats.url,
      ANTIPHON_SERVICE_HTTP_PORT: '0',
      ANTIPHON_SERVICE_ID: `gateway-${randomUUID()}`,
      ANTIPHON_HOME: tmpdir(),
      HOME: tmpdir(),
    },
    cwd: '/',
    logger: silentLogger,
  });
  early = await connectClient(wsUrl());
});
afterAll(async () => {
  await early?.close();
  await gateway?.stop();
  await postgres?.close();
  await Promise.all([nats?.remove(), database?.drop()]);
});

describe('an engine failure', () => {
  it('of PostgreSQL notifies clients of the outage and the recovery, and status returns cached values as stale', async () => {
    const well = StatusView.parse(await early.call('status'));
    expect(well).toMatchObject({ sessions: 0, stale: [] });
    await postgres.down();
    await until(async () => newsOf(early).length === 1);
    expect(newsOf(early)).toEqual([['gateway.degraded', 'postgresql']]);
    expect(await early.call('status')).toMatchObject({
      status: 'degraded',
      sessions: 0,
      stale: ['sessions'],
    });
    const late = await connectClient(wsUrl());
    await until(async () => newsOf(late).length === 1);
    expect(late.received.map(({ type }) => type)).toEqual(['session.ack', 'gateway.degraded']);
    await postgres.up();
    await until(async () => newsOf(early).length === 2 && newsOf(late).length === 2);
    expect(newsOf(late)[1]).toEqual(['gateway.recovered', 'postgresql']);
    expect(await late.call('status')).toMatchObject({ sessions: 0, stale: [] });
    await late.close();
  });

  it('of NATS notifies clients as well', async () => {
    const before = newsOf(early).length;
    await nats.kill();
    await until(async () => newsOf(early).length === before + 1);
    await nats.start();
    await until(async () => newsOf(early).length === before + 2);
    expect(newsOf(early).slice(before)).toEqual([
      ['gateway.degraded', 'nats'],
      ['gateway.recovered', 'nats'],
    ]);
  });
});
