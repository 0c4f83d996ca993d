import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { EngineStatusChange } from '@antiphon/contracts/gateway';
import { StatusView } from '@antiphon/contracts/reference';
import type { RunningService } from '@antiphon/service-host';
import { until } from '@antiphon/testing';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { startEngineProxy, type EngineProxy } from '@antiphon/testing/network';
import { createGatewayWorld, type GatewayWorld } from '../testing/gateway-world.js';

jest.setTimeout(60_000);

let world: GatewayWorld;
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
  world = await createGatewayWorld();
  const url = new URL(world.database.urlFor('gateway'));
  postgres = await startEngineProxy(url.hostname, Number(url.port));
  url.port = String(postgres.port);
  gateway = await world.start({ ANTIPHON_SERVICE_DATABASE_URL: url.href });
  early = await connectClient(wsUrl());
});
afterAll(async () => {
  await early?.close();
  await world?.close();
  await postgres?.close();
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
    await world.nats.kill();
    await until(async () => newsOf(early).length === before + 1);
    await world.nats.start();
    await until(async () => newsOf(early).length === before + 2);
    expect(newsOf(early).slice(before)).toEqual([
      ['gateway.degraded', 'nats'],
      ['gateway.recovered', 'nats'],
    ]);
  });
});
