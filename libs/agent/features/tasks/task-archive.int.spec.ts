import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { REST_RULES } from '@antiphon/contracts/events';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { archiveEvents, listArchives, restoreArchive } from '@antiphon/event-store';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { WORKSPACE, until } from '../testing/agent-world.js';
import { ACTOR, configWith, createTasksWorld } from '../testing/tasks-world.js';
import type { TasksProcess, TasksWorld } from '../testing/tasks-world.js';
import { says } from '../testing/test-model.js';

jest.setTimeout(60_000);

let database: TestDatabase;
let world: TasksWorld;
let agent: TasksProcess;
let admin: pg.Pool;
let proposer: pg.Pool;
let archiver: pg.Pool;
let folder: string;
beforeAll(async () => {
  database = await createTestDatabase();
  world = await createTasksWorld(database, process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.agents.model.reply = async () => says('done');
  agent = world.process(configWith({ main: [] }));
  const open = (url: string) =>
    createPool({ url, applicationName: 'spec', max: 2, workspace: ALL_WORKSPACES });
  [admin, proposer, archiver] = [
    open(database.url),
    open(database.urlFor('agent')),
    open(database.urlFor('archiver')),
  ];
  folder = await mkdtemp(join(tmpdir(), 'antiphon-tasks-'));
  await admin.query(`insert into log_roots values (1, 'root', 1000000, '\\x00', '{}', now())`);
});
afterAll(async () => {
  await Promise.all([admin, proposer, archiver].map((pool) => pool?.end()));
  await world?.close();
  await rm(folder, { recursive: true });
});

const typesOf = async (taskId: string): Promise<string[]> =>
  (await world.agents.store.readStream(WORKSPACE, `task-${taskId}`)).map(({ type }) => type);

/** Waits until all projections have seen the whole log. */
const projected = () =>
  until(async () => {
    const { rowCount } = await admin.query(
      `select from projection_checkpoints having min(position) < (select max(position) from events)`,
    );
    return rowCount === 0;
  });
const archive = (rules = REST_RULES.filter(({ category }) => category === 'task')) =>
  archiveEvents({ pool: proposer, archiver, folder, rules, before: { position: 900_000 } });

describe('the archive of tasks', () => {
  it('takes tasks that have ended, which stay readable and listed, and keeps open ones', async () => {
    const [done, open] = [await world.send(agent), await world.send(agent, { capabilities: ['cobol'] })];
    const ended = await world.ended(agent, done);
    const cancelled = await world.send(agent, { capabilities: ['cobol'] });
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: cancelled, actor: ACTOR });
    const last = await world.send(agent, { capabilities: ['cobol'] });
    await projected();
    await archive();
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
    // Another process starts without the archived tasks, and restored archives complete them.
    await world.process(configWith({ main: [] })).stop();
    for (const { archiveId } of await listArchives(admin)) await restoreArchive(admin, folder, archiveId);
    expect(await typesOf(done)).toEqual(['TaskQueued', 'TaskAssigned', 'TaskBegun', 'TaskEnded']);
  });

  it('refuses to take the events of a task that has not ended', async () => {
    const taskId = await world.send(agent, { capabilities: ['cobol'] });
    await world.send(agent, { capabilities: ['cobol'] });
    // A rule that calls every task at rest: the archiver's own check refuses it.
    const pairs = [{ begins: ['TaskQueued'], ends: ['TaskQueued'] }];
    const open = { category: 'task', retainedPrefix: null, pairs };
    await projected();
    await expect(archive([open])).rejects.toHaveProperty(
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
    await projected();
    await archive();
    for (const taskId of [parent, child]) expect(await typesOf(taskId)).toContain('TaskEnded');
    const { state } = await agent.tasksRuntime.services.tasks.read(WORKSPACE, open);
    expect(state.queued?.parentTaskId).toBe(child);
    // A rule without this condition: the archiver's own check refuses it.
    const blind = REST_RULES.filter(({ category }) => category === 'task').map(
      ({ staysIf: _, ...rule }) => rule,
    );
    await expect(archive(blind)).rejects.toHaveProperty(
      'cause.message',
      expect.stringContaining('has open tasks below it'),
    );
    await agent.tasks.cancelTask({ workspace: WORKSPACE, taskId: open, actor: ACTOR });
    await world.send(agent, { capabilities: ['cobol'] });
    await projected();
    await archive();
    for (const taskId of [parent, child, open])
      await expect(typesOf(taskId)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
  });
});
