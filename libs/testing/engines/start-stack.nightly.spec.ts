import { existsSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import { isAlive, identify } from '@antiphon/bootstrap/processes';
import type { ProcessIdentity } from '@antiphon/bootstrap/types';
import { SERVICES } from '@antiphon/contracts/messaging';
import { until } from '../waits.js';
import { startStack } from './start-stack.js';
import type { TestStack } from './start-stack.js';

describe('a stack of the real services', () => {
  const started: TestStack[] = [];
  afterAll(() => Promise.all(started.map((stack) => stack.stop())), 60_000);

  const start = async (options: Parameters<typeof startStack>[0]): Promise<TestStack> => {
    const stack = await startStack(options);
    started.push(stack);
    return stack;
  };
  const isReady = async ({ gatewayUrl }: TestStack): Promise<boolean> =>
    (await fetch(`${gatewayUrl}/readyz`).catch(() => null))?.status === 200;

  it.each(SERVICES)(
    'restarts a killed %s and its dependants',
    async (service) => {
      const stack = started[0] ?? (await start({}));
      const before = stack.stackJson().services[service][0]!;
      process.kill(before.pid!, 'SIGKILL');
      await until(() => {
        const now = stack.stackJson().services[service][0]!;
        return now.state === 'ready' && now.pid !== before.pid;
      });
      await until(() => isReady(stack));
    },
    60_000,
  );

  it('shares the engines of the test run, with a NATS and a database of its own', async () => {
    const stack = await start({ shareEngines: true, scale: { gateway: 2 } });
    const { engines, urls } = stack.stackJson();
    expect(engines.postgres).toMatchObject({ external: true, pid: null });
    expect(engines.temporal).toMatchObject({ external: true, pid: null });
    expect(engines.nats.external).toBe(false);
    expect(stack.databaseUrl).toMatch(/antiphon_test_/);
    expect(urls.gateways).toHaveLength(2);
    expect(await isReady(stack)).toBe(true);
  }, 60_000);

  it('leaves no process and no folder after stop', async () => {
    const stack = started.pop()!;
    const { services, engines, supervisor } = stack.stackJson();
    const pids = [supervisor, ...Object.values(services).flat(), engines.nats].map(({ pid }) => pid ?? 0);
    const identities = pids.flatMap((pid): ProcessIdentity[] => {
      const identity = identify(pid);
      return identity ? [identity] : [];
    });
    expect(identities).toHaveLength(8);
    await stack.stop();
    expect(identities.filter(isAlive)).toEqual([]);
    expect(existsSync(stack.home)).toBe(false);
  }, 60_000);
});
