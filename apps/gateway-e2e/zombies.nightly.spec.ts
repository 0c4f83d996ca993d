import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { checkCommands, startLoad } from '@antiphon/testing/load';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import pg from 'pg';
import { CANARY_KEY, antiphon, eventually, readEvents, twoVendors } from './stack-under-test.js';

jest.setTimeout(300_000);

/** How long a process is stopped: four lives of a lease. */
const STOPPED_MS = 20_000;
/** What a woken process would do wrong it does at once; it gets this long. */
const AWAKE_MS = 3_000;

let script: MockScript;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
let database: pg.Client;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startStack({
    config: twoVendors(mock.url),
    env: { E2E_PROVIDER_KEY: CANARY_KEY },
    scale: { agent: 2, gateway: 2 },
  });
  client = await connectClient(stack.wsUrl);
  database = new pg.Client({ connectionString: stack.databaseUrl });
  await database.connect();
});
afterAll(async () => {
  await client?.close();
  await database?.end();
  await stack?.stop();
  await mock?.close();
});

const report = (figures: string): void => void process.stdout.write(`${figures}\n`);

const say = (peer: string, content: string) =>
  client.stream('chat.send', { channel: 'test', account: 'zombie', peer, content, agent: 'claude' });

const driverOf = async (sessionId: string): Promise<number> => {
  const { rows } = await database.query<{ owner: string }>('select owner from leases where name = $1', [
    `session/${sessionId}`,
  ]);
  const owner = rows[0]?.owner ?? '';
  const driver = stack.stackJson().services.agent.find(({ id }) => owner.startsWith(`${id}-`));
  if (!driver?.pid) throw new Error(`nobody drives ${sessionId}`);
  return driver.pid;
};

const facts = async (sessionId: string) => {
  const all = await readEvents(stack);
  return {
    session: all.filter(({ streamId }) => streamId === `session-${sessionId}`),
    money: all.filter(({ type, data }) => type === 'BudgetReserved' && data['sessionId'] === sessionId),
  };
};

const acceptedOf = async (stream: ReturnType<typeof say>) =>
  (await stream.until('accepted', ({ event }) => event === 'accepted')).data as {
    turnId: string;
    sessionId: string;
  };

/** Stops a process for the time that is left of 20 s, and lets it live for a while. */
const wake = async (pid: number, stoppedAt: number): Promise<void> => {
  await sleep(Math.max(0, STOPPED_MS - (performance.now() - stoppedAt)));
  process.kill(pid, 'SIGCONT');
  await sleep(AWAKE_MS);
};

describe('an agent that is stopped for 20 s, and goes on', () => {
  it('in the middle of an answer: another answers, and what the woken one has reaches nobody', async () => {
    const rest = Promise.withResolvers<void>();
    const calls = { count: 0 };
    script = () =>
      ++calls.count > 1
        ? { text: ['whole ', 'answer'] }
        : {
            reply: { text: ['half ', 'late ', 'answer'] },
            before: (piece) => (piece.includes('late') ? rest.promise : undefined),
          };
    const stream = say('text', 'tell me');
    const { sessionId } = await acceptedOf(stream);
    await stream.until('the first text', ({ event }) => event === 'text');
    const pid = await driverOf(sessionId);
    process.kill(pid, 'SIGSTOP');
    const stoppedAt = performance.now();
    const frames = await stream.done();
    report(`taken over and answered after ${Math.round(performance.now() - stoppedAt)} ms`);
    expect(textOf(frames)).toBe('whole answer');
    const before = await facts(sessionId);
    // All of its answer lies in the sleeper's socket when it wakes.
    rest.resolve();
    const resumed = client.stream('session.resume', { sessionId, after: 0 });
    await resumed.until('done', ({ event }) => event === 'done');
    const watched = resumed.frames.length;
    await wake(pid, stoppedAt);

    expect(await facts(sessionId)).toEqual(before);
    expect(before.session.map(({ type }) => type)).toEqual([
      'SessionStarted',
      'TurnRequested',
      'ModelCallStarted',
      'ModelCallAborted',
      'ModelCallStarted',
      'ModelCallCompleted',
      'TurnCompleted',
    ]);
    expect(before.money).toHaveLength(2);
    expect(calls.count).toBe(2);
    expect(frames.map(({ data }) => data)).not.toContain('late ');
    expect(resumed.frames).toHaveLength(watched);
    expect(stream.frames).toEqual(frames);
  });

  it('in the middle of a tool call: one outcome, one end', async () => {
    const calls = { count: 0 };
    script = ({ toolResults }) => {
      calls.count += 1;
      return toolResults.length > 0
        ? { text: [`it is ${toolResults[0]}`] }
        : { tools: [{ id: 'c', name: 'calculator', input: { expression: '6*7' } }] };
    };
    const sandbox = stack.stackJson().services.sandbox[0]?.pid as number;
    process.kill(sandbox, 'SIGSTOP');
    const stream = say('tool', 'multiply');
    const { sessionId, turnId } = await acceptedOf(stream);
    await eventually('the tool call in the log', async () =>
      (await readEvents(stack, { type: 'ToolCallRequested' })).find(({ data }) => data['turnId'] === turnId),
    );
    const pid = await driverOf(sessionId);
    process.kill(pid, 'SIGSTOP');
    const stoppedAt = performance.now();
    // Its answer waits for it in the socket.
    process.kill(sandbox, 'SIGCONT');
    expect(textOf(await stream.done())).toBe('it is 42');
    const before = await facts(sessionId);
    await wake(pid, stoppedAt);

    expect(await facts(sessionId)).toEqual(before);
    expect(before.session.map(({ type }) => type).filter((type) => type.startsWith('ToolCall'))).toEqual([
      'ToolCallRequested',
      'ToolCallCompleted',
    ]);
    expect(calls.count).toBe(2);
  });

  it('under load, one agent after the other: every accepted message is one turn with one end', async () => {
    script = async ({ user }) => {
      await sleep(100);
      return { text: ['You said: ', user] };
    };
    const wsUrls = stack.stackJson().urls.gateways.map((url) => `${url.replace(/^http/, 'ws')}/ws`);
    const load = startLoad({ wsUrls, sessions: 24, agent: 'claude', answerMs: 15_000 });
    for (const { pid } of stack.stackJson().services.agent) {
      await sleep(2_000);
      process.kill(pid as number, 'SIGSTOP');
      await wake(pid as number, performance.now());
    }
    await load.stop();
    report(`${load.done.length} messages, ${load.refused.length} times asked again`);
    const verdict = checkCommands({ turns: load.done, runs: [] }, await readEvents(stack));
    expect(verdict).toMatchObject({ lost: 0, repeated: 0, misread: 0, first: null });
    expect(load.accepted).toHaveLength(load.done.length);
    expect(load.done.length).toBeGreaterThan(100);
  });

  it('leaves a log that the audit accepts', async () => {
    const audit = await antiphon(stack, ['audit']);
    expect([audit.code, audit.stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
  });
});
