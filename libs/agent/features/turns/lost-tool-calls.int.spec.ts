import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld, newAddress, submitTo, testConfig, until } from '../testing/agent-world.js';
import type { AgentWorld, TestProcess } from '../testing/agent-world.js';
import { asksFor, says } from '../testing/test-model.js';

jest.setTimeout(60_000);

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterAll(() => world?.close());

const config = testConfig({ tools: ['echo', 'ls'] });
const QUIET = { leaseMs: 60_000, sweepMs: 50 };

describe('a tool call that ends each process that makes it', () => {
  it.each([
    ['a native one', 'ls', {}],
    ['one in the sandbox', 'echo', { text: 'x' }],
  ])('%s fails after three processes, and its turn completes', async (_, name, input) => {
    let dying: TestProcess | null = null;
    let deadly = '';
    let deaths = 0;
    const accepted = Promise.withResolvers<void>();
    world.model.reply = async ({ messages }) => {
      await accepted.promise;
      return messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name, input });
    };
    const failpoint = async (point: string, sessionId: string): Promise<void> => {
      if (point !== 'agent.tool.requested' || sessionId !== deadly) return;
      deaths += 1;
      dying?.kill();
      await new Promise(() => undefined);
    };
    const start = () => world.process({ config, times: QUIET, failpoint });
    dying = start();
    const { sessionId } = await submitTo(dying, { address: newAddress() });
    deadly = sessionId;
    accepted.resolve();
    const hasFailed = async () => (await world.types(sessionId)).includes('ToolCallFailed');
    for (let processes = 1; processes <= 3; processes++) {
      await until(async () => deaths === processes || (await hasFailed()));
      await world.handleExit(dying);
      dying = start();
    }
    const events = await world.ended(sessionId);
    expect(events.map(({ type }) => type)).toEqual([
      ...['SessionStarted', 'TurnRequested', 'ModelCallStarted', 'ModelCallCompleted'],
      ...['ToolCallRequested', 'ToolCallRestarted', 'ToolCallRestarted', 'ToolCallFailed'],
      ...['ModelCallStarted', 'ModelCallCompleted', 'TurnCompleted'],
    ]);
    expect(deaths).toBe(3);
    expect(events.find(({ type }) => type === 'ToolCallFailed')?.data).toMatchObject({
      code: 'TOOL.DRIVER_LOST',
    });
    // The agent takes the next turn at once.
    world.model.reply = async () => says('well');
    const next = await submitTo(dying, { address: newAddress() });
    expect((await world.ended(next.sessionId)).at(-1)).toMatchObject({ type: 'TurnCompleted' });
    await world.stopAll();
  });
});
