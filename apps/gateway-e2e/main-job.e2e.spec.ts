import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { HTTP_ROUTES, SOCKET_METHODS, STREAM_FRAMES } from '@antiphon/contracts/reference';
import { connectClient, textOf, type SocketClient, type StreamedFrame } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import pg from 'pg';
import { linesOfRequests, markLogs } from './log-lines.js';
import {
  CANARY_KEY,
  readEvents,
  runCli,
  startStackWith,
  waitForRoot,
  twoVendorConfig,
  waitForAccepted,
  waitForValue,
} from './stack-under-test.js';

jest.setTimeout(180_000);

/** Replies to a sum through the calculator, and to any other message at once. */
const answerSums: MockScript = ({ user, toolResults }) => {
  if (toolResults.length > 0) return { text: ['The sum ', 'is ', `${toolResults[0]}.`] };
  const sum = /sum of (\d+) and (\d+)/.exec(user);
  if (sum)
    return { tools: [{ id: 'call_1', name: 'calculator', input: { expression: `${sum[1]} + ${sum[2]}` } }] };
  return { text: ['You said: ', user.slice(0, 40)] };
};

let script: MockScript = answerSums;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;

const toPeer = (peer: string, content: string, agent = 'claude') => ({
  channel: 'test',
  account: 'e2e',
  peer,
  content,
  agent,
});

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  const env = { ANTIPHON_LOG_LEVEL: 'debug' };
  stack = await startStackWith(twoVendorConfig(mock.url), {}, { shareDatabase: true, env });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

