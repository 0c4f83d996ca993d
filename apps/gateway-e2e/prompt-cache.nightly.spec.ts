import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { AnthropicCache, startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents, runCli, startStackWith, waitForRoot, waitForValue } from './stack-under-test.js';

jest.setTimeout(600_000);

const TURNS = 50;
const OUTPUT_TOKENS = 40;
const TOOLS = [
  'calculator',
  'echo',
  'ls',
  'read',
  'write',
  'edit',
  'search',
  'ask_agent',
  'send_message',
  'spawn_agent',
];

let script: MockScript = () => ({ text: ['fine'] });
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
const cache = new AnthropicCache();
const bill = { microUsd: 0, input: 0, read: 0 };

const config = (url: string): string => `
[gateway]
host = "127.0.0.1"
port = 0

[[providers]]
name = "anthropic"
kind = "anthropic"
base_url = "${url}"
api_key_env = "E2E_PROVIDER_KEY"

[[agents]]
id = "claude"
workspace = "*"
name = "Claude"
provider = "anthropic"
model = "claude-sonnet-4-5"
system_prompt = "You are terse."
tools = ${JSON.stringify(TOOLS)}

[memory]
context_tokens = 32000
episodic_window = 20
`;

/** Counts a request as the vendor does, and adds its cost to the bill, in micro-USD. */
const charge = (body: unknown) => {
  const counted = cache.count(body as Parameters<typeof cache.count>[0]);
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = counted;
  const nano =
    inputTokens * 3_000 + cacheWriteTokens * 3_750 + cacheReadTokens * 300 + OUTPUT_TOKENS * 15_000;
  const isCached = cacheReadTokens + cacheWriteTokens > 0;
  bill.microUsd += isCached ? Math.round(nano / 1_000) : Math.ceil(nano / 1_000);
  bill.input += inputTokens + cacheReadTokens + cacheWriteTokens;
  bill.read += cacheReadTokens;
  return { ...counted, outputTokens: OUTPUT_TOKENS };
};

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startStackWith(config(mock.url), {}, { shareDatabase: true });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

const settledOf = async (): Promise<number> => {
  const events = await readEvents(stack, { category: 'budget' });
  const settled = events.filter(({ type }) => type === 'BudgetSettled');
  expect(events.filter(({ type }) => type === 'BudgetReserved')).toHaveLength(settled.length);
  return settled.reduce((sum, { data }) => sum + Number(data['microUsd']), 0);
};

describe(`${TURNS} turns with ten tool calls each`, () => {
  it('read at least 90 % of their input from the cache, cost what the vendor bills, and are explained', async () => {
    const tools = Array.from({ length: 10 }, (_, n) => ({
      ...{ id: `call_${n}`, name: 'calculator', input: { expression: `${n} + ${n}` } },
    }));
    script = ({ seen, toolResults }) => {
      const usage = charge(seen.body);
      return toolResults.length > 0 ? { text: [`sum: ${toolResults.join(' ')}`], usage } : { tools, usage };
    };
    let sessionId = '';
    for (let turn = 0; turn < TURNS; turn += 1) {
      const params = { channel: 'test', account: 'e2e', peer: 'cache', agent: 'claude' };
      const content = turn === 3 ? 'my name is Ada' : `question ${turn}: what are the sums?`;
      const frames = await client.stream('chat.send', { ...params, content }).done();
      expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
      ({ sessionId } = frames[0]?.data as { sessionId: string });
    }
    expect(mock.calls).toHaveLength(TURNS * 2);
    expect(bill.read / bill.input).toBeGreaterThanOrEqual(0.9);
    const charged = await waitForValue('all charges', async () =>
      (await readEvents(stack, { type: 'BudgetSettled' })).length === TURNS * 2 ? settledOf() : undefined,
    );
    expect(charged).toBe(bill.microUsd);
    const { code, stdout } = await runCli(stack, ['session', 'explain', sessionId, '--json']);
    expect(code).toBe(0);
    const { calls, total } = JSON.parse(stdout) as {
      calls: { causes: string[]; inputTokens: number; cacheReadTokens: number }[];
      total: Record<string, number>;
    };
    expect(total).toMatchObject({ inputTokens: bill.input, cacheReadTokens: bill.read });
    const poor = calls.slice(1).filter((call) => call.cacheReadTokens < call.inputTokens / 2);
    expect(poor.filter(({ causes }) => causes.length === 0)).toEqual([]);
    expect(calls.flatMap(({ causes }) => causes)).toContain('window');
  });

  it('leave a log that the audit accepts', async () => {
    await waitForRoot(stack);
    const { code, stdout } = await runCli(stack, ['audit']);
    expect([code, stdout]).toEqual([0, expect.stringContaining('everything holds')]);
  });
});
