import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { spawnAgent } from '@antiphon/contracts/agent';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelRequest } from '@antiphon/providers-domain';
import { acrossWorkspaces } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, newAddress, submitTo, until } from '@antiphon/agent-features/testing/agent-world';
import { ACTOR, configWith, createTasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import type { TasksProcess, TasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import { hangs, says } from '@antiphon/agent-features/testing/test-model';
import { giveTimeToFail, letTimePass } from '@antiphon/testing/waits';

jest.setTimeout(60_000);

let world: TasksWorld;
let agent: TasksProcess;
beforeAll(async () => {
  world = await createTasksWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process(
    configWith({ main: [], rust: ['rust'], prose: ['prose', 'mail'], writer: ['prose', 'mail'] }),
  );
});
afterAll(() => world?.close());

const asked = ({ messages }: ModelRequest): string =>
  messages.flatMap((message) => (message.role === 'user' ? [message.text] : [])).at(-1) ?? '';

beforeEach(() => {
  world.agents.model.requests.length = 0;
  world.agents.model.reply = async (request) => says(`done(${asked(request).trim()})`);
});
const fast = { retry: { backoffMs: 20 } };
const failing = async (): Promise<never> => {
  throw new ModelFailure({ reason: 'provider_error', message: 'no', dispatched: true, retryable: false });
};
/** Returns true when the projection shows an open turn of a session. */
const hasOpenTurn = async (sessionId: string): Promise<boolean> => {
  const text = 'select from agent_sessions where session_id = $1 and open_turns > 0';
  return (await acrossWorkspaces(world.agents.pool).query(text, [sessionId])).rowCount === 1;
};
const stateOf = async (id: string) => (await world.get(agent, id)).state;

describe('a task', () => {
  it('is done by an idle agent as a turn, and ends with its answer', async () => {
    const id = await world.send(agent, { prompt: 'read the log\nall of it' });
    const task = await world.ended(agent, id);
    expect(task).toMatchObject({ state: 'completed', title: 'read the log', epoch: 1, strikes: [] });
    expect(task.result).toMatchObject({ status: 'completed', text: 'done(read the log\nall of it)' });
    expect(await world.agents.types(task.sessionId ?? '')).toContain('TurnCompleted');
    expect((await world.history()).get(`task-${id}`)?.map(({ type }) => type)).toEqual([
      'TaskQueued',
      'TaskAssigned',
      'TaskBegun',
      'TaskEnded',
    ]);
  });

  it('goes to an agent with its capabilities, and waits without one', async () => {
    const [able, none] = await Promise.all([
      world.send(agent, { capabilities: ['mail', 'prose'] }),
      world.send(agent, { capabilities: ['cobol'] }),
    ]);
    expect(['prose', 'writer']).toContain((await world.ended(agent, able)).agentId);
    expect(await stateOf(none)).toBe('queued');
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: none, actor: ACTOR });
  });

  it('goes to the agent that it names, and is refused for an unknown one', async () => {
    expect((await world.ended(agent, await world.send(agent, { agent: 'rust' }))).agentId).toBe('rust');
    await expect(world.send(agent, { agent: 'missing-agent' })).rejects.toMatchObject({
      code: 'AGENT.NOT_FOUND',
    });
  });

  // @shows M8
  it('is taken by its priority among the tasks that wait for an agent, then by its age', async () => {
    const only = { agent: 'rust' };
    const held = Promise.withResolvers<void>();
    const order: string[] = [];
    world.agents.model.reply = async (request) => {
      const prompt = asked(request).trim();
      if (prompt === 'first') await held.promise;
      else order.push(prompt);
      return says('done');
    };
    const first = await world.send(agent, { ...only, prompt: 'first', priority: 9 });
    await until(async () => (await stateOf(first)) === 'running');
    const wanted = [9, 5, 0, 7, 0, 3];
    const ids: string[] = [];
    for (const [index, priority] of wanted.entries())
      ids.push(await world.send(agent, { ...only, prompt: `${priority} ${index}`, priority }));
    held.resolve();
    await Promise.all(ids.map((id) => world.ended(agent, id)));
    expect(order).toEqual(['0 2', '0 4', '3 5', '5 1', '7 3', '9 0']);
    const history = await world.history();
    expect(history.get(`task-${ids[2]}`)?.[0]?.data).toMatchObject({ priority: 0 });
  });

  it('is accepted once for an idempotency key', async () => {
    const both = [{ idempotencyKey: 'k1' }, { idempotencyKey: 'k1' }];
    const ids = await Promise.all(both.map((more) => world.send(agent, { prompt: 'once' }, more)));
    expect(ids[0]).toBe(ids[1]);
    await world.ended(agent, ids[0] ?? '');
    expect(await world.send(agent, { prompt: 'once' }, { idempotencyKey: 'k1' })).toBe(ids[0]);
    expect(world.agents.model.requests.map(asked)).toEqual(['once']);
  });

  // @shows agents-A8
  it('fails visibly at the third strike, with the three reasons', async () => {
    world.agents.model.reply = failing;
    const task = await world.ended(agent, await world.send(agent, fast));
    expect(task).toMatchObject({ state: 'failed', epoch: 3 });
    expect(task.strikes).toHaveLength(3);
    expect(task.result?.code).toMatch(/^PROVIDER\./);
  });

  it('is cancelled while it waits, and in the middle of its turn', async () => {
    const begun = Promise.withResolvers<void>();
    world.agents.model.reply = hangs('', begun.resolve);
    const running = await world.send(agent, { agent: 'rust' });
    const waiting = await world.send(agent, { agent: 'rust' });
    await begun.promise;
    await until(async () => (await stateOf(running)) === 'running');
    for (const taskId of [waiting, running, running])
      await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId, actor: ACTOR, reason: 'enough' });
    expect(await stateOf(waiting)).toBe('cancelled');
    const task = await world.ended(agent, running);
    expect(task.state).toBe('cancelled');
    expect(await world.agents.types(task.sessionId ?? '')).toContain('TurnCancelled');
  });

  it('fails when its deadline passes, also in the middle of its turn', async () => {
    world.agents.model.reply = hangs();
    const deadline = new Date(Date.now() + 700).toISOString();
    const ids = [
      await world.send(agent, { agent: 'rust', deadline }),
      await world.send(agent, { agent: 'rust', deadline }),
    ];
    for (const id of ids)
      expect(await world.ended(agent, id)).toMatchObject({
        state: 'failed',
        result: { code: 'TASK.DEADLINE_PASSED' },
      });
  });
});

