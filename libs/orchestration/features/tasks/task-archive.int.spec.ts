import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE } from '@antiphon/agent-features/testing/agent-world';
import { createArchiveWorld, rulesOf } from '@antiphon/agent-features/testing/archive-world';
import type { ArchiveWorld } from '@antiphon/agent-features/testing/archive-world';
import { ACTOR, configWith, createTasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import type { TasksProcess, TasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { TaskStreams } from './task-streams.js';

jest.setTimeout(60_000);

let world: TasksWorld;
let agent: TasksProcess;
let archives: ArchiveWorld;
beforeAll(async () => {
  const database = await createTestDatabase();
  world = await createTasksWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.agents.model.reply = async () => says('done');
  agent = world.process(configWith({ main: [] }));
  archives = await createArchiveWorld(database);
});
afterAll(async () => {
  await archives?.close();
  await world?.close();
});

const typesOf = async (taskId: string): Promise<string[]> =>
  (await world.agents.store.readStream(WORKSPACE, `task-${taskId}`)).map(({ type }) => type);

describe('the archive of tasks', () => {
  it('takes tasks that have ended, which stay readable and listed, and keeps open ones', async () => {
    const [done, open] = [await world.send(agent), await world.send(agent, { capabilities: ['cobol'] })];
    const ended = await world.ended(agent, done);
    const cancelled = await world.send(agent, { capabilities: ['cobol'] });
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: cancelled, actor: ACTOR });
    const last = await world.send(agent, { capabilities: ['cobol'] });
    await archives.archive(rulesOf('task'));
    for (const taskId of [done, cancelled])
      await expect(typesOf(taskId)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
    for (const taskId of [open, last]) expect(await typesOf(taskId)).toEqual(['TaskQueued']);
    expect(await world.get(agent, done)).toEqual(ended);
    const again = await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: done, actor: ACTOR });
    expect(again.task).toEqual(ended);
    const { tasks } = await agent.tasks.listTasks({ workspace: WORKSPACE, limit: 10, offset: 0 });
    expect(tasks.map(({ id, state }) => [id, state])).toEqual([
      [last, 'queued'],
      [cancelled, 'cancelled'],
      [open, 'queued'],
      [done, 'completed'],
    ]);
    // Its budget is in the archive, and would not limit a task below it.
    await expect(world.send(agent, { parentTask: done })).rejects.toMatchObject({
      code: 'TASK.PARENT_ARCHIVED',
    });
    // Another process starts without the archived tasks, and restored archives complete them.
    await world.process(configWith({ main: [] })).stop();
    await archives.restoreAll();
    expect(await typesOf(done)).toEqual(['TaskQueued', 'TaskAssigned', 'TaskBegun', 'TaskEnded']);
  });

  it('refuses to take the events of a task that has not ended', async () => {
    const taskId = await world.send(agent, { capabilities: ['cobol'] });
    await world.send(agent, { capabilities: ['cobol'] });
    // A rule that calls every task at rest: the archiver's own check refuses it.
    const pairs = [{ begins: ['TaskQueued'], ends: ['TaskQueued'] }];
    const open = { category: 'task', retainedPrefix: null, pairs };
    await expect(archives.archive([open])).rejects.toHaveProperty(
      'cause.message',
      expect.stringContaining('is not at rest'),
    );
    expect(await typesOf(taskId)).toEqual(['TaskQueued']);
  });

  it('keeps a task that has ended while a task below it is open, so that its budget limits that', async () => {
    const budget = { tokens: 1_000, microUsd: null };
    const parent = await world.send(agent, { budget });
    await world.ended(agent, parent);
    const child = await world.send(agent, { parentTask: parent });
    await world.ended(agent, child);
    const open = await world.send(agent, { parentTask: child, capabilities: ['cobol'] });
    await world.send(agent, { capabilities: ['cobol'] });
    await archives.archive(rulesOf('task'));
    for (const taskId of [parent, child]) expect(await typesOf(taskId)).toContain('TaskEnded');
    const { state } = await agent.get(TaskStreams).read(WORKSPACE, open);
    expect(state.queued?.parentTaskId).toBe(child);
    // A rule without this condition: the archiver's own check refuses it.
    const blind = rulesOf('task').map(({ staysIf: _, ...rule }) => rule);
    await expect(archives.archive(blind)).rejects.toHaveProperty(
      'cause.message',
      expect.stringContaining('has open tasks below it'),
    );
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: open, actor: ACTOR });
    await world.send(agent, { capabilities: ['cobol'] });
    await archives.archive(rulesOf('task'));
    for (const taskId of [parent, child, open])
      await expect(typesOf(taskId)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
  });
});
