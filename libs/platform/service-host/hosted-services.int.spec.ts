import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Controller, Module } from '@nestjs/common';
import { z } from 'zod';
import { defineRequest, healthContract } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { HandleRequest, connectNats, createRequestClient } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase, startNatsServer, until } from '@antiphon/testing';
import type { TestDatabase, TestNatsServer } from '@antiphon/testing';
import { RelayModule } from './relay.module.js';
import { startService } from './start-service.js';
import type { HostedService, RunningService } from './start-service.js';
import { serviceEnv } from './testing/service-env.js';

jest.setTimeout(30_000);

/** One of the agent's requests to metering. */
const readCosts = defineRequest({
  subject: 'cmd.metering.usage.read',
  request: z.strictObject({ workspace: z.string() }),
  reply: z.object({ cost: z.string() }),
  timeoutMs: 2_000,
});

@Controller()
class CostsController {
  @HandleRequest(readCosts)
  read({ workspace }: z.output<typeof readCosts.request>): { cost: string } {
    return { cost: `of ${workspace}` };
  }
}

@Module({ controllers: [CostsController] })
class CostsModule {}

@Module({ imports: [RelayModule.announcing(() => null)] })
class RelayingModule {}

@Module({})
class EmptyModule {}

describe('services in the process of another one', () => {
  let server: TestNatsServer;
  let database: TestDatabase;
  let client: NatsLink;
  let agent: RunningService | undefined;

  const envOf = (service: ServiceName) => serviceEnv(service, database, server.url);
  const start = async (hosts: readonly HostedService[]): Promise<RunningService> => {
    const own = { service: 'agent', module: EmptyModule, env: envOf('agent') } as const;
    agent = await startService({ ...own, cwd: '/', logger: silentLogger, hosts });
    return agent;
  };
  const startBoth = async () => {
    const host = await start([
      { service: 'memory', module: RelayingModule, env: envOf('memory') },
      { service: 'metering', module: CostsModule, env: envOf('metering') },
    ]);
    const [memory, metering] = host.hosted;
    if (!memory || !metering) throw new Error('two services are hosted');
    await until(async () => (await get(memory, '/readyz')).ok);
    return { host, memory, metering, all: [host, memory, metering] };
  };
  const get = ({ port }: RunningService, path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  const healthOf = (service: ServiceName) => createRequestClient(client).request(healthContract(service), {});

  beforeAll(async () => {
    [server, database] = await Promise.all([startNatsServer(), createTestDatabase()]);
    client = await connectNats({ url: server.url, service: 'gateway', logger: silentLogger });
  });
  afterEach(() => agent?.stop());
  afterAll(async () => {
    await client.drain();
    await Promise.all([server.remove(), database.drop()]);
  });

  it('have roles, probes and health of their own', async () => {
    const { all } = await startBoth();
    const roleOf = async ({ platform }: RunningService): Promise<unknown> =>
      (await platform.pool.query('select current_user as role')).rows[0];
    expect(await Promise.all(all.map(roleOf))).toEqual([
      { role: expect.stringContaining('agent') },
      { role: expect.stringContaining('memory') },
      { role: expect.stringContaining('metering') },
    ]);
    expect(new Set(all.map(({ port }) => port)).size).toBe(3);
    for (const service of ['agent', 'memory', 'metering'] as const)
      expect(await healthOf(service)).toMatchObject({ service, healthy: true, pid: process.pid });
  });

  it('answer the requests of their host without NATS, and those that it may not send by NATS', async () => {
    const { host, metering } = await startBoth();
    const { requests } = host.platform;
    const received = () => metering.platform.nats.connection.stats().inMsgs;
    const before = received();
    expect(await requests.request(readCosts, { workspace: 'default' })).toEqual({ cost: 'of default' });
    expect(received()).toBe(before);
    // The credential of the agent has no permission for it: NATS decides.
    await requests.request(healthContract('metering'), {});
    expect(received()).toBeGreaterThan(before);
  });

  it('are part of the metrics of their process', async () => {
    const { host, all } = await startBoth();
    const metrics = await (await get(host, '/metrics')).text();
    // Only memory uses JetStream, and each has connections.
    expect(metrics).toMatch(/^antiphon_dependency_up\{dependency="jetstream"\} 1$/m);
    // A connection may open or close between the metrics and the count.
    const showsOpen = async (): Promise<boolean> => {
      const open = all.reduce((sum, { platform }) => sum + platform.pool.totalCount, 0);
      const shown = await (await get(host, '/metrics')).text();
      return open >= 3 && shown.includes(`antiphon_database_connections{state="open"} ${open}\n`);
    };
    await until(showsOpen);
  });

  it('stop with their host', async () => {
    const { host, all } = await startBoth();
    await host.stop();
    for (const service of all) await expect(get(service, '/healthz')).rejects.toThrow();
    await expect(healthOf('memory')).rejects.toMatchObject({ code: 'MESSAGING.NO_RESPONDERS' });
  });

  it('are stopped if one of them cannot start', async () => {
    const { ANTIPHON_SERVICE_NATS_URL: _, ...broken } = envOf('metering');
    await expect(
      start([
        { service: 'memory', module: RelayingModule, env: envOf('memory') },
        { service: 'metering', module: CostsModule, env: broken },
      ]),
    ).rejects.toMatchObject({ code: 'SERVICE.BAD_ENVIRONMENT' });
    await expect(healthOf('memory')).rejects.toMatchObject({ code: 'MESSAGING.NO_RESPONDERS' });
  });
});