describe('an agent', () => {
  // @shows M4 M10 agents-A9
  it('does one task at a time, and an idle one steals what waits for a busy one', async () => {
    let open = 0;
    let most = 0;
    world.agents.model.reply = async (request) => {
      most = Math.max(most, ++open);
      await letTimePass(30);
      open--;
      return says(asked(request));
    };
    const spec = { capabilities: ['prose'], project: 'book' };
    const ids = await Promise.all(Array.from({ length: 10 }, () => world.send(agent, spec)));
    const done = await Promise.all(ids.map((id) => world.ended(agent, id)));
    expect(most).toBe(2);
    expect(new Set(done.map(({ agentId }) => agentId))).toEqual(new Set(['prose', 'writer']));
    const history = await world.history();
    const stolen = ids.flatMap((id) =>
      (history.get(`task-${id}`) ?? []).flatMap((event) =>
        event.type === 'TaskAssigned' ? [event.data.stolen] : [],
      ),
    );
    expect(stolen).toContain(true);
    expect(stolen).toContain(false);
  });

  it('gets no task while it answers a chat', async () => {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    world.agents.model.reply = async (request) => {
      if (asked(request) !== 'chat') return says('task');
      begun.resolve();
      await end.promise;
      return says('chat');
    };
    const { sessionId } = await submitTo(agent, { address: newAddress('rust') }, 'chat');
    await begun.promise;
    await until(() => hasOpenTurn(sessionId));
    const id = await world.send(agent, { agent: 'rust' });
    await giveTimeToFail(800);
    expect(await stateOf(id)).toBe('queued');
    end.resolve();
    await world.agents.ended(sessionId);
    expect((await world.ended(agent, id)).state).toBe('completed');
  });
});

describe('a spawned agent', () => {
  it('gets the tasks that need its capabilities', async () => {
    const id = await world.send(agent, { capabilities: ['welding'] });
    const spec = { name: 'Welder', base: 'main', capabilities: ['welding'] };
    const request = spawnAgent.request.parse({ workspace: WORKSPACE, spec, actor: ACTOR });
    const spawned = await agent.runtime.spawnAgent(request);
    expect(await world.ended(agent, id)).toMatchObject({ state: 'completed', agentId: spawned.agent.id });
  });
});

