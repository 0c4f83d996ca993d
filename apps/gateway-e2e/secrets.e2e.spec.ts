import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { connectClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { startStack } from '@antiphon/testing/stack';
import { CANARY_KEY, twoVendorConfig } from './stack-under-test.js';

/** Secrets of a developer's shell. Only the provider's key is one that Antiphon uses. */
const SHELL = {
  AWS_SECRET_ACCESS_KEY: 'canary-aws-4f1c0d7e',
  GITHUB_TOKEN: 'ghp_canary4f1c0d7e4f1c0d7e4f1c0d7e4f1c',
  SLACK_BOT_TOKEN: 'xoxb-123456789012-canary4f1c0d7e',
  PGPASSWORD: 'canary-pg-4f1c0d7e',
  DATABASE_URL: 'postgresql://me:canary-url-4f1c0d7e@db/x',
};

let mock: MockModel;
let stack: TestStack;

beforeAll(async () => {
  mock = await startMockModel(({ user }) => ({ text: ['You said: ', user] }));
  stack = await startStack({
    config: twoVendorConfig(mock.url),
    env: { ...SHELL, E2E_PROVIDER_KEY: CANARY_KEY },
  });
});
afterAll(async () => {
  await stack?.stop();
  await mock?.close();
});

const readProc = (pid: number | string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return ''; // it has just ended
  }
};

/** Returns the processes of the stack by a name; children of services are named after them. */
const processes = (): Map<number, string> => {
  const { services, engines } = stack.stackJson();
  const named = new Map<number, string>();
  for (const entries of Object.values(services)) for (const { id, pid } of entries) named.set(pid ?? 0, id);
  for (const [name, { pid }] of Object.entries(engines)) named.set(pid ?? 0, name);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const stat = readProc(pid, 'stat');
    const parent = named.get(Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    if (parent !== undefined) named.set(Number(pid), `${parent}/${pid}`);
  }
  return named;
};

(process.platform === 'linux' ? describe : describe.skip)('secrets of the shell that starts a stack', () => {
  it('are in no environment but that of the agent, which has the key of its provider only', () => {
    const found = [...processes()].map(([pid, name]) => {
      const environment = readProc(pid, 'environ').split('\0');
      const leaked = Object.entries({ ...SHELL, E2E_PROVIDER_KEY: CANARY_KEY }).filter(([key, value]) =>
        environment.some((variable) => variable.startsWith(`${key}=`) || variable.includes(value)),
      );
      return [name, leaked.map(([key]) => key)] as const;
    });
    expect(found.length).toBeGreaterThanOrEqual(8);
    expect(found.filter(([, leaked]) => leaked.length > 0)).toEqual([['agent-1', ['E2E_PROVIDER_KEY']]]);
  });

  it('are in no log after a turn', async () => {
    const client = await connectClient(stack.wsUrl);
    const params = { channel: 'test', account: 'e2e', peer: 'p', agent: 'claude', content: 'hello' };
    await client.stream('chat.send', params).done();
    await client.close();
    const folder = stack.stackJson().logs;
    const logs = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    expect(logs.join('').length).toBeGreaterThan(1_000);
    for (const value of [...Object.values(SHELL), CANARY_KEY]) expect(logs.join('')).not.toContain(value);
  });
});
