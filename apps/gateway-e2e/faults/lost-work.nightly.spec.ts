import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { startStack } from '@antiphon/testing/stack';
import { CANARY_KEY, runCli, waitForValue } from '../stack-under-test.js';
import { chat, lostWorkConfig, send, turnsWhile, waitForEvent } from './lost-work.js';

jest.setTimeout(240_000);

/** Each process that reaches such a point with such work is killed, every time. */
const DEADLY = [
  'work.tool.begun:*:kill9:deadly ls',
  'work.plan.begun:*:kill9:deadly.plan.md',
  'work.task.begun:*:kill9:deadly',
  'work.events.applied:*:kill9:agent-agents/AgentPaused',
  'work.relay.begun:*:kill9:WorkflowSaved',
  'work.node.begun:*:kill9:deadly-node',
  'work.folder.begun:*:kill9:deadly.txt',
  'work.retry.begun:*:kill9:echo',
  // Defers the call that is retried.
  'sandbox.call.taken:*:kill9:echo',
].join(',');
/** In a stack of its own: other work that ends processes aborts calls, and each is such a message. */
const DEADLY_MESSAGE = 'work.message.begun:*:kill9:metering-settle-calls';

let mock: MockModel;
let stack: TestStack;
let workflow: Promise<string> | undefined;

beforeAll(async () => {
  mock = await startMockModel(({ user, toolResults }) => {
    if (user === 'fail') return { status: 400, body: { error: { message: 'refused' } } };
    if (user === 'echo' && toolResults.length === 0)
      return { tools: [{ id: 'c', name: 'echo', input: { text: 'x' } }] };
    if (user === 'list' && toolResults.length === 0) return { tools: [{ id: 'c', name: 'ls', input: {} }] };
    return { text: ['done'] };
  });
});
afterAll(async () => {
  await mock?.close();
});

const startDeadly = async (deadly: string): Promise<void> => {
  const env = { E2E_PROVIDER_KEY: CANARY_KEY, FAILPOINTS: deadly };
  stack = await startStack({ config: lostWorkConfig(mock.url), env, shareDatabase: true });
};
const stopStack = async (): Promise<void> => {
  await stack?.stop();
};

const post = (path: string, body: unknown) => send(stack, 'POST', path, body);

/** Saves the workflow whose event and node are deadly, once. Returns its id. */
const savedWorkflow = (): Promise<string> =>
  (workflow ??= (async () => {
    const definition = { name: 'lost', nodes: [{ id: 'deadly-node', agent: 'quiet', prompt: 'hello' }] };
    const saved = await post('/workflows', definition);
    expect(saved).toMatchObject({ status: 201 });
    return saved.body.id ?? '';
  })());

/** Runs work while another agent answers. Returns the result of the work. */
const nextToOthers = async <T>(work: () => Promise<T>): Promise<T> => {
  const working = work();
  const ends = await turnsWhile(stack, 'quiet', working);
  const result = await working;
  expect(new Set(ends)).toEqual(new Set(['completed']));
  return result;
};

/** Returns true if a line of the log says that the folder ended too many processes. */
const isLeftAlone = (log: string): boolean =>
  log.split('\n').some((line) => line.includes('not compared') && line.includes('WORK.PROCESS_LOST'));

