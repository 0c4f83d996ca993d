import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { seeded } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { dropClients, readAgain, wordyModel } from './dropped-clients.js';
import { antiphon, eventually, readEvents, startWith, twoVendors } from './stack-under-test.js';

jest.setTimeout(180_000);

let script: MockScript;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startWith(twoVendors(mock.url), { gateway: 3 });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

const pidOf = (service: 'agent' | 'sandbox'): number => {
  const pid = stack.stackJson().services[service]?.[0]?.pid;
  if (pid === undefined || pid === null) throw new Error(`no pid of ${service}`);
  return pid;
};

const say = (peer: string, content: string, agent = 'claude') =>
  client.stream('chat.send', { channel: 'test', account: 'crash', peer, content, agent });

describe('kill -9 of the agent service', () => {
  it('between two text frames: the turn completes by itself, and both attempts are in the ledger', async () => {
    const first = { done: false };
    script = () => {
      if (first.done) return { text: ['whole ', 'answer'] };
      first.done = true;
      // The second piece of text never comes: whoever asked is dead by then.
      return {
        reply: { text: ['half ', 'never'] },
        before: (piece) => (piece.includes('never') ? mock.calls[0]?.seen.closed : undefined),
      };
    };
    const stream = say('text', 'tell me');
    const { turnId } = (await stream.until('accepted', ({ event }) => event === 'accepted')).data as {
      turnId: string;
    };
    await stream.until('the first text', ({ event }) => event === 'text');
    process.kill(pidOf('agent'), 'SIGKILL');
    const frames = await stream.done();
    expect(frames.map(({ event }) => event)).toEqual([
      'accepted',
      'text',
      'restart',
      'text',
      'text',
      'usage',
      'done',
    ]);
    expect(textOf(frames)).toBe('whole answer');

    const attempts = (await readEvents(stack, { type: 'BudgetReserved' })).filter(
      ({ data }) => data['turnId'] === turnId,
    );
    expect(attempts.map(({ data }) => data['attempt'])).toEqual([1, 2]);
    const settled = await eventually('both settlements', async () => {
      const ids = new Set(attempts.map(({ data }) => data['reservationId']));
      const found = (await readEvents(stack, { type: 'BudgetSettled' })).filter(({ data }) =>
        ids.has(data['reservationId']),
      );
      return found.length === 2 ? found : undefined;
    });
    // Nobody knows what the killed attempt used: it is charged at its bound.
    expect(settled.map(({ data }) => data['estimated']).sort()).toEqual([false, true]);
  });

  it('during a tool call: one outcome, one done', async () => {
    script = ({ toolResults }) =>
      toolResults.length > 0
        ? { text: [`it is ${toolResults[0]}`] }
        : { tools: [{ id: 'c', name: 'calculator', input: { expression: '6*7' } }] };
    const sandbox = pidOf('sandbox');
    process.kill(sandbox, 'SIGSTOP');
    const stream = say('tool', 'multiply');
    try {
      const { turnId } = (await stream.until('accepted', ({ event }) => event === 'accepted')).data as {
        turnId: string;
      };
      await eventually('the tool call in the log', async () =>
        (await readEvents(stack, { type: 'ToolCallRequested' })).find(
          ({ data }) => data['turnId'] === turnId,
        ),
      );
      process.kill(pidOf('agent'), 'SIGKILL');
    } finally {
      process.kill(sandbox, 'SIGCONT');
    }
    const frames = await stream.done();
    expect(textOf(frames)).toBe('it is 42');
    expect(frames.filter(({ event }) => event === 'done')).toHaveLength(1);
    expect(frames.filter(({ event }) => event === 'tool_result')).toHaveLength(1);
    const { id } = frames.find(({ event }) => event === 'tool_use')?.data as { id: string };
    const outcomes = (await readEvents(stack)).filter(
      ({ type, data }) => data['callId'] === id && /^ToolCall(Completed|Failed|Unknown)$/.test(type),
    );
    expect(outcomes.map(({ type }) => type)).toEqual(['ToolCallCompleted']);
  });

  it('while clients are cut off at random and go on at any of three gateways: all read the same', async () => {
    const chance = seeded(20_261_122);
    script = wordyModel(chance);
    const seen = await dropClients({ stack, chance, sessions: 4, drops: 40, killEvery: 20 });
    expect(seen).toHaveLength(4);
    for (const { dropped, uninterrupted } of seen) expect(dropped).toBe(uninterrupted);
    const again = await readAgain({ stack, chance }, seen);
    expect(again.map(({ assembled }) => assembled)).toEqual(seen.map(({ uninterrupted }) => uninterrupted));
  });

  it('leaves a log that the audit accepts', async () => {
    const audit = await antiphon(stack, ['audit']);
    expect([audit.code, audit.stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
  });
});
