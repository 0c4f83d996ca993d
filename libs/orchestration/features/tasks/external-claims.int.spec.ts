import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { agentInboxStream, taskLease } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import { WORKSPACE, until } from '@antiphon/agent-features/testing/agent-world';
import { ACTOR, WORKER, createTasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import type { TasksProcess, TasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import { letTimePass } from '@antiphon/testing/waits';

jest.setTimeout(60_000);

let world: TasksWorld;
let agent: TasksProcess;
beforeAll(async () => {
  world = await createTasksWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
});
afterAll(() => world?.close());

const external = { worker: 'external' as const, retry: { backoffMs: 20 } };
const claim = async (capabilities: string[] = [], actor = WORKER, process = agent) =>
  (await process.claims.claimTask({ workspace: WORKSPACE, capabilities, actor })).claim;
const renew = (taskId: string, epoch: number, actor = WORKER) =>
  agent.claims.renewTask({ workspace: WORKSPACE, taskId, epoch, actor });
const finish = (
  taskId: string,
  epoch: number,
  outcome: 'completed' | 'failed' | 'released' = 'completed',
  actor = WORKER,
) => agent.claims.finishTask({ workspace: WORKSPACE, taskId, epoch, outcome, text: `by ${epoch}`, actor });
const historyOf = async (taskId: string) => (await world.history()).get(`task-${taskId}`) ?? [];

describe('an external worker', () => {
  it('with the key of an agent claims no task, also not one of another agent', async () => {
    const id = await world.send(agent, { ...external, prompt: 'secret' });
    await expect(claim([], { ...WORKER, agentId: 'sibling' } as never)).rejects.toMatchObject({
      kind: 'forbidden',
      code: 'AGENT.NOT_ALLOWED',
    });
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: id, actor: ACTOR });
  });

  // @shows agents-A12
  it('claims a task that it can do, and completes it without a model', async () => {
    const id = await world.send(agent, { ...external, prompt: 'build', capabilities: ['rust'] });
    expect(await claim(['prose'])).toBeNull();
    const claimed = await claim(['rust', 'prose']);
    expect(claimed).toMatchObject({ prompt: 'build', epoch: 1, task: { id, state: 'running' } });
    expect(await claim(['rust'])).toBeNull();
    const { task } = await finish(id, 1);
    expect(task).toMatchObject({ state: 'completed', result: { text: 'by 1' } });
    // A repeated result after a lost response.
    expect((await finish(id, 1)).task).toEqual(task);
    expect(world.agents.model.requests).toEqual([]);
  });

  it('gets the same claim for a repeated key, in any process, and no second task', async () => {
    const other = world.process();
    const ids = await Promise.all(Array.from({ length: 5 }, () => world.send(agent, external)));
    const keyed = async (process: TasksProcess, idempotencyKey: string) => {
      const request = { workspace: WORKSPACE, capabilities: [], actor: WORKER, idempotencyKey };
      return (await process.claims.claimTask(request)).claim;
    };
    const claims = await Promise.all([agent, other, agent, other].map((process) => keyed(process, 'k')));
    expect(new Set(claims.map((one) => one?.task.id)).size).toBe(1);
    const taskId = claims[0]?.task.id ?? '';
    expect(ids).toContain(taskId);
    const { claim: foreign } = await other.claims.claimTask({
      ...{ workspace: WORKSPACE, capabilities: [], idempotencyKey: 'k' },
      actor: { ...WORKER, caller: 'key/another' },
    });
    expect(foreign?.task.id).not.toBe(taskId);
    await finish(taskId, 1);
    await expect(keyed(agent, 'k')).rejects.toMatchObject({ code: 'TASK.CLAIM_LOST' });
    for (const id of ids) await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: id, actor: ACTOR });
    await other.stop();
  });

  it('may claim later with the key of a request that found no task', async () => {
    const request = { workspace: WORKSPACE, capabilities: [], actor: WORKER, idempotencyKey: 'none yet' };
    expect(await agent.claims.claimTask(request)).toEqual({ claim: null });
    const id = await world.send(agent, external);
    for (let i = 0; i < 2; i++)
      expect((await agent.claims.claimTask(request)).claim).toMatchObject({ task: { id }, epoch: 1 });
    await finish(id, 1);
  });

  it('gets each task once, however many workers claim in several processes', async () => {
    const other = world.process();
    const ids = await Promise.all(Array.from({ length: 40 }, () => world.send(agent, external)));
    const claimed: string[] = [];
    const work = async (process: TasksProcess): Promise<void> => {
      for (;;) {
        const next = await claim([], WORKER, process);
        if (!next) return;
        claimed.push(next.task.id);
        await finish(next.task.id, next.epoch);
      }
    };
    const everyone = [agent, agent, agent, other, other, other];
    await until(async () => {
      await Promise.all(everyone.map(work));
      return claimed.length >= ids.length;
    });
    expect(claimed.sort()).toEqual([...ids].sort());
    await other.stop();
  });

  it('returns a task without a strike, or fails it with one', async () => {
    const id = await world.send(agent, external);
    await claim();
    expect((await finish(id, 1, 'released')).task).toMatchObject({ state: 'queued', strikes: [] });
    expect((await claim())?.epoch).toBe(2);
    expect((await finish(id, 2, 'failed')).task).toMatchObject({ state: 'queued', strikes: ['by 2'] });
    const third = await until(() => claim());
    expect((await finish(id, third.epoch, 'completed')).task.state).toBe('completed');
  });

  // @shows agents-A8
  it('keeps its task while it renews the claim', async () => {
    const id = await world.send(agent, external);
    await claim();
    const end = Date.now() + 8_000;
    while (Date.now() < end) {
      await renew(id, 1);
      await letTimePass(1_000);
    }
    expect((await historyOf(id)).map(({ type }) => type)).toEqual([
      'TaskQueued',
      'TaskAssigned',
      'TaskBegun',
    ]);
    await finish(id, 1);
  });

  // @shows agents-A8
  it('loses its task within 10 s of its last renewal, and its late result stays as evidence', async () => {
    const id = await world.send(agent, external);
    await claim();
    const lostAt = Date.now();
    await until(async () => (await world.get(agent, id)).state === 'queued', 15_000);
    expect(Date.now() - lostAt).toBeLessThan(10_000);
    await expect(renew(id, 1)).rejects.toMatchObject({ code: 'TASK.CLAIM_LOST', kind: 'conflict' });
    const second = await claim([], { ...WORKER, caller: 'key/second' });
    expect(second?.epoch).toBe(2);
    await expect(finish(id, 1)).rejects.toMatchObject({ code: 'TASK.CLAIM_LOST' });
    const done = await finish(id, 2, 'completed', { ...WORKER, caller: 'key/second' });
    expect(done.task).toMatchObject({ state: 'completed', strikes: [], result: { text: 'by 2' } });
    expect((await historyOf(id)).map(({ type }) => type)).toEqual([
      'TaskQueued',
      'TaskAssigned',
      'TaskBegun',
      'TaskRequeued',
      'TaskAssigned',
      'TaskBegun',
      'TaskResultRefused',
      'TaskEnded',
    ]);
  });

  it('has no task any more once it is cancelled, and cannot end that of another worker', async () => {
    const id = await world.send(agent, external);
    await claim();
    const thief = { ...WORKER, caller: 'key/thief' };
    await expect(renew(id, 1, thief)).rejects.toMatchObject({ code: 'TASK.CLAIM_LOST' });
    await expect(finish(id, 1, 'completed', thief)).rejects.toMatchObject({ code: 'TASK.CLAIM_LOST' });
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: id, actor: ACTOR });
    await expect(renew(id, 1)).rejects.toMatchObject({ code: 'TASK.CLAIM_LOST' });
    expect((await world.get(agent, id)).state).toBe('cancelled');
  });

  it('has a lease for its claim', async () => {
    const id = await world.send(agent, external);
    const claimed = await claim();
    const taken = await world.agents.leases.acquire(WORKSPACE, taskLease(id), 'other', 1_000);
    expect(taken.acquired).toBe(false);
    await finish(id, claimed?.epoch ?? 0);
  });
});

// @shows N4
describe('the end of a delegated task', () => {
  it('is in the inbox of the agent that delegated it, once, in the same append', async () => {
    const id = await world.send(agent, external, { agentId: 'main' });
    await claim();
    await finish(id, 1);
    const inbox = await world.agents.store.readStream(
      WORKSPACE,
      agentInboxStream(agentUuidOf(WORKSPACE, 'main')),
    );
    const told = inbox.filter(({ data }) => (data['content'] as { taskId?: string }).taskId === id);
    expect(told.map(({ type, data }) => [type, data['type']])).toEqual([['AgentMessageSent', 'TaskEnded']]);
    const end = (await world.agents.store.readStream(WORKSPACE, `task-${id}`)).at(-1);
    expect(Math.abs((end?.position ?? 0) - (told[0]?.position ?? 0))).toBe(1);
    expect(told[0]?.data['causeId']).toBe(end?.eventId);
  });
});
