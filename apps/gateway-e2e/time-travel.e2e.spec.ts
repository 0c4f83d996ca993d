import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import pg from 'pg';
import { CANARY_KEY, antiphon, readEvents, startWith, twoVendors, type CliRun } from './stack-under-test.js';

jest.setTimeout(180_000);

/** Answers a sum through the calculator, and in the voice of its model; everything else at once. */
const script: MockScript = ({ model, user, toolResults }) => {
  if (toolResults.length > 0) return { text: [`${model} says ${toolResults[0]}`] };
  const sum = /sum of (\d+) and (\d+)/.exec(user);
  if (sum)
    return { tools: [{ id: 'call_1', name: 'calculator', input: { expression: `${sum[1]} + ${sum[2]}` } }] };
  return { text: [`${model} heard: `, user.slice(0, 60)] };
};

let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startWith(twoVendors(mock.url));
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

/** A session of these turns. */
const converse = async (peer: string, ...contents: readonly string[]): Promise<string> => {
  let sessionId = '';
  for (const content of contents) {
    const to = { channel: 'test', account: 'e2e', peer, content, agent: 'claude' };
    const [accepted] = await client.stream('chat.send', to).done();
    sessionId = (accepted?.data as { sessionId: string }).sessionId;
  }
  return sessionId;
};
const session = (...args: readonly string[]): Promise<CliRun> => antiphon(stack, ['session', ...args]);
const jsonOf = <T>({ stdout }: CliRun): T => JSON.parse(stdout) as T;

describe('antiphon session export', () => {
  it('gives the events with their hashes, the same bytes each time, and no secret', async () => {
    const id = await converse('export', 'What is the sum of 19 and 23?', 'my favorite color is teal');
    const file = join(stack.home, 'talk.jsonl');
    const run = await session('export', id, '--out', file);
    expect([run.stderr, run.code]).toEqual(['', 0]);
    const text = readFileSync(file, 'utf8');
    expect((await session('export', id)).stdout).toBe(text);
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const logged = await readEvents(stack, { stream: `session-${id}` });
    expect(lines[0]).toMatchObject({
      kind: 'antiphon.session',
      sessionId: id,
      head: { version: logged.length },
    });
    expect(lines.slice(1).map(({ eventId }) => eventId)).toEqual(logged.map(({ eventId }) => eventId));
    const document = jsonOf<{ events: unknown[] }>(await session('export', id, '--format', 'json'));
    expect(document.events).toEqual(lines.slice(1));
    expect(text).not.toContain(CANARY_KEY);
  });

  it('says that there is no such session', async () => {
    const run = await session('export', '00000000-0000-4000-8000-000000000000', '--json');
    expect(run.code).toBe(1);
    expect(jsonOf(run)).toMatchObject({ error: { code: 'GATEWAY.SESSION_NOT_FOUND' } });
  });
});

describe('antiphon session replay --strict', () => {
  it('comes to every hash, from a stack or a file, without a call of the provider', async () => {
    const id = await converse('replay', 'What is the sum of 1 and 2?', 'hello');
    const calls = mock.calls.length;
    const live = await session('replay', id, '--strict', '--json');
    expect([live.stderr, live.code]).toEqual(['', 0]);
    const events = await readEvents(stack, { stream: `session-${id}` });
    expect(jsonOf(live)).toMatchObject({ ok: true, events: events.length, turns: 2, divergences: [] });
    const file = join(stack.home, 'replay.jsonl');
    await session('export', id, '--out', file);
    // Where nothing listens: a file is all that it needs.
    const offline = await antiphon(stack, ['session', 'replay', '--from', file, '--strict'], {
      ANTIPHON_URL: 'http://127.0.0.1:9',
    });
    expect([offline.stderr, offline.code]).toEqual(['', 0]);
    expect(offline.stdout).toContain('no provider or tool call; every event has the hash');
    const turnId = String(events.find(({ type }) => type === 'TurnRequested')?.data['turnId']);
    expect((await session('replay', id, '--strict', '--turn', turnId)).code).toBe(0);
    expect(mock.calls).toHaveLength(calls);
  });

  it('names the first event of a changed file, with both sides', async () => {
    const id = await converse('forged', 'What is the sum of 2 and 2?');
    const file = join(stack.home, 'forged.jsonl');
    const { stdout } = await session('export', id);
    writeFileSync(file, stdout.replace('"content":"4"', '"content":"5"'));
    const run = await session('replay', '--from', file, '--strict', '--json');
    expect(run.code).toBe(1);
    const [first] = jsonOf<{ divergences: { why: string; recorded: { type: string } }[] }>(run).divergences;
    expect(first).toMatchObject({ why: 'hash', recorded: { type: 'ToolCallCompleted' } });
    const text = await session('replay', '--from', file, '--strict');
    expect(text.stdout).toMatch(/DIVERGES event \d+ .*\n[^]*recorded ToolCallCompleted, hash [0-9a-f]{64}/);
  });

  it('names the first event that another rule would not have made', async () => {
    const id = await converse('rule', 'What is the sum of 3 and 4?');
    const run = await session('replay', id, '--strict', '--max-iterations', '1');
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/the recorded decision is ToolCallRequested; the rules give TurnFailed/);
  });

  it('and export name a row of the log that was changed behind its back', async () => {
    const id = await converse('row', 'hello');
    const owner = new pg.Client({ connectionString: stack.databaseUrl });
    await owner.connect();
    const change = (from: string, to: string) =>
      owner.query(
        `update events set data = replace(data::text, $2, $3)::jsonb where stream_id = $1 and type = 'TurnRequested'`,
        [`session-${id}`, from, to],
      );
    await owner.query('alter table events disable trigger all');
    await change('hello', 'jello');
    const [replayed, exported] = [await session('replay', id, '--strict'), await session('export', id)];
    await change('jello', 'hello');
    await owner.query('alter table events enable trigger all');
    await owner.end();
    for (const { code, stderr } of [replayed, exported])
      expect([code, stderr]).toEqual([1, expect.stringContaining(`session-${id}@2`)]);
    expect((await session('replay', id, '--strict')).code).toBe(0);
  });
});