describe('the main job', () => {
  it.each(['claude', 'gpt'])('streams the answer of %s, with a tool that ran in a cell', async (agent) => {
    const frames = await client
      .stream('chat.send', toPeer(`sum-${agent}`, 'What is the sum of 19 and 23?', agent))
      .done();
    // The number of text frames depends on the provider and the network.
    const kinds = frames
      .map(({ event }) => event)
      .filter((event, i, all) => event !== 'text' || all[i - 1] !== 'text');
    expect(kinds).toEqual(['accepted', 'tool_use', 'usage', 'tool_result', 'text', 'usage', 'done']);
    expect(frames[1]?.data).toMatchObject({ name: 'calculator', input: { expression: '19 + 23' } });
    expect(frames[3]?.data).toMatchObject({ content: '42', is_error: false });
    expect(textOf(frames)).toBe('The sum is 42.');
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
    expect(frames.map(({ offset }) => offset)).toEqual(
      [...new Set(frames.map(({ offset }) => offset))].sort((a, b) => a - b),
    );
  });

  it('leaves log lines that all have the ids of their request and session, in each service', async () => {
    const readLines = markLogs(stack);
    const sent = await client.stream('chat.send', toPeer('logged', 'What is the sum of 19 and 23?')).done();
    const { sessionId, turnId } = sent[0]?.data as { sessionId: string; turnId: string };
    const headers = { 'x-request-id': 'request-of-the-spec' };
    // The list of sessions follows the log.
    await waitForValue('the session', async () => {
      const { ok } = await fetch(`${stack.gatewayUrl}/api/v1/sessions/${sessionId}`, { headers });
      return ok || undefined;
    });
    const lines = await waitForValue('the lines of both requests', async () => {
      const read = readLines();
      const isWhole =
        read.some(({ message }) => message === 'turn streamed') &&
        read.some(({ message, status }) => message === 'HTTP request completed' && status === 200);
      return isWhole ? read : undefined;
    });
    const all = linesOfRequests(lines);
    expect(all.filter((line) => !line['correlationId'] || !line['sessionId'])).toEqual([]);
    // Work of an earlier session may still end. Its lines have the ids of that session.
    const ours = all.filter((line) => line['sessionId'] === sessionId);
    const correlations = new Set(ours.map((line) => line['correlationId']));
    expect(
      all.filter((line) => line['sessionId'] !== sessionId && correlations.has(line['correlationId'])),
    ).toEqual([]);
    const lineOf = (name: string) => ours.findLast(({ message }) => message === name);
    const { correlationId } = lineOf('request completed') ?? {};
    expect(lineOf('request completed')).toMatchObject({ service: 'gateway', method: 'chat.send' });
    expect(lineOf('turn streamed')).toMatchObject({ correlationId, turnId, status: 'completed' });
    expect(lineOf('tool call completed')).toMatchObject({ correlationId, turnId, service: 'sandbox' });
    expect(lineOf('HTTP request completed')).toMatchObject({
      ...{ correlationId: 'request-of-the-spec', method: 'GET', status: 200 },
    });
    expect(new Set(ours.map(({ service }) => service))).toEqual(new Set(['gateway', 'agent', 'sandbox']));
  });

  it('gives a later reader the same frames', async () => {
    const sent = await client.stream('chat.send', toPeer('reader', 'hello')).done();
    const { sessionId } = sent[0]?.data as { sessionId: string };
    const reader = await connectClient(stack.wsUrl);
    const resumed = reader.stream('session.resume', { sessionId, after: 0 });
    expect((await resumed.done()).map(({ event, data, offset }) => ({ event, data, offset }))).toEqual(
      sent.map(({ event, data, offset }) => ({ event, data, offset })),
    );
    const half = sent[1]?.offset ?? 0;
    const second = await connectClient(stack.wsUrl);
    const rest = await second.stream('session.resume', { sessionId, after: half }).done();
    expect(rest.map(({ offset }) => offset)).toEqual(sent.slice(2).map(({ offset }) => offset));
    await Promise.all([reader.close(), second.close()]);
  });

  // @shows A11
  it('gives a client that is dropped in mid-stream every frame once', async () => {
    const words = Array.from({ length: 12 }, (_, i) => `word${i} `);
    const gates = words.map((word) => ({ word, ...Promise.withResolvers<void>() }));
    const gateOf = (piece: string) => gates.find(({ word }) => piece.includes(word));
    script = () => ({ reply: { text: words }, before: (piece) => gateOf(piece)?.promise });
    const releaseUpTo = (n: number) => gates.slice(0, n).forEach(({ resolve }) => resolve());
    const watcher = await connectClient(stack.wsUrl);
    const whole = watcher.stream('chat.send', toPeer('dropped', 'count'));
    const { sessionId } = await waitForAccepted(whole);
    const assembled: StreamedFrame[] = [];
    for (const upTo of [3, 6, 9, 12]) {
      const reader = await connectClient(stack.wsUrl);
      const stream = reader.stream('session.resume', { sessionId, after: assembled.at(-1)?.offset ?? 0 });
      releaseUpTo(upTo);
      await stream.waitFor(`word ${upTo}`, ({ data }) => String(data).includes(words[upTo - 1] as string));
      if (upTo < 12) reader.socket.terminate();
      assembled.push(...(upTo < 12 ? stream.frames : await stream.done()));
      await reader.close();
    }
    script = answerSums;
    const bare = ({ event, data, offset }: StreamedFrame) => ({ event, data, offset });
    expect(assembled.map(bare)).toEqual((await whole.done()).map(bare));
    expect(textOf(assembled)).toBe(words.join(''));
    await watcher.close();
  });

  // @shows F4
  it('runs ten turns of one session one after another, in the order of their messages', async () => {
    let running = 0;
    const order: string[] = [];
    script = async ({ user }) => {
      expect(++running).toBe(1);
      order.push(user);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return { text: [`did ${user}`] };
    };
    const contents = Array.from({ length: 10 }, (_, i) => `job ${i}`);
    const streams = contents.map((content) => client.stream('chat.send', toPeer('lane', content)));
    const all = await Promise.all(streams.map((stream) => stream.done()));
    script = answerSums;
    expect(order).toEqual(contents);
    expect(all.map(textOf)).toEqual(contents.map((content) => `did ${content}`));
    // Each stream fills its own gaps from the log, so `done` frames may pass each other on the
    // socket. Their offsets are those of the session.
    const offsets = all.map((frames) => frames.at(-1)?.offset);
    expect(offsets).toEqual([...offsets].sort((a, b) => Number(a) - Number(b)));
    expect(new Set(offsets).size).toBe(10);
  });

  // @shows F4
  it('runs eight of ten sessions at the model at the same time', async () => {
    let waiting = 0;
    let open: () => void = () => undefined;
    const eightAreThere = new Promise<void>((resolve) => (open = resolve));
    script = async ({ user }) => {
      if (++waiting === 8) open();
      await eightAreThere;
      return { text: [user] };
    };
    const streams = Array.from({ length: 10 }, (_, i) =>
      client.stream('chat.send', toPeer(`side-${i}`, `hi ${i}`)),
    );
    const all = await Promise.all(streams.map((stream) => stream.done()));
    script = answerSums;
    expect(all.map(textOf)).toEqual(all.map((_, i) => `hi ${i}`));
  });

  it('joins a repeated request by its key, and rejects another body with that key', async () => {
    const params = { ...toPeer('twice', 'once only'), idempotencyKey: 'k-1' };
    const before = mock.calls.length;
    const [first, second] = await Promise.all([
      client.stream('chat.send', params).done(),
      client.stream('chat.send', params).done(),
    ]);
    expect(second).toEqual(
      first.map((frame) => ({ ...frame, id: second?.[0] && (second[0] as { id?: unknown }).id })),
    );
    expect(mock.calls.length - before).toBe(1);
    await expect(client.stream('chat.send', { ...params, content: 'other' }).done()).rejects.toMatchObject({
      rpc: { code: -32009 },
    });
  });

  // @shows B7
  it('starts a new session on /new, and still serves the old one', async () => {
    const [accepted] = await client.stream('chat.send', toPeer('fresh', 'first')).done();
    const { sessionId: old } = accepted?.data as { sessionId: string };
    const answer = (await client.call('chat.send', toPeer('fresh', '/new'))) as { sessionId: string };
    expect(answer.sessionId).not.toBe(old);
    const [again] = await client.stream('chat.send', toPeer('fresh', 'second')).done();
    expect(again?.data).toMatchObject({ sessionId: answer.sessionId });
    const frames = await client.stream('session.resume', { sessionId: old, after: 0 }).done();
    expect(textOf(frames)).toContain('first');
  });

  // @shows K11 K16
  it('remembers a fact of turn 5 at turn 50, in a request under 5,000 tokens', async () => {
    const filler = (turn: number) => `Turn ${turn}: ${'the weather is as it always is here; '.repeat(8)}`;
    for (let turn = 1; turn <= 50; turn++) {
      const content =
        turn === 5 ? 'By the way, my favourite colour is heliotrope. Marker-of-turn-five.' : filler(turn);
      await client.stream('chat.send', toPeer('elephant', content)).done();
    }
    const request = JSON.stringify(mock.calls.at(-1)?.seen.body);
    expect(request).toContain('heliotrope');
    expect(request).not.toContain('Marker-of-turn-five');
    // A token is at least one byte, so bytes bound tokens from above.
    expect(Buffer.byteLength(request)).toBeLessThan(5_000);
  });

  it('stops a cancelled turn, and reports the cancellation once', async () => {
    script = ({ user }) => ({
      reply: { text: ['one ', 'two'] },
      before: (piece) => (piece.includes('two') ? mock.calls.at(-1)?.seen.closed : undefined),
      user,
    });
    const stream = client.stream('chat.send', toPeer('cancelled', 'count'));
    const accepted = await stream.waitFor('accepted', ({ event }) => event === 'accepted');
    await stream.waitFor('the first text', ({ event }) => event === 'text');
    const { sessionId } = accepted.data as { sessionId: string };
    expect(await client.call('session.cancel', { sessionId })).toMatchObject({ cancelled: true });
    const frames = await stream.done();
    script = answerSums;
    expect(frames.at(-1)?.data).toMatchObject({ status: 'cancelled' });
    expect(await client.call('session.cancel', { sessionId })).toMatchObject({
      cancelled: false,
      status: 'cancelled',
    });
  });

  // @shows C14
  it('serves each method and route as its reference describes', async () => {
    // Resources that have to be created first are covered by the specs that create them.
    const readable = HTTP_ROUTES.filter(
      ({ method, path, query }) =>
        method === 'get' && !/(?<!agents)\/\{/.test(path) && query?.safeParse({}).success !== false,
    );
    for (const { path, reply } of readable) {
      const answer = await fetch(`${stack.gatewayUrl}${path.replace('{id}', 'claude')}`);
      expect([path, answer.status]).toEqual([path, 200]);
      expect(answer.headers.get('content-type')).toContain(reply.media ?? 'application/json');
      const body: unknown = reply.media ? await answer.text() : await answer.json();
      expect([path, reply.schema.safeParse(body).error]).toEqual([path, undefined]);
    }
    const known = (client.received[0] as { capabilities?: string[] }).capabilities;
    expect([...(known ?? [])].sort()).toEqual(SOCKET_METHODS.map(({ name }) => name).sort());
    for (const { event, data } of client.received)
      if (event !== undefined)
        expect([event, STREAM_FRAMES[event]?.data.safeParse(data).success]).toEqual([event, true]);
  });

  it('exposes the provider’s key neither in the log nor to clients', async () => {
    const events = JSON.stringify(await readEvents(stack));
    expect(events).not.toContain(CANARY_KEY);
    expect(JSON.stringify(client.received)).not.toContain(CANARY_KEY);
    expect(mock.calls[0]?.seen.headers).toMatchObject({ 'x-api-key': CANARY_KEY });
  });

  it('has projections that equal the log in every row, as the CLI shows', async () => {
    const listed = await runCli(stack, ['projections', 'list', '--json']);
    const { projections } = JSON.parse(listed.stdout) as { projections: { name: string; service: string }[] };
    expect(projections.map(({ name }) => name)).toEqual([
      'agent-sessions',
      'agent-runs',
      'agent-tasks',
      'agent-agents',
      'agent-channels',
      'memory-facts',
      'memory-log-rates',
      'budget-ledger',
      'budget-usage',
    ]);
    const compared = await runCli(stack, ['projections', 'rebuild', '--all', '--compare']);
    expect([compared.code, compared.stderr]).toEqual([0, '']);
    expect(compared.stdout).toContain('\n0 rows differ\n');
    const unknown = await runCli(stack, ['projections', 'rebuild', 'sessions']);
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining('agent-sessions, agent-runs'),
    ]);
  });

  it('archives finished sessions to a file, continues them, and restores the file', async () => {
    const [accepted] = await client.stream('chat.send', toPeer('archived', 'hello')).done();
    const { sessionId } = accepted?.data as { sessionId: string };
    await client.stream('chat.send', toPeer('newest', 'hello')).done();
    await waitForRoot(stack);
    const database = new pg.Client({ connectionString: stack.databaseUrl });
    await database.connect();
    // A projection that is behind keeps events in the log a little longer.
    await waitForValue('the session to be archived', async () => {
      const left = await runCli(stack, ['events', 'archive', '--before', '999999999', '--json']);
      expect([left.code, left.stderr]).toEqual([0, '']);
      const sql = 'select from archived_streams where stream_id = $1';
      return (await database.query(sql, [`session-${sessionId}`])).rowCount === 0 ? undefined : true;
    });
    await database.end();
    // Archived frames are unavailable, though the session itself continues.
    await expect(client.call('session.resume', { sessionId, after: 0 })).rejects.toMatchObject({
      rpc: { code: -32004, data: { code: 'LOG.ARCHIVED' } },
    });
    // A comparison reads the archive files as well, so that it covers every row.
    const compared = await runCli(stack, ['projections', 'rebuild', '--all', '--compare']);
    expect([compared.code, compared.stderr]).toEqual([0, '']);
    expect(compared.stdout).toContain('\n0 rows differ\n');
    const again = await client.stream('chat.send', toPeer('archived', 'and again')).done();
    expect(again.at(-1)?.data).toMatchObject({ status: 'completed' });
    expect(JSON.parse((await runCli(stack, ['audit', '--live', '--json'])).stdout)).toMatchObject({
      ok: true,
    });
    const back = await runCli(stack, ['events', 'restore', '--all', '--json']);
    expect([back.code, back.stderr]).toEqual([0, '']);
    expect((await runCli(stack, ['audit', '--json'])).code).toBe(0);
  });

  it('passes the audit, which names the event of a changed row', async () => {
    const clean = await runCli(stack, ['audit', '--json']);
    expect([clean.code, clean.stderr]).toEqual([0, '']);
    // The second audit continues from the checkpoint of the first.
    const first = await runCli(stack, ['audit', '--checkpoint', 'audit.json', '--json']);
    const second = await runCli(stack, ['audit', '--checkpoint', 'audit.json', '--json']);
    expect([first.code, second.code]).toEqual([0, 0]);
    const { headPosition, since } = JSON.parse(first.stdout) as { headPosition: number; since: null };
    expect(since).toBeNull();
    expect(JSON.parse(second.stdout)).toMatchObject({ since: headPosition });
    const live = await runCli(stack, ['audit', '--live', '--json']);
    expect([live.code, live.stderr]).toEqual([0, '']);
    const { checks } = JSON.parse(live.stdout) as { checks: { name: string; checked: number }[] };
    // A late settlement may follow the first audit.
    const relayed = checks.find(({ name }) => name === 'relay-equals-the-log')?.checked;
    expect(relayed).toBeGreaterThanOrEqual(headPosition);
    const database = new pg.Client({ connectionString: stack.databaseUrl });
    await database.connect();
    const { rows } = await database.query<{ event_id: string }>(
      `select event_id from events where type = 'TurnRequested' order by position offset 3 limit 1`,
    );
    const tampered = rows[0]?.event_id ?? '';
    await database.query(`set session_replication_role = replica`);
    await database.query(
      `update events set data = jsonb_set(data, '{content}', '"forged"') where event_id = $1`,
      [tampered],
    );
    await database.end();
    const dirty = await runCli(stack, ['audit']);
    expect(dirty.code).toBe(1);
    expect(dirty.stdout + dirty.stderr).toContain(tampered);
  });
});
