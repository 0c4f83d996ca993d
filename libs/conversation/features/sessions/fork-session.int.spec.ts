import { textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { ApprovalRule } from '@antiphon/config';
import type { SessionExport } from '@antiphon/contracts/log';
import { NOT_RECORDED } from '@antiphon/conversation-domain';
import { createPool } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';
import { createTestDatabase, indexConditions } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { replayRecord } from '@antiphon/orchestration-features/maintenance/replay-record';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import type { ForkSessionRequest } from './fork-session.handler.js';
import { LIST_SQL, ORIGINS_SQL, ReadSessions } from './read-sessions.handler.js';

jest.setTimeout(30_000);

let database: TestDatabase;
let world: AgentWorld;
let agent: TestProcess;
beforeAll(async () => {
  database = await createTestDatabase();
  world = await createAgentWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process({ config: testConfig({ fallback: { provider: 'second', model: 'n' } }) });
});
afterAll(() => world.close());
beforeEach(() => {
  // One step with a tool call for each `tool x`. The reply names the model and the tool's result.
  world.model.reply = async ({ model, messages }) => {
    const results = messages.filter(({ role }) => role === 'tool').length;
    const [user] = messages.flatMap((message) => (message.role === 'user' ? [message.text] : [])).slice(-1);
    const wanted = [...(user ?? '').matchAll(/tool (\w+)/g)].map(([, word]) => word as string);
    const open = messages.length - 1 - messages.findLastIndex(({ role }) => role === 'user');
    const next = wanted[Math.floor(open / 2)];
    if (next !== undefined) return asksFor({ name: 'echo', input: { word: next, by: wanted.length } });
    return says(`${model}: ${user} (${results})`);
  };
});

const fork = (request: Partial<ForkSessionRequest> & Pick<ForkSessionRequest, 'sessionId'>) =>
  agent.runtime.forkSession({ workspace: WORKSPACE, caller: 'spec', ...request });
const converse = async (...contents: string[]): Promise<{ sessionId: string; events: RecordedEvent[] }> => {
  const target = { address: newAddress() };
  let sessionId = '';
  for (const [index, content] of contents.entries()) {
    ({ sessionId } = await submitTo(agent, target, content));
    await world.ended(sessionId, index + 1);
  }
  return { sessionId, events: await world.events(sessionId) };
};
const endsOf = (events: readonly RecordedEvent[]): number[] =>
  events.flatMap(({ type, streamVersion }) => (type === 'TurnCompleted' ? [streamVersion] : []));
const textsOf = (events: readonly RecordedEvent[]): unknown[] =>
  events.flatMap(({ type, data }) => (type === 'ModelCallCompleted' && data['text'] ? [data['text']] : []));
const replay = (sessionId: string, events: readonly RecordedEvent[]) => {
  const head = { version: events.length, hash: events.at(-1)?.hash ?? '' };
  const header = { kind: 'antiphon.session', format: 1, workspace: WORKSPACE, sessionId, head } as const;
  return replayRecord({ ...header, events: events as unknown as SessionExport['events'] }, { limit: 1 });
};

describe('a fork', () => {
  it('continues from its cut with the facts of that time, and leaves the origin unchanged', async () => {
    const { sessionId, events } = await converse('one', 'two');
    const [first = 0] = endsOf(events);
    const fact = {
      ...{ subject: 'user', predicate: 'color', object: 'teal', confidence: 1 },
      ...{ learnedAt: '2026-11-22T10:00:00.000Z', sourceEventId: randomUUID() },
    };
    const asked: unknown[] = [];
    world.responders.believed = async (request) => {
      asked.push(request);
      return { facts: [{ ...fact, factId: randomUUID(), supersededAt: null }] };
    };
    const made = await fork({ sessionId, atVersion: first });
    expect(asked).toMatchObject([{ position: events[first - 1]?.position }]);
    expect(made).toMatchObject({ purpose: 'fork', origin: { sessionId, version: first }, remakes: [] });
    const [started, forked] = await world.events(made.sessionId);
    expect(started?.data).toMatchObject({ agentId: 'main', sessionKey: made.sessionKey });
    expect(forked?.data).toMatchObject({
      origin: { sessionId, version: first, hash: events[first - 1]?.hash },
      recent: [{ content: 'one', ending: 'completed' }],
      facts: [fact],
    });
    await submitTo(agent, { sessionId: made.sessionId }, 'three');
    const own = await world.ended(made.sessionId);
    const said = world.model.requests.at(-1)?.messages.map((message) => 'text' in message && message.text);
    expect(said).toEqual(['one', 'm: one (0)', 'three']);
    expect(await world.events(sessionId)).toEqual(events);
    expect(replay(made.sessionId, own)).toMatchObject({ ok: true });
  });

  it('names its origin and the number of turns that it has from it, also of a fork of a fork', async () => {
    const { sessionId, events } = await converse('one', 'two', 'three');
    const [, second = 0] = endsOf(events);
    const made = await fork({ sessionId, atVersion: second });
    await submitTo(agent, { sessionId: made.sessionId }, 'four');
    const own = await world.ended(made.sessionId);
    const again = await fork({ sessionId: made.sessionId, atVersion: endsOf(own)[0] });
    const reads = agent.get(ReadSessions);
    const originOf = async (id: string) => {
      const request = { workspace: WORKSPACE, sessionId: id };
      await until(() => reads.get(request).then(Boolean, () => false));
      return (await reads.get(request)).forkedFrom;
    };
    expect(await originOf(sessionId)).toBeNull();
    expect(await originOf(made.sessionId)).toEqual({ sessionId, version: second, turns: 2 });
    expect(await originOf(again.sessionId)).toMatchObject({ sessionId: made.sessionId, turns: 3 });
  });

  it('uses the requested model', async () => {
    const { sessionId } = await converse('one');
    const made = await fork({ sessionId, model: 'bigger' });
    await submitTo(agent, { sessionId: made.sessionId }, 'two');
    expect(textsOf(await world.ended(made.sessionId))).toEqual(['bigger: two (0)']);
  });

  it('is created once per idempotency key', async () => {
    const { sessionId } = await converse('one');
    const idempotencyKey = randomUUID();
    const [one, two] = await Promise.all([
      fork({ sessionId, idempotencyKey }),
      fork({ sessionId, idempotencyKey }),
    ]);
    expect(two).toEqual(one);
    await expect(fork({ sessionId, model: 'other', idempotencyKey })).rejects.toMatchObject({
      code: 'LOG.IDEMPOTENCY_CONFLICT',
    });
  });

  it('can only be cut between turns, and names the nearest cuts', async () => {
    const { sessionId, events } = await converse('one', 'two');
    const [first = 0, last = 0] = endsOf(events);
    await expect(fork({ sessionId, atVersion: first + 1 })).rejects.toMatchObject({
      code: 'SESSION.CUT_INSIDE_TURN',
      message: expect.stringContaining(`cut it at ${first} or ${last}`),
    });
    await expect(fork({ sessionId, atVersion: last + 5 })).rejects.toMatchObject({
      code: 'SESSION.NO_SUCH_VERSION',
    });
    await expect(fork({ sessionId: randomUUID() })).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
    await expect(fork({ sessionId, agent: 'missing-agent' })).rejects.toMatchObject({
      code: 'AGENT.NOT_FOUND',
    });
    await expect(fork({ sessionId, provider: 'missing-provider' })).rejects.toMatchObject({
      code: 'PROVIDER.NOT_FOUND',
    });
  });
});

describe('a what-if', () => {
  it('calls another model with the recorded context and takes tool results from the record', async () => {
    const { sessionId, events } = await converse('zero', 'tool a tool b tool a');
    const [calls, reserved] = [world.responders.asked.tool.length, world.responders.asked.reserve.length];
    const made = await fork({ sessionId, model: 'bigger', whatIf: { turns: 1 } });
    const own = await world.ended(made.sessionId);
    expect(textsOf(own)).toEqual(['bigger: tool a tool b tool a (3)']);
    const outcomes = (of: readonly RecordedEvent[]) =>
      of.flatMap(({ type, data }) => (type === 'ToolCallCompleted' ? [data['content']] : []));
    expect(outcomes(own)).toEqual(outcomes(events));
    expect(world.responders.asked.tool).toHaveLength(calls);
    // Four model calls, each with its own reservation.
    expect(world.responders.asked.reserve.slice(reserved)).toHaveLength(4);
    expect(own[1]?.data).toMatchObject({ purpose: 'whatif', choice: { provider: 'first', model: 'bigger' } });
    expect(await world.events(sessionId)).toEqual(events);
    expect(replay(made.sessionId, own)).toMatchObject({ ok: true });
  });

  it('gets the recorded denial of a call and requests no approval', async () => {
    const asks: ApprovalRule = {
      tool: '*',
      ask: 'always',
      expiresAfterMs: 60_000,
      escalateAfterMs: null,
      escalateTo: 'admin',
      answerBy: 'member',
    };
    const guarded = world.process({ config: testConfig({ approvals: [asks] }) });
    const { runtime } = guarded;
    const { sessionId } = await submitTo(guarded, { address: newAddress() }, 'tool a');
    const [waiting] = await until(async () => {
      const query = { workspace: WORKSPACE, status: 'pending' as const, sessionId, limit: 5 };
      const { approvals } = await runtime.approvals.list(query);
      return approvals.length > 0 && approvals;
    });
    await runtime.approvals.answer({
      ...{ workspace: WORKSPACE, approvalId: waiting!.id, decision: 'deny', reason: 'not on a Sunday' },
      approver: { caller: 'ada', role: 'operator', agentId: null },
    });
    await world.ended(sessionId);
    const made = await runtime.forkSession({
      ...{ workspace: WORKSPACE, caller: 'spec', sessionId, model: 'bigger', whatIf: { turns: 1 } },
    });
    const own = await world.ended(made.sessionId);
    expect(own.filter(({ type }) => type.startsWith('Approval'))).toEqual([]);
    expect(own.find(({ type }) => type === 'ToolCallFailed')?.data).toMatchObject({
      code: 'TOOL.DENIED',
      cause: { kind: 'approval_denied', reason: expect.stringContaining('not on a Sunday') },
    });
    expect(own.at(-1)?.type).toBe('TurnCompleted');
    expect(replay(made.sessionId, own)).toMatchObject({ ok: true });
  });

  it('stops at a tool call without a record and names it', async () => {
    const { sessionId } = await converse('tool a');
    const reply = world.model.reply;
    world.model.reply = async (request, sink, call) => {
      const answer = await reply(request, sink, call);
      return answer.toolCalls.length > 0 ? asksFor({ name: 'echo', input: { word: 'other' } }) : answer;
    };
    const calls = world.responders.asked.tool.length;
    const made = await fork({ sessionId, model: 'bigger', whatIf: { turns: 1 } });
    const own = await world.ended(made.sessionId);
    expect(own.at(-1)).toMatchObject({ type: 'TurnFailed', data: { code: NOT_RECORDED } });
    expect(textOf(own.at(-1)?.data['cause'] as unknown as Cause)).toMatch(
      /asked for echo \{"word":"other"\}, which is not in the record: of turn .+, which has echo \{"by":1,"word":"a"\}|"word":"a"/,
    );
    expect(world.responders.asked.tool).toHaveLength(calls);
    expect(replay(made.sessionId, own)).toMatchObject({ ok: true });
  });

  it('runs several turns again in order, and refuses a cut without later turns', async () => {
    const { sessionId, events } = await converse('one', 'two', 'three');
    const made = await fork({ sessionId, atVersion: endsOf(events)[0] as number, whatIf: { turns: 9 } });
    expect(made.remakes).toHaveLength(2);
    expect(textsOf(await world.ended(made.sessionId, 2))).toEqual(['m: two (0)', 'm: three (0)']);
    await expect(
      fork({ sessionId, atVersion: endsOf(events)[2] as number, whatIf: { turns: 1 } }),
    ).rejects.toMatchObject({ code: 'WHATIF.NO_TURN' });
  });
});

it('reads the origins of a fork and their turns by their streams, not from the whole log', async () => {
  const conditions = await indexConditions(database, 'agent', ORIGINS_SQL);
  // Of the fork, of its origins, and of the turns of each.
  expect(conditions.filter((line) => line.includes('(stream_id = '))).toHaveLength(3);
});

it('lists sessions in the order of an index, from the position of the cursor', async () => {
  const admin = createPool({ url: database.url, applicationName: 'spec', max: 1 });
  await admin.query(`insert into agent_sessions
      (workspace, session_id, session_key, agent_id, started_at, turns, open_turns, last_position)
    select 'filled', gen_random_uuid(), i::text, 'main', now(), 1, 0, i from generate_series(1, 5000) i;
    analyze agent_sessions`);
  await admin.end();
  const conditions = await indexConditions(database, 'agent', LIST_SQL);
  expect(conditions).toContainEqual(expect.stringMatching(/\(workspace = .*\(last_position < /));
});