describe('work that ends each process that takes it up', () => {
  beforeAll(() => startDeadly(DEADLY));
  afterAll(stopStack);

  it('a call of a native tool fails, and its turn completes', async () => {
    const client = await connectClient(stack.wsUrl);
    const address = { channel: 'test', account: 'lost', peer: 'tool', agent: 'deadly' };
    const { stream, turnId } = await chat(client, { ...address, content: 'list' });
    const failed = await nextToOthers(() =>
      waitForEvent(stack, 'ToolCallFailed', (data) => data['turnId'] === turnId),
    );
    expect(failed.data).toMatchObject({ code: 'TOOL.DRIVER_LOST' });
    expect((await stream.done()).at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } });
    await client.close();
  });

  it('a step of a plan fails with its run', async () => {
    const url = `${stack.gatewayUrl}/api/v1/workspaces/default/files/deadly.plan.md?expect=none`;
    const headers = { 'content-type': 'application/octet-stream' };
    const written = await fetch(url, { method: 'PUT', body: '# Plan\n\n- [ ] One\n', headers });
    expect(written.status).toBe(200);
    const started = await post('/plans/run', { path: 'deadly.plan.md', agent: 'deadly' });
    expect(started).toMatchObject({ status: 202 });
    const ended = await nextToOthers(() => waitForEvent(stack, 'PlanRunEnded', () => true));
    expect(ended.data).toMatchObject({
      reason: 'failed',
      cause: { kind: 'failed_with', code: 'WORK.PROCESS_LOST', why: { kind: 'work_processes_lost' } },
    });
  });

  it('a task of the queue fails', async () => {
    const { status, body } = await post('/tasks', { prompt: 'hello', agent: 'deadly' });
    expect([200, 201, 202]).toContain(status);
    const ended = await nextToOthers(() =>
      waitForEvent(stack, 'TaskEnded', (data) => data['taskId'] === body.id),
    );
    expect(ended.data).toMatchObject({ status: 'failed' });
  });

  it('an event of a projection is parked with its stream', async () => {
    // The event ends the process, which may be before its answer.
    const { status } = await send(stack, 'PATCH', '/agents/deadly', { action: 'pause' });
    expect([200, 503]).toContain(status);
    await waitForEvent(stack, 'AgentPaused', () => true);
    const parked = await nextToOthers(() =>
      waitForValue(
        'the parked stream',
        async () => {
          const { stdout } = await runCli(stack, ['dlq', 'list', '--json']);
          return stdout.includes('PROJECTION.PROCESS_LOST') ? stdout : undefined;
        },
        60_000,
      ),
    );
    expect(parked).toContain('agent-agents');
  });

  it('an event of the relay is published without its data', async () => {
    await savedWorkflow();
    await nextToOthers(() =>
      waitForValue(
        'the event without data',
        async () => stack.readLog('memory-1').includes('event published without data') || undefined,
        60_000,
      ),
    );
  });

  it('a node of a run fails with its run', async () => {
    expect(await post(`/workflows/${await savedWorkflow()}/start`, {})).toMatchObject({ status: 202 });
    const failed = await nextToOthers(() =>
      waitForEvent(stack, 'TaskFailed', (data) => data['nodeId'] === 'deadly-node'),
    );
    expect(failed.data).toMatchObject({ code: 'WORK.PROCESS_LOST' });
    await waitForEvent(stack, 'RunFailed', () => true);
  });

  it('a deferred call of a tool fails, and its turn completes', async () => {
    const client = await connectClient(stack.wsUrl);
    const address = { channel: 'test', account: 'lost', peer: 'retry', agent: 'quiet' };
    const { stream, turnId } = await chat(client, { ...address, content: 'echo' });
    const failed = await nextToOthers(() =>
      waitForEvent(stack, 'ToolCallFailed', (data) => data['turnId'] === turnId),
    );
    expect(failed.data).toMatchObject({ code: 'TOOL.DRIVER_LOST' });
    expect((await stream.done()).at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } });
    await client.close();
  });

  it('a folder is left alone with the file that another program wrote', async () => {
    const folder = join(stack.home, 'files', 'default');
    await waitForValue('the folder', async () => existsSync(folder) || undefined, 20_000);
    writeFileSync(join(folder, 'deadly.txt'), 'x');
    await nextToOthers(() =>
      waitForValue(
        'the folder that is left alone',
        async () => isLeftAlone(stack.readLog('agent-1')) || undefined,
        60_000,
      ),
    );
  });
});

describe('a message that ends each process that takes it up', () => {
  beforeAll(() => startDeadly(DEADLY_MESSAGE));
  afterAll(stopStack);

  it('is a dead letter', async () => {
    const client = await connectClient(stack.wsUrl);
    const address = { channel: 'test', account: 'lost', peer: 'message', agent: 'quiet' };
    const { stream } = await chat(client, { ...address, content: 'fail' });
    expect((await stream.done()).at(-1)).toMatchObject({ event: 'done', data: { status: 'failed' } });
    const letter = await nextToOthers(() =>
      waitForValue(
        'the dead letter',
        async () => {
          const { stdout } = await runCli(stack, ['dlq', 'list', '--json']);
          return stdout.includes('MESSAGING.PROCESS_LOST') ? stdout : undefined;
        },
        60_000,
      ),
    );
    expect(letter).toContain('metering-settle-calls');
    await client.close();
  });
});
