import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { AgentStateChange, AgentView, TaskItem } from '@antiphon/contracts/agent';
import type { IssuedWorkspace } from '@antiphon/contracts/keys';
import { connectClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { describeAgentKeys } from './describe-agent-keys.js';
import { createApiCaller, startQuickStack, twoVendorConfig, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const TOKEN = 'the-token-of-the-interface-has-over-32-characters';
const PRIVATE_AGENT = `
[[agents]]
id = "acme-only"
workspace = "acme"
provider = "openai"
model = "gpt-4o"
`;

let mock: MockModel;
let stack: TestStack;
let acme: string;
let globex: string;

const call = createApiCaller(() => stack.gatewayUrl);

/** Waits until a list, which follows the log, has exactly these ids. */
const waitForList = (path: string, field: 'agents' | 'tasks', ids: readonly string[]): Promise<true> =>
  waitForValue(`${ids.join()} in ${path}`, async () => {
    const { body } = await call<Record<string, { id: string }[]>>(acme, 'GET', path);
    const found = (body[field] ?? []).map(({ id }) => id);
    return JSON.stringify(found) === JSON.stringify(ids) ? true : undefined;
  });

const spawn = async (spec: object, token = acme): Promise<AgentView> => {
  const { status, body } = await call<AgentView>(token, 'POST', '/agents', { base: 'claude', ...spec });
  expect([status, body.detail]).toEqual([201, undefined]);
  return body;
};
const socketOf = (token: string) => connectClient(stack.wsUrl, { authorization: `Bearer ${token}` });

const createWorkspace = async (id: string): Promise<string> => {
  const { body } = await call<IssuedWorkspace>(TOKEN, 'POST', '/workspaces', { id });
  return body.key.token ?? '';
};
beforeAll(async () => {
  mock = await startMockModel(({ user }) => ({ text: [`Done: ${user}`] }));
  stack = await startQuickStack(twoVendorConfig(mock.url, `token = "${TOKEN}"`) + PRIVATE_AGENT);
  [acme, globex] = await Promise.all([createWorkspace('acme'), createWorkspace('globex')]);
});
afterAll(async () => {
  await stack?.stop();
  await mock?.close();
});

describe('the routes of agents', () => {
  it('spawn, find, pause, resume and terminate an agent, and show its history', async () => {
    const { id, state } = await spawn({ name: 'Researcher', project: 'website' });
    expect(state).toBe('idle');
    await waitForList('/agents?project=website&state=idle', 'agents', [id]);
    const path = `/agents/${id}`;
    const states: string[] = [];
    for (const action of ['pause', 'pause', 'resume'])
      states.push((await call<AgentView>(acme, 'PATCH', path, { action, reason: 'a spec' })).body.state);
    expect(states).toEqual(['paused', 'paused', 'idle']);
    const ended = await call<AgentView>(acme, 'DELETE', `${path}?reason=done`);
    expect([ended.status, ended.body.state]).toEqual([200, 'terminated']);
    expect((await call<AgentView>(acme, 'GET', path)).body).toMatchObject({ id, state: 'terminated' });
    await waitForList('/agents?project=website&state=terminated', 'agents', [id]);
    await waitForList('/agents?project=website', 'agents', []);
    await waitForList('/agents?project=website&state=terminated&offset=1', 'agents', []);
    const history = await call<{ changes: AgentStateChange[] }>(acme, 'GET', `${path}/history?limit=50`);
    expect(history.body.changes.map(({ to }) => to).reverse()).toEqual([
      ...['spawning', 'idle', 'paused', 'idle', 'terminated'],
    ]);
    expect(history.body.changes[2]).toMatchObject({ from: 'idle', to: 'paused', reason: 'a spec' });
  });

  it('refuse an illegal change with both states, an unknown agent and an invalid definition', async () => {
    const { id } = await spawn({ name: 'Short' });
    await call(acme, 'DELETE', `/agents/${id}`);
    const illegal = await call(acme, 'PATCH', `/agents/${id}`, { action: 'resume' });
    expect([illegal.status, illegal.body.code]).toEqual([422, 'AGENT.STATE_CONFLICT']);
    expect(illegal.body.detail).toContain('terminated');
    const cases: readonly (readonly [string, string, unknown, number, string])[] = [
      ['GET', '/agents/missing-agent', undefined, 404, 'AGENT.NOT_FOUND'],
      ['GET', '/agents/missing-agent/history', undefined, 404, 'AGENT.NOT_FOUND'],
      ['PATCH', '/agents/missing-agent', { action: 'pause' }, 404, 'AGENT.NOT_FOUND'],
      ['DELETE', '/agents/missing-agent', undefined, 404, 'AGENT.NOT_FOUND'],
      ['POST', '/agents', { name: 'x', base: 'missing-agent' }, 404, 'AGENT.NOT_FOUND'],
      ['POST', '/agents', { name: '' }, 400, 'GATEWAY.INVALID_BODY'],
      ['POST', '/agents', { name: 'x', colour: 'red' }, 400, 'GATEWAY.INVALID_BODY'],
      ['PATCH', `/agents/${id}`, { action: 'explode' }, 400, 'GATEWAY.INVALID_BODY'],
      ['GET', '/agents?state=happy', undefined, 400, 'GATEWAY.INVALID_QUERY'],
      ['GET', '/agents?limit=0', undefined, 400, 'GATEWAY.INVALID_QUERY'],
      ['POST', '/agents', { name: 'x', id }, 409, 'AGENT.EXISTS'],
    ];
    for (const [method, path, body, status, code] of cases) {
      const answer = await call(acme, method, path, body);
      expect([method, path, answer.status, answer.body.code]).toEqual([method, path, status, code]);
    }
  });

  it('refuse a child over the limit of its tree and name the limit', async () => {
    const root = await spawn({ name: 'Root', limits: { children: 1 } });
    await spawn({ name: 'Child', parent: root.id });
    const { status, body } = await call(acme, 'POST', '/agents', { name: 'Second', parent: root.id });
    expect([status, body.code]).toEqual([422, 'AGENT.LIMIT_REACHED']);
    expect(body.detail).toContain('children');
  });

  it('join a spawn by REST and the same spawn by WebSocket under one idempotency key', async () => {
    const key = randomUUID();
    const spec = { name: 'Once', base: 'claude' };
    const headers = { 'idempotency-key': key };
    const first = await call<AgentView>(acme, 'POST', '/agents', spec, headers);
    const client = await socketOf(acme);
    const again = (await client.call('agent.spawn', { ...spec, idempotencyKey: key })) as AgentView;
    expect(again.id).toBe(first.body.id);
    const other = await call(acme, 'POST', '/agents', { ...spec, name: 'Other' }, headers);
    expect([other.status, other.body.code]).toEqual([409, 'LOG.IDEMPOTENCY_CONFLICT']);
    await client.close();
  });
});

// @shows G16
describe('the socket methods of agents', () => {
  it('spawn, show, list, pause and terminate an agent', async () => {
    const client = await socketOf(acme);
    const { id } = (await client.call('agent.spawn', { name: 'Socket', base: 'gpt' })) as AgentView;
    expect(await client.call('agent.status', { agentId: id })).toMatchObject({
      id,
      state: 'idle',
      base: 'gpt',
    });
    const paused = await client.call('agent.control', { agentId: id, action: 'pause' });
    expect(paused).toMatchObject({ id, state: 'paused' });
    await waitForValue('the agent in the list', async () => {
      const { agents } = (await client.call('agent.list', { state: 'paused' })) as { agents: AgentView[] };
      return agents.some((agent) => agent.id === id) || undefined;
    });
    await client.call('agent.control', { agentId: id, action: 'terminate' });
    const refused = client.call('agent.control', { agentId: id, action: 'resume' });
    await expect(refused).rejects.toMatchObject({
      rpc: { code: -32602, data: { code: 'AGENT.STATE_CONFLICT', from: 'terminated' } },
    });
    await client.close();
  });

  it('send memory.event when an agent learns or replaces a fact, which they query and recall', async () => {
    const client = await socketOf(acme);
    await client.call('agent.subscribe', { agent: 'claude', frames: ['memory'] });
    const address = { channel: 'web', account: 'main', peer: 'ada', agent: 'claude' };
    for (const content of ['My name is Ada.', 'My name is Grace.'])
      await client.stream('chat.send', { ...address, content }).done();
    const framesOf = () =>
      client.received
        .filter(({ type }) => type === 'memory.event')
        .map((frame) => frame as unknown as { readonly change: string; readonly object: string });
    await waitForValue('three changes of memory', () =>
      Promise.resolve(framesOf().length >= 3 ? true : undefined),
    );
    expect(framesOf().map(({ change, object }) => `${change} ${object}`)).toEqual([
      ...['learned Ada', 'superseded Ada', 'learned Grace'],
    ]);
    const page = await client.call('memory.query', { agent: 'claude', query: 'name' });
    const { entries } = page as { readonly entries: readonly { memoryId: string; object: string }[] };
    expect(entries.map(({ object }) => object)).toEqual(['Grace']);
    expect(await client.call('memory.recall', { memoryId: entries[0]?.memoryId })).toMatchObject({
      ...{ ...entries[0], source: { content: 'My name is Grace.' } },
    });
    await client.close();
  });

  // @shows A13
  it('spawn an agent by the typed frame agent_spawn_request', async () => {
    const client = await socketOf(acme);
    client.sendRaw(JSON.stringify({ type: 'agent_spawn_request', id: 'typed', name: 'Typed', base: 'gpt' }));
    const { result } = await client.waitFor('the agent', ({ id }) => id === 'typed');
    const { id } = result as AgentView;
    expect((await call<AgentView>(acme, 'GET', `/agents/${id}`)).body).toMatchObject({
      ...{ id, name: 'Typed', state: 'idle' },
    });
    await client.close();
  });
});

describe('the routes and methods of tasks', () => {
  const ended = (id: string): Promise<TaskItem> =>
    waitForValue(`the end of task ${id}`, async () => {
      const { body } = await call<TaskItem>(acme, 'GET', `/tasks/${id}`);
      return body.endedAt === null ? undefined : body;
    });

  it('create a task that an agent with its capabilities completes', async () => {
    const agent = await spawn({ name: 'Counter', capabilities: ['counting'] });
    const created = await call<TaskItem>(acme, 'POST', '/tasks', {
      prompt: 'Count to three.',
      capabilities: ['counting'],
      project: 'numbers',
    });
    expect([created.status, created.body.detail]).toEqual([201, undefined]);
    const task = await ended(created.body.id);
    expect(task).toMatchObject({ state: 'completed', agentId: agent.id });
    expect(task.result?.text).toContain('Count to three.');
    await waitForList('/tasks?project=numbers&state=completed', 'tasks', [task.id]);
  });

  // @shows U50
  it('take a deadline with an offset, and say how to write one without a zone', async () => {
    const spec = { prompt: 'Never done.', capabilities: ['none-has-it'] };
    const dueAt = Date.now() + 3_600_000;
    const inIndia = new Date(dueAt + 5.5 * 3_600_000).toISOString().replace('Z', '+05:30');
    const { status, body } = await call<TaskItem>(acme, 'POST', '/tasks', { ...spec, deadline: inIndia });
    expect([status, body.deadline]).toEqual([201, new Date(dueAt).toISOString()]);
    await call(acme, 'PATCH', `/tasks/${body.id}`, { action: 'cancel' });
    for (const deadline of ['2026-11-27T18:00:00', '2026-11-27', 'tomorrow', '2026-11-27T18:00:00+25:99']) {
      const refused = await call(acme, 'POST', '/tasks', { ...spec, deadline });
      expect([deadline, refused.status]).toEqual([deadline, 400]);
      expect(refused.body.detail).toContain('give a time with its zone, such as 2026-11-27T18:00:00Z');
    }
  });

  it('cancel a task that waits, once', async () => {
    const client = await socketOf(acme);
    const spec = { prompt: 'Never done.', capabilities: ['none-has-it'] };
    const { id } = (await client.call('task.create', spec)) as TaskItem;
    expect(await client.call('task.get', { taskId: id })).toMatchObject({ id, state: 'queued' });
    const path = `/tasks/${id}`;
    await call(acme, 'PATCH', path, { action: 'cancel', reason: 'a spec' });
    expect((await ended(id)).state).toBe('cancelled');
    expect(await client.call('task.cancel', { taskId: id })).toMatchObject({ id, state: 'cancelled' });
    await client.close();
  });

  it('let an external worker claim, renew and finish a task, and refuse an older claim', async () => {
    const spec = { prompt: 'By hand.', worker: 'external', capabilities: ['carpentry'] };
    const { body: task } = await call<TaskItem>(acme, 'POST', '/tasks', spec);
    type Claim = { claim: { task: TaskItem; prompt: string; epoch: number } | null };
    const claim = async (capabilities: string[]) =>
      (await call<Claim>(acme, 'POST', '/tasks/claim', { capabilities })).body.claim;
    expect(await claim([])).toBeNull();
    const first = await claim(['carpentry']);
    expect(first).toMatchObject({ task: { id: task.id }, prompt: 'By hand.', epoch: 1 });
    const path = `/tasks/${task.id}`;
    expect((await call(acme, 'POST', `${path}/renew`, { epoch: 1 })).status).toBe(200);
    await call(acme, 'POST', `${path}/finish`, { epoch: 1, outcome: 'released' });
    const second = await waitForValue(
      'the second claim',
      async () => (await claim(['carpentry'])) ?? undefined,
    );
    expect(second.epoch).toBe(2);
    const late = await call(acme, 'POST', `${path}/finish`, { epoch: 1, outcome: 'completed', text: 'late' });
    expect([late.status, late.body.code]).toEqual([409, 'TASK.CLAIM_LOST']);
    const done = { epoch: 2, outcome: 'completed', text: 'A chair.' };
    for (let i = 0; i < 2; i++)
      expect((await call<TaskItem>(acme, 'POST', `${path}/finish`, done)).body).toMatchObject({
        state: 'completed',
        result: { text: 'A chair.' },
      });
  });

  it('refuse unknown tasks and invalid ones', async () => {
    const unknown = randomUUID();
    for (const [method, path, body, status] of [
      ['GET', `/tasks/${unknown}`, undefined, 404],
      ['PATCH', `/tasks/${unknown}`, { action: 'cancel' }, 404],
      ['POST', `/tasks/${unknown}/renew`, { epoch: 1 }, 404],
      ['GET', '/tasks/not-an-id', undefined, 400],
      ['POST', '/tasks', { prompt: '' }, 400],
      ['POST', '/tasks', { prompt: 'x', priority: 11 }, 400],
      ['POST', '/tasks', { prompt: 'x', agent: 'missing-agent' }, 404],
    ] as const)
      expect([method, path, (await call(acme, method, path, body)).status]).toEqual([method, path, status]);
  });
});

describe('the routes and the method of messages', () => {
  type Messages = { messages: { messageId: string; content: object; isRead: boolean }[] };
  const inbox = async (id: string) =>
    (await call<Messages>(acme, 'GET', `/agents/${id}/messages`)).body.messages;

  it('send to an agent, to the subscribers of a topic and to everyone', async () => {
    const [one, other] = [await spawn({ name: 'One' }), await spawn({ name: 'Other' })];
    const content = { text: 'hello' };
    const message = { type: 'AgentSpoke', content };
    const headers = { 'idempotency-key': randomUUID() };
    const path = `/agents/${one.id}/messages`;
    const first = await call<{ messageId: string }>(acme, 'POST', path, message, headers);
    expect(first.status).toBe(201);
    expect((await call(acme, 'POST', path, message, headers)).body).toEqual(first.body);
    const topics = await call(acme, 'PUT', `/agents/${other.id}/topics/news%2Ftoday`);
    expect([topics.status, topics.body]).toEqual([200, { topics: ['news/today'] }]);
    const client = await socketOf(acme);
    const onTopic = await client.call('message.send', { ...message, to: { topic: 'news/today' } });
    const toAll = await call(acme, 'POST', '/messages', { ...message, to: { everyone: true } });
    const ids = async (id: string) => (await inbox(id)).map(({ messageId }) => messageId);
    expect(await ids(one.id)).toEqual([toAll.body['messageId'], first.body.messageId]);
    const skipped = await call<Messages>(acme, 'GET', `/agents/${one.id}/messages?offset=1&limit=1`);
    expect(skipped.body.messages.map(({ messageId }) => messageId)).toEqual([first.body.messageId]);
    expect(await ids(other.id)).toEqual([
      toAll.body['messageId'],
      (onTopic as { messageId: string }).messageId,
    ]);
    const none = await call(acme, 'DELETE', `/agents/${other.id}/topics/news%2Ftoday`);
    expect(none.body).toEqual({ topics: [] });
    await client.close();
  });

  it('refuse content that does not match its type, and an unknown agent', async () => {
    const { id } = await spawn({ name: 'Strict' });
    const wrong = await call(acme, 'POST', `/agents/${id}/messages`, {
      type: 'AgentSpoke',
      content: { words: 1 },
    });
    expect([wrong.status, wrong.body.code]).toEqual([400, 'MESSAGE.INVALID']);
    const lost = await call(acme, 'POST', '/messages', { to: { agent: 'missing-agent' }, content: { a: 1 } });
    expect([lost.status, lost.body.code]).toEqual([404, 'AGENT.NOT_FOUND']);
  });
});

describeAgentKeys({ call, spawn, keyOf: (name) => (name === 'acme' ? acme : globex) });
