import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type FrameStream, type SocketClient } from '@antiphon/testing/client';
import { auditUntilQuiet } from '@antiphon/testing/faults';
import { ALL_COMPLETE, assertCommandsHold, checkCommands, report, startLoad } from '@antiphon/testing/load';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import pg from 'pg';
import {
  CANARY_KEY,
  readEvents,
  twoVendorConfig,
  waitForAccepted,
  waitForValue,
} from './stack-under-test.js';

jest.setTimeout(300_000);

/** Time that a process is stopped: four times the life of a lease. */
const STOPPED_MS = 20_000;
/** Time that a woken process gets to write what it should not. */
const AWAKE_MS = 3_000;

let script: MockScript;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
let database: pg.Client;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startStack({
    watchesHealth: false,
    config: twoVendorConfig(mock.url),
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

const send = (peer: string, content: string): FrameStream =>
  client.stream('chat.send', { channel: 'test', account: 'zombie', peer, content, agent: 'claude' });

const driverPid = async (sessionId: string): Promise<number> => {
  const { rows } = await database.query<{ owner: string }>('select owner from leases where name = $1', [
    `session/${sessionId}`,
  ]);
  const owner = rows[0]?.owner ?? '';
  const driver = stack.stackJson().services.agent.find(({ id }) => owner.startsWith(`${id}-`));
  if (!driver?.pid) throw new Error(`no agent drives ${sessionId}`);
  return driver.pid;
};

const readSession = async (sessionId: string) => {
  const all = await readEvents(stack);
  return {
    session: all.filter(({ streamId }) => streamId === `session-${sessionId}`),
    reservations: all.filter(
      ({ type, data }) => type === 'BudgetReserved' && data['sessionId'] === sessionId,
    ),
  };
};

/** Continues a stopped process 20 s after it was stopped, and lets it run for a while. */
const wake = async (pid: number, stoppedAt: number): Promise<void> => {
  await letTimePass(Math.max(0, STOPPED_MS - (performance.now() - stoppedAt)));
  process.kill(pid, 'SIGCONT');
  await letTimePass(AWAKE_MS);
};

describe('an agent that is stopped for 20 s and continues', () => {
  it('writes and sends nothing when another agent has answered its turn', async () => {
    const rest = Promise.withResolvers<void>();
    const calls = { count: 0 };
    script = () =>
      ++calls.count > 1
        ? { text: ['whole ', 'answer'] }
        : {
            reply: { text: ['half ', 'late ', 'answer'] },
            before: (piece) => (piece.includes('late') ? rest.promise : undefined),
          };
    const stream = send('text', 'tell me');
    const { sessionId } = await waitForAccepted(stream);
    await stream.waitFor('the first text', ({ event }) => event === 'text');
    const pid = await driverPid(sessionId);
    process.kill(pid, 'SIGSTOP');
    const stoppedAt = performance.now();
    const frames = await stream.done();
    report(`another agent took over and answered after ${Math.round(performance.now() - stoppedAt)} ms`);
    expect(textOf(frames)).toBe('whole answer');
    const before = await readSession(sessionId);
    // The rest of the answer waits in the stopped agent's socket until it wakes.
    rest.resolve();
    const resumed = client.stream('session.resume', { sessionId, after: 0 });
    await resumed.waitFor('done', ({ event }) => event === 'done');
    const watched = resumed.frames.length;
    await wake(pid, stoppedAt);

    expect(await readSession(sessionId)).toEqual(before);
    expect(before.session.map(({ type }) => type)).toEqual([
      'SessionStarted',
      'TurnRequested',
      'ModelCallStarted',
      'ModelCallAborted',
      'ModelCallStarted',
      'ModelCallCompleted',
      'TurnCompleted',
    ]);
    expect(before.reservations).toHaveLength(2);
    expect(calls.count).toBe(2);
    expect(frames.map(({ data }) => data)).not.toContain('late ');
    expect(resumed.frames).toHaveLength(watched);
    expect(stream.frames).toEqual(frames);
  });

  it('adds no second outcome to a tool call, and no second end to its turn', async () => {
    const calls = { count: 0 };
    script = ({ toolResults }) => {
      calls.count += 1;
      return toolResults.length > 0
        ? { text: [`it is ${toolResults[0]}`] }
        : { tools: [{ id: 'c', name: 'calculator', input: { expression: '6*7' } }] };
    };
    const sandbox = stack.stackJson().services.sandbox[0]?.pid as number;
    process.kill(sandbox, 'SIGSTOP');
    const stream = send('tool', 'multiply');
    const { sessionId, turnId } = await waitForAccepted(stream);
    await waitForValue('the tool call in the log', async () =>
      (await readEvents(stack, { type: 'ToolCallRequested' })).find(({ data }) => data['turnId'] === turnId),
    );
    const pid = await driverPid(sessionId);
    process.kill(pid, 'SIGSTOP');
    const stoppedAt = performance.now();
    // The outcome of the call waits in the stopped agent's socket.
    process.kill(sandbox, 'SIGCONT');
    expect(textOf(await stream.done())).toBe('it is 42');
    const before = await readSession(sessionId);
    await wake(pid, stoppedAt);

    expect(await readSession(sessionId)).toEqual(before);
    expect(before.session.map(({ type }) => type).filter((type) => type.startsWith('ToolCall'))).toEqual([
      'ToolCallRequested',
      'ToolCallCompleted',
    ]);
    expect(calls.count).toBe(2);
  });

  it('completes every accepted message once under load, one agent after the other', async () => {
    script = async ({ user }) => {
      await letTimePass(100);
      return { text: ['You said: ', user] };
    };
    const load = startLoad({ wsUrls: stack.wsUrls(), sessions: 24, agent: 'claude', answerMs: 15_000 });
    for (const { pid } of stack.stackJson().services.agent) {
      await letTimePass(2_000);
      process.kill(pid as number, 'SIGSTOP');
      await wake(pid as number, performance.now());
    }
    await load.stop();
    report(`${load.done.length} messages, ${load.refused.length} retries`);
    const verdict = checkCommands({ turns: load.done, runs: [] }, await readEvents(stack), ALL_COMPLETE);
    // A stopped driver loses its lease: the turn is retried by another one, and completes.
    assertCommandsHold('agents stopped for 20 s', verdict, ALL_COMPLETE);
    expect(load.accepted).toHaveLength(load.done.length);
    expect(load.done.length).toBeGreaterThan(100);
  });

  it('leaves a log that passes the audit', async () =>
    expect((await auditUntilQuiet(stack)).output).toContain('everything holds'));
});