describe('an agent with a key of its own', () => {
  const own = { ...ACTOR, caller: 'key/agent', agentId: 'rust' };
  const create = (agentId?: string) =>
    agent.tasks.createTask({
      workspace: WORKSPACE,
      spec: {
        prompt: 'x',
        priority: 5,
        capabilities: ['none'],
        worker: 'agent',
        ...(agentId ? { agent: agentId } : {}),
      },
      actor: own,
    });

  it('delegates to itself and its descendants, and cancels only what it delegated', async () => {
    await expect(create('main')).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
    const { task } = await create();
    expect(task.parentAgentId).toBe('rust');
    const foreign = await world.send(agent, { capabilities: ['none'] });
    const cancel = (taskId: string) => agent.tasks.cancelTask({ workspace: WORKSPACE, taskId, actor: own });
    await expect(cancel(foreign)).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
    expect((await cancel(task.id)).task.state).toBe('cancelled');
  });
});

describe('the list of tasks', () => {
  // @shows K21
  it('pages through tasks, newest first, and filters them', async () => {
    const project = 'listed';
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await world.send(agent, { project }));
    await Promise.all(ids.map((id) => world.ended(agent, id)));
    const list = (
      more: { cursor?: string; limit?: number; offset?: number; state?: 'completed' | 'failed' } = {},
    ) => agent.tasks.listTasks({ workspace: WORKSPACE, project, limit: 2, offset: 0, ...more });
    await until(async () => (await list({ state: 'completed', limit: 100 })).tasks.length === 5);
    const first = await list();
    const second = await list({ cursor: first.nextCursor ?? '' });
    const third = await list({ cursor: second.nextCursor ?? '' });
    const all = [...first.tasks, ...second.tasks, ...third.tasks].map(({ id }) => id);
    expect(all).toEqual([...ids].reverse());
    expect(third.nextCursor).toBeNull();
    expect((await list({ offset: 3 })).tasks.map(({ id }) => id)).toEqual(all.slice(3));
    expect((await list({ offset: 5 })).tasks).toEqual([]);
    expect((await list({ state: 'failed' })).tasks).toEqual([]);
    expect(first.tasks[0]).toEqual(await world.get(agent, ids[4] ?? ''));
    await expect(list({ cursor: 'x' })).rejects.toMatchObject({ code: 'REQUEST.INVALID' });
  });

  it('selects by kind, capability, title and parent, and counts by state', async () => {
    const project = 'filtered';
    const parent = await world.send(agent, { project, title: 'Tide tables', capabilities: ['prose'] });
    const child = await world.send(agent, { project, title: 'High water', parentTask: parent });
    await Promise.all([parent, child].map((id) => world.ended(agent, id)));
    const stuck = await world.send(agent, { project, title: 'Low TIDE', capabilities: ['cobol'] });
    const list = async (more: object) =>
      agent.tasks.listTasks({ workspace: WORKSPACE, project, limit: 10, offset: 0, ...more });
    const idsOf = async (more: object) => (await list(more)).tasks.map(({ id }) => id);
    await until(async () => (await idsOf({})).length === 3);
    expect(await idsOf({ q: 'tide' })).toEqual([stuck, parent]);
    expect(await idsOf({ capability: 'prose' })).toEqual([parent]);
    expect(await idsOf({ parent })).toEqual([child]);
    expect(await idsOf({ kind: 'run_node' })).toEqual([]);
    await until(async () => (await list({ state: 'completed' })).tasks.length === 2);
    expect((await list({ state: 'queued', q: 'tide', counts: true })).counts).toMatchObject({
      ...{ queued: 1, completed: 1, failed: 0 },
    });
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: stuck, actor: ACTOR });
  });

  it('names the retry of a failed task, which then counts as decided, also in the past', async () => {
    const project = 'retried';
    const list = (more: object) =>
      agent.tasks.listTasks({ workspace: WORKSPACE, project, limit: 10, offset: 0, ...more });
    const fail = async (spec: object) => {
      world.agents.model.reply = failing;
      const id = await world.send(agent, { ...spec, project, retry: { strikes: 1 } });
      await world.ended(agent, id);
      await until(async () => (await list({ state: 'failed' })).tasks.some((task) => task.id === id));
      return id;
    };
    const [first, other] = [await fail({}), await fail({})];
    expect(await list({ counts: true })).toMatchObject({ counts: { failed: 2 }, failedAndNotRetried: 2 });
    const { position: before = 0 } = await list({ at: await world.agents.store.headPosition() });
    const again = await fail({ retryOf: first });
    expect(await list({ counts: true })).toMatchObject({ counts: { failed: 3 }, failedAndNotRetried: 2 });
    expect((await list({ retried: true })).tasks).toEqual([await world.get(agent, first)]);
    expect((await list({ retried: false })).tasks.map(({ id }) => id)).toEqual([again, other]);
    expect(await world.get(agent, first)).toMatchObject({ retryOf: null, retriedBy: again });
    expect(await world.get(agent, again)).toMatchObject({ retryOf: first, retriedBy: null });
    const past = await agent.tasks.getTask({ workspace: WORKSPACE, taskId: first, at: before });
    expect(past.task.retriedBy).toBeNull();
    expect((await list({ at: before, retried: true })).tasks).toEqual([]);
    expect(await list({ at: before, counts: true })).toMatchObject({ failedAndNotRetried: 2 });
  });

  it('refuses to try a task again that has not ended, is unknown, or is of another agent', async () => {
    const open = await world.send(agent, { capabilities: ['cobol'] });
    const missing = '00000000-0000-4000-8000-000000000009';
    const again = (retryOf: string, more = {}) => world.send(agent, { retryOf }, more);
    await expect(again(open)).rejects.toMatchObject({ code: 'TASK.NOT_ENDED' });
    await expect(again(missing)).rejects.toMatchObject({ code: 'TASK.NOT_FOUND' });
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: open, actor: ACTOR });
    await expect(again(open, { agentId: 'rust' })).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
    await world.ended(agent, await again(open));
  });

  it('says why each queued task waits', async () => {
    const held = Promise.withResolvers<void>();
    world.agents.model.reply = async () => {
      await held.promise;
      return says('done');
    };
    const reasonOf = async (id: string) => (await world.get(agent, id)).waiting;
    const running = await world.send(agent, { agent: 'rust' });
    await until(async () => (await stateOf(running)) === 'running');
    const second = await world.send(agent, { agent: 'rust', priority: 6 });
    const first = await world.send(agent, { capabilities: ['rust'] });
    const none = await world.send(agent, { capabilities: ['rust', 'tide-data'] });
    const apart = await world.send(agent, { capabilities: ['rust', 'prose'] });
    const external = await world.send(agent, { worker: 'external' });
    expect(await reasonOf(running)).toBeNull();
    expect(await reasonOf(first)).toMatchObject({ reason: 'busy', agentId: null, place: 1 });
    expect(await reasonOf(second)).toMatchObject({ reason: 'busy', agentId: 'rust', place: 2 });
    expect(await reasonOf(none)).toMatchObject({ reason: 'no_agent', missing: ['tide-data'] });
    expect(await reasonOf(apart)).toMatchObject({ reason: 'no_agent', missing: ['rust', 'prose'] });
    expect(await reasonOf(external)).toMatchObject({ reason: 'worker', place: null });
    held.resolve();
    await Promise.all([running, first, second].map((id) => world.ended(agent, id)));
    for (const taskId of [none, apart, external])
      await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId, actor: ACTOR });
    expect(await reasonOf(none)).toBeNull();
  });

  it('shows no task of another workspace', async () => {
    const id = await world.send(agent);
    await expect(world.get(agent, id, 'other')).rejects.toMatchObject({ code: 'TASK.NOT_FOUND' });
    expect((await agent.tasks.listTasks({ workspace: 'other', limit: 10, offset: 0 })).tasks).toEqual([]);
  });
});

describe('a full queue', () => {
  // @shows M4 agents-A10
  it('refuses further tasks with the time of the next try', async () => {
    const small = world.process(configWith({ main: [] }), { maxOpenTasks: 3 });
    const workspace = 'crowded';
    const send = () => world.send(small, { capabilities: ['none'] }, { workspace });
    const results = await Promise.allSettled(Array.from({ length: 8 }, send));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    await expect(send()).rejects.toMatchObject({
      code: 'TASK.QUEUE_FULL',
      kind: 'exhausted',
      data: { retryAfterSeconds: expect.any(Number) },
    });
    await small.stop();
  });
});
