import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { SERVICES, type ServiceName } from '@antiphon/contracts/messaging';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { ALL_COMPLETE, assertCommandsHold, checkCommands, createSeededRandom } from '@antiphon/testing/load';
import { isCompactRun, type TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { createSlowModel, dropClients, readAgain } from './dropped-clients.js';
import {
  readEvents,
  runCli,
  startQuickStack,
  twoVendorConfig,
  waitForAccepted,
  waitForValue,
} from './stack-under-test.js';

jest.setTimeout(180_000);

interface Secrets {
  readonly services: Readonly<Record<ServiceName, { readonly nats: string }>>;
}

let script: MockScript;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startQuickStack(twoVendorConfig(mock.url), { gateway: 3 });
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

const send = (peer: string, content: string, agent = 'claude') =>
  client.stream('chat.send', { channel: 'test', account: 'crash', peer, content, agent });

describe('kill -9 of the agent service', () => {
  const entries = () => {
    const { agent, memory, metering } = stack.stackJson().services;
    return [agent[0], memory[0], metering[0]];
  };
  const killAgent = async () => {
    const before = pidOf('agent');
    process.kill(before, 'SIGKILL');
    return waitForValue('the next process', () =>
      Promise.resolve(
        entries().every((entry) => entry?.state === 'ready' && entry.pid !== before) ? entries() : undefined,
      ),
    );
  };

  const itInDefaultForm = isCompactRun() ? () => undefined : it;
  itInDefaultForm('leaves memory and metering running, which share no credential with it', async () => {
    const before = entries();
    expect(new Set(before.map((entry) => entry?.pid)).size).toBe(3);
    const after = await killAgent();
    expect(after.slice(1).map((entry) => entry?.pid)).toEqual(before.slice(1).map((entry) => entry?.pid));
    const secrets = JSON.parse(readFileSync(join(stack.home, 'credentials/secrets.json'), 'utf8')) as Secrets;
    const environments = SERVICES.map((name) => {
      const pid = stack.stackJson().services[name][0]?.pid ?? 0;
      return [name, readFileSync(`/proc/${pid}/environ`, 'utf8')] as const;
    });
    for (const [name, environment] of environments) {
      const holders = SERVICES.filter((other) => environment.includes(secrets.services[other].nats));
      expect([name, holders]).toEqual([name, [name]]);
    }
    const holding = (text: string) =>
      environments.filter(([, environment]) => environment.includes(text)).map(([name]) => name);
    expect(holding('ANTIPHON_HOSTED_SERVICES')).toEqual([]);
    expect(holding('ANTIPHON_ARCHIVER_DATABASE_URL')).toEqual(['memory']);
    expect(holding('ANTIPHON_MASTER_KEY_FILE')).toEqual(['agent']);
  });

  const itInCompactForm = isCompactRun() ? it : () => undefined;
  itInCompactForm('also ends memory and metering, which start again with it', async () => {
    const before = pidOf('agent');
    expect(entries()).toMatchObject([
      { id: 'agent-1', pid: before },
      { id: 'memory-1', pid: before, process: 'agent-1', port: expect.any(Number) },
      { id: 'metering-1', pid: before, process: 'agent-1', port: expect.any(Number) },
    ]);
    const after = await killAgent();
    expect(new Set(after.map((entry) => entry?.pid)).size).toBe(1);
    for (const entry of after)
      expect((await fetch(`http://127.0.0.1:${entry?.port}/healthz`)).status).toBe(200);
  });

  it('between two text frames completes the turn, with both attempts in the ledger', async () => {
    const first = { done: false };
    script = () => {
      if (first.done) return { text: ['whole ', 'answer'] };
      first.done = true;
      // The second piece of text never arrives: the agent that asked is dead by then.
      return {
        reply: { text: ['half ', 'never'] },
        before: (piece) => (piece.includes('never') ? mock.calls[0]?.seen.closed : undefined),
      };
    };
    const stream = send('text', 'tell me');
    const { turnId } = await waitForAccepted(stream);
    await stream.waitFor('the first text', ({ event }) => event === 'text');
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
    const settled = await waitForValue('both settlements', async () => {
      const ids = new Set(attempts.map(({ data }) => data['reservationId']));
      const found = (await readEvents(stack, { type: 'BudgetSettled' })).filter(({ data }) =>
        ids.has(data['reservationId']),
      );
      return found.length === 2 ? found : undefined;
    });
    // The usage of the killed attempt is unknown: it is charged at its bound.
    expect(settled.map(({ data }) => data['estimated']).sort()).toEqual([false, true]);
  });

  it('during a tool call leaves one outcome and one done', async () => {
    script = ({ toolResults }) =>
      toolResults.length > 0
        ? { text: [`it is ${toolResults[0]}`] }
        : { tools: [{ id: 'c', name: 'calculator', input: { expression: '6*7' } }] };
    const sandbox = pidOf('sandbox');
    process.kill(sandbox, 'SIGSTOP');
    const stream = send('tool', 'multiply');
    try {
      const { turnId } = await waitForAccepted(stream);
      await waitForValue('the tool call in the log', async () =>
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

  it('leaves the same frames with all clients, which are cut off and resume at any of three gateways', async () => {
    const random = createSeededRandom(20_261_122);
    script = createSlowModel(random);
    const { sessions, turns } = await dropClients({ stack, random, sessions: 4, drops: 40, killEvery: 20 });
    expect(sessions).toHaveLength(4);
    for (const { dropped, uninterrupted } of sessions) expect(dropped).toBe(uninterrupted);
    const again = await readAgain({ stack, random }, sessions);
    expect(again.map(({ assembled }) => assembled)).toEqual(
      sessions.map(({ uninterrupted }) => uninterrupted),
    );
    const verdict = checkCommands({ turns, runs: [] }, await readEvents(stack), ALL_COMPLETE);
    assertCommandsHold('drops and kills', verdict, ALL_COMPLETE);
  });

  it('leaves a log that passes the audit', async () => {
    const audit = await runCli(stack, ['audit']);
    expect([audit.code, audit.stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
  });
});

describe('two of three gateways', () => {
  let others: SocketClient[];
  beforeAll(async () => {
    others = await Promise.all(
      stack
        .wsUrls()
        .slice(0, 2)
        .map((url) => connectClient(url)),
    );
  });
  afterAll(() => Promise.all(others.map((other) => other.close())));

  it('make one turn of a message that both get with one key, and both show its frames', async () => {
    script = ({ user }) => ({ text: ['you said ', user] });
    const calls = mock.calls.length;
    const address = { channel: 'test', account: 'crash', peer: 'twice', agent: 'claude' };
    const message = { ...address, content: 'once', idempotencyKey: randomUUID() };
    const streams = others.map((other) => other.stream('chat.send', message));
    const [first, second] = await Promise.all(streams.map(waitForAccepted));
    expect(second).toEqual(first);
    const [one = [], two = []] = await Promise.all(streams.map((stream) => stream.done()));
    expect([textOf(one), textOf(two)]).toEqual(['you said once', 'you said once']);
    expect(mock.calls.length - calls).toBe(1);
    const log = await readEvents(stack, { type: 'TurnRequested' });
    expect(log.filter(({ data }) => data['turnId'] === first?.turnId)).toHaveLength(1);
    const other = { ...message, content: 'another' };
    await expect(others[1]?.stream('chat.send', other).done()).rejects.toMatchObject({
      rpc: { code: -32009 },
    });
  });

  // @shows A16
  it('show the events of a filter at /ws/events, also from a cursor of the other', async () => {
    const urls = stack.wsUrls().map((url) => `${url}/events?category=session`);
    const positionsOf = ({ received }: SocketClient): number[] =>
      received.flatMap(({ id, event, data }) =>
        id === 'events' && event === 'log' ? [(data as { position: number }).position] : [],
      );
    const open = async (url: string): Promise<SocketClient> => {
      const reader = await connectClient(url);
      await reader.waitFor('the past', ({ event }) => event === 'live');
      return reader;
    };
    const expected = (await readEvents(stack, { category: 'session' })).map(({ position }) => position);
    expect(expected.length).toBeGreaterThan(4);
    const reader = await open(`${urls[0]}&from=start`);
    expect(positionsOf(reader)).toEqual(expected);
    const frames = reader.received.filter(({ event }) => event === 'log');
    const { cursor } = frames[2] as unknown as { cursor: string };
    const resumed = await open(`${urls[1]}&from=${cursor}`);
    expect(positionsOf(resumed)).toEqual(expected.slice(3));
    const refused = await connectClient(`${urls[1]}&colour=red`);
    expect(await refused.waitFor('a refusal', ({ id }) => id === 'events')).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('colour') },
    });
    await Promise.all([reader, resumed, refused].map((one) => one.close()));
  });
});
