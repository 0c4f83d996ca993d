import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { tmpdir } from 'node:os';
import { readBudgets, reserveBudget, settleBudget, unfreezeBudget } from '@antiphon/contracts/metering';
import { connectNats, createRequestClient } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { startService } from '@antiphon/service-host';
import type { RunningService } from '@antiphon/service-host';
import { startNatsServer } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { callCompleted, openMetering } from './metering-fixtures.spec.js';
import { MeteringModule } from './metering.module.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
let server: TestNatsServer;
let running: RunningService;
let link: NatsLink;
let client: RequestClient;

beforeAll(async () => {
  [metering, server] = await Promise.all([openMetering(), startNatsServer()]);
  const env = {
    ANTIPHON_SERVICE_DATABASE_URL: metering.urlFor('metering'),
    ANTIPHON_SERVICE_NATS_URL: server.url,
    ANTIPHON_HOME: tmpdir(),
    HOME: tmpdir(),
  };
  running = await startService({
    service: 'metering',
    module: MeteringModule,
    env,
    cwd: tmpdir(),
    logger: silentLogger,
  });
  link = await connectNats({ url: server.url, service: 'agent', logger: silentLogger });
  client = createRequestClient(link);
});
afterAll(async () => {
  await link.drain();
  await running.stop();
  await Promise.all([metering.close(), server.remove()]);
});

it('serves reserve, settle, read and unfreeze requests', async () => {
  const request = metering.request({ expiresAt: new Date(Date.now() + 60_000).toISOString() });
  const { reservationId, sessionId } = request;
  await expect(client.request(reserveBudget, request)).resolves.toMatchObject({
    granted: true,
    maxOutputTokens: 400,
  });
  const outcome = { kind: 'used', inputTokens: 30, outputTokens: 3, estimated: false } as const;
  const settlement = { workspace: 'default', reservationId, outcome };
  await metering.sessionSays(sessionId, callCompleted(request, 30, 3));
  await expect(client.request(settleBudget, settlement)).resolves.toEqual({ status: 'settled' });
  const { scopes } = await client.request(readBudgets, { workspace: 'default', sessionId });
  expect(
    scopes.map(({ kind, settledTokens, reservedTokens }) => [kind, settledTokens, reservedTokens]),
  ).toEqual([
    ['session', 33, 0],
    ['day', 33, 0],
    ['month', 33, 0],
  ]);
  const look = { workspace: 'default', scopeKey: `session/${sessionId}`, by: 'spec', reason: 'seen' };
  await expect(client.request(unfreezeBudget, look)).resolves.toEqual({ unfrozen: false });
});
