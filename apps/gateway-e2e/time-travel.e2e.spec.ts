import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import pg from 'pg';
import {
  CANARY_KEY,
  runCli,
  waitForValue,
  readEvents,
  startQuickStack,
  twoVendorConfig,
  type CliRun,
  type LoggedEvent,
} from './stack-under-test.js';

jest.setTimeout(180_000);

/**
 * Replies to a sum through the calculator, with the name of its model. `willful` computes another
 * sum.
 */
const script: MockScript = ({ model, user, toolResults }) => {
  if (toolResults.length > 0) return { text: [`${model} says ${toolResults[0]}`] };
  const sum = /sum of (\d+) and (\d+)/.exec(user);
  if (!sum) return { text: [`${model} heard: `, user.slice(0, 60)] };
  const expression = model === 'willful' ? '6 * 7' : `${sum[1]} + ${sum[2]}`;
  return { tools: [{ id: 'call_1', name: 'calculator', input: { expression } }] };
};

let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  stack = await startQuickStack(twoVendorConfig(mock.url));
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

/** Sends these turns in one session. Returns its id. */
const converse = async (peer: string, ...contents: readonly string[]): Promise<string> => {
  let sessionId = '';
  for (const content of contents) {
    const to = { channel: 'test', account: 'e2e', peer, content, agent: 'claude' };
    const [accepted] = await client.stream('chat.send', to).done();
    sessionId = (accepted?.data as { sessionId: string }).sessionId;
  }
  return sessionId;
};
const session = (...args: readonly string[]): Promise<CliRun> => runCli(stack, ['session', ...args]);
const eventsOf = (id: string): Promise<LoggedEvent[]> => readEvents(stack, { stream: `session-${id}` });
const jsonOf = <T>({ stdout }: CliRun): T => JSON.parse(stdout) as T;
const exported = async (id: string, format = 'jsonl'): Promise<{ status: number; text: string }> => {
  const answer = await fetch(`${stack.gatewayUrl}/api/v1/sessions/${id}/export?format=${format}`);
  return { status: answer.status, text: await answer.text() };
};
/** Returns the versions of the events that end a turn. */
const endsOf = (events: readonly LoggedEvent[]): number[] =>
  events.flatMap(({ type, streamVersion }) => (type === 'TurnCompleted' ? [streamVersion] : []));

describe('antiphon session export', () => {
  it('prints the events with their hashes, the same bytes each time, without secrets', async () => {
    const id = await converse('export', 'What is the sum of 19 and 23?', 'my favorite color is teal');
    const file = join(stack.home, 'talk.jsonl');
    const run = await session('export', id, '--out', file);
    expect([run.stderr, run.code]).toEqual(['', 0]);
    const text = readFileSync(file, 'utf8');
    expect((await exported(id)).text).toBe(text);
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const logged = await eventsOf(id);
    const head = { version: logged.length };
    expect(lines[0]).toMatchObject({ kind: 'antiphon.session', sessionId: id, head });
    expect(lines.slice(1).map(({ eventId }) => eventId)).toEqual(logged.map(({ eventId }) => eventId));
    const document = JSON.parse((await exported(id, 'json')).text) as { events: unknown[] };
    expect(document.events).toEqual(lines.slice(1));
    expect(text).not.toContain(CANARY_KEY);
    expect((await exported('00000000-0000-4000-8000-000000000000')).status).toBe(404);
  });
});

describe('antiphon session replay --strict', () => {
  it('reproduces every hash, from a stack or a file, without a call to the provider', async () => {
    const id = await converse('replay', 'What is the sum of 1 and 2?', 'hello');
    const calls = mock.calls.length;
    const live = await session('replay', id, '--strict', '--json');
    expect([live.stderr, live.code]).toEqual(['', 0]);
    const events = (await eventsOf(id)).length;
    expect(jsonOf(live)).toMatchObject({ ok: true, events, turns: 2, divergences: [] });
    const file = join(stack.home, 'replay.jsonl');
    writeFileSync(file, (await exported(id)).text);
    // Nothing listens at this address: a replay needs only the file.
    const offline = await runCli(stack, ['session', 'replay', '--from', file, '--strict'], {
      ANTIPHON_URL: 'http://127.0.0.1:9',
    });
    expect([offline.stderr, offline.code]).toEqual(['', 0]);
    expect(offline.stdout).toContain('no provider or tool call; every event has the hash');
    expect(mock.calls).toHaveLength(calls);
  });

  it('names the first event that differs in a changed file, with both sides', async () => {
    const id = await converse('forged', 'What is the sum of 2 and 2?');
    const file = join(stack.home, 'forged.jsonl');
    writeFileSync(file, (await exported(id)).text.replace('"content":"4"', '"content":"5"'));
    const run = await session('replay', '--from', file, '--strict');
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(
      /DIVERGES event \d+ .*\n[^]*recorded ToolCallCompleted, hash [0-9a-f]{64}[^]*replayed ToolCallCompleted, hash/,
    );
  });

  it('names the first event that other rules would not produce', async () => {
    const id = await converse('rule', 'What is the sum of 3 and 4?');
    const run = await session('replay', id, '--strict', '--max-iterations', '1');
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/the recorded decision is ToolCallRequested; the rules give TurnFailed/);
  });

  it('fails like export with the name of a row that was changed in the database', async () => {
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
    const [replayed, { status, text }] = [await session('replay', id, '--strict'), await exported(id)];
    await change('jello', 'hello');
    await owner.query('alter table events enable trigger all');
    await owner.end();
    expect([replayed.code, replayed.stderr]).toEqual([1, expect.stringContaining(`session-${id}@2`)]);
    expect([status, JSON.parse(text)]).toEqual([500, expect.objectContaining({ code: 'LOG.CHAIN_BROKEN' })]);
  });
});

