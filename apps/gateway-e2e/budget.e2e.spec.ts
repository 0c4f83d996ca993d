import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { runCli, readEvents, startQuickStack, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(180_000);

let mock: MockModel;
let stack: TestStack;
let client: SocketClient;

beforeAll(async () => {
  mock = await startMockModel(() => ({ text: ['ok'], usage: { inputTokens: 4_000, outputTokens: 900 } }));
  stack = await startQuickStack(`${twoVendorConfig(mock.url)}\n[budgets]\nsession = 10000\n`);
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

describe('a session limit of 10,000 tokens', () => {
  it('refuses a call whose bound would exceed it, before the provider is called', async () => {
    const send = (content: string) =>
      client.stream('chat.send', { channel: 'test', account: 'budget', peer: 'p', content }).done();
    await send('one');
    await send('two');
    const calls = mock.calls.length;
    expect(calls).toBe(2);
    const refused = await send('three');
    expect(refused.map(({ event }) => event)).toEqual(['accepted', 'error', 'done']);
    expect(refused[1]?.data).toMatchObject({
      code: 'BUDGET.EXCEEDED',
      message: 'token budget exceeded (session: 9800/10000)',
    });
    expect(refused[2]?.data).toMatchObject({ status: 'failed' });
    expect(mock.calls).toHaveLength(calls);
    expect((await readEvents(stack, { type: 'BudgetReserved' })).length).toBe(2);
  });

  it('does not limit other sessions', async () => {
    const frames = await client
      .stream('chat.send', { channel: 'test', account: 'budget', peer: 'q', content: 'hi' })
      .done();
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });

  it('makes the command line exit with code 4, and passes the audit', async () => {
    const args = ['chat', '--channel', 'test', '--account', 'budget', '--peer', 'p', 'four', '--json'];
    const { code, stdout } = await runCli(stack, args);
    expect(code).toBe(4);
    expect(stdout).toContain('token budget exceeded (session: 9800/10000)');
    expect((await runCli(stack, ['audit'])).code).toBe(0);
  });
});