describe('antiphon session fork --at', () => {
  it('continues from that event with the facts of that time, and does not change the origin', async () => {
    const id = await converse('fork', 'my favorite color is teal', 'my favorite color is mauve', 'bye');
    const before = await eventsOf(id);
    const [first = 0] = endsOf(before);
    const run = await session('fork', id, '--at', String(first), '--key', 'once');
    expect([run.stderr, run.code]).toEqual(['', 0]);
    const forkId = run.stdout.trim();
    await client.stream('session.send', { sessionId: forkId, content: 'what is my favorite color?' }).done();
    const asked = JSON.stringify(mock.calls.at(-1)?.seen.body);
    expect(asked).toContain('teal');
    expect(asked).not.toContain('mauve');
    expect(asked).not.toContain('bye');
    expect(await eventsOf(id)).toEqual(before);
    // The key's holder is the one of the command line, so that the request joins the first fork.
    const adminKey = readFileSync(stack.stackJson().adminKeyFile ?? '', 'utf8').trim();
    const answer = await fetch(`${stack.gatewayUrl}/api/v1/sessions/${id}/fork`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': 'once',
        authorization: `Bearer ${adminKey}`,
      },
      body: JSON.stringify({ atVersion: first }),
    });
    expect([answer.status, await answer.json()]).toEqual([
      201,
      expect.objectContaining({ sessionId: forkId }),
    ]);
    await expect(client.call('session.fork', { sessionId: id, atVersion: first + 1 })).rejects.toThrow(
      /inside turn .* cut it at/,
    );
  });
});

describe('antiphon session whatif --model', () => {
  it('calls the other model, takes tool results from the record, and diff shows both', async () => {
    const id = await converse('whatif', 'What is the sum of 20 and 22?');
    const before = await eventsOf(id);
    const calls = mock.calls.length;
    const run = await session('whatif', id, '--model', 'claude-next', '--json');
    expect([run.stderr, run.code]).toEqual(['', 0]);
    const made = jsonOf<{ sessionId: string }>(run);
    expect(mock.calls.slice(calls).map(({ model }) => model)).toEqual(['claude-next', 'claude-next']);
    const reserved = await readEvents(stack, { type: 'BudgetReserved' });
    expect(reserved.filter(({ data }) => data['sessionId'] === made.sessionId)).toHaveLength(2);
    const outcome = (await eventsOf(made.sessionId)).find(({ type }) => type === 'ToolCallCompleted');
    const recorded = before.find(({ type }) => type === 'ToolCallCompleted');
    expect(outcome?.data['durationMs']).toBe(recorded?.data['durationMs']);
    expect(await eventsOf(id)).toEqual(before);
    const diff = await session('diff', id, made.sessionId);
    expect(diff.stdout).toMatch(/- claude-sonnet-4 says 42\n\s+\+ claude-next says 42/);
    expect(diff.stdout).not.toContain('  tools');
  });

  it('stops at a tool call that the record lacks', async () => {
    const id = await converse('willful', 'What is the sum of 5 and 6?');
    const run = await session('whatif', id, '--model', 'willful');
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/asked for calculator .*6 \* 7.*not in the record.*has calculator .*5 \+ 6/);
    const plugin = await waitForValue('the what-if', async () => run.stdout.match(/what-if (\S+),/)?.[1]);
    expect((await session('replay', plugin, '--strict')).code).toBe(0);
  });

  it('leaves, like all commands above, a log that passes the audit', async () => {
    const audit = await runCli(stack, ['audit', '--json']);
    expect([audit.stderr, audit.code]).toEqual(['', 0]);
    expect(jsonOf(audit)).toMatchObject({ ok: true });
  });
});
