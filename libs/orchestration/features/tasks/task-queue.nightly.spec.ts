import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { acrossWorkspaces } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import { checkFigure, noiseAllowance, percentile, summarizeRatios } from '@antiphon/testing/load';
import { WORKSPACE, newAddress, submitTo, until } from '@antiphon/agent-features/testing/agent-world';
import { WORKER, configWith, createTasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import type { TasksProcess, TasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { letTimePass } from '@antiphon/testing/waits';
import { Delegation } from './delegation.js';

const TASKS = Number(process.env['ANTIPHON_TASKS'] ?? 10_000);
const CLAIMS = Number(process.env['ANTIPHON_TASK_CLAIMS'] ?? 5_000);
const ROUNDS = Number(process.env['ANTIPHON_TASK_ROUNDS'] ?? 12);
const FIRST_KILL_MS = 1_000;
const KILL_EVERY_MS = 6_000;
/** Turns of a block, one after another. */
const BLOCK = 60;
const MAX_ALLOWANCE = 1.3;

const AGENTS = configWith({
  ...Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`a${index}`, ['work']])),
  chat: [],
});

let world: TasksWorld;
let processes: TasksProcess[] = [];
const start = (assigns = true): TasksProcess => {
  const process = world.process(AGENTS, { maxOpenTasks: 20_000 }, { assigns });
  processes.push(process);
  return process;
};
beforeAll(async () => {
  world = await createTasksWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterAll(() => world?.close());
beforeEach(() => {
  world.agents.model.reply = async () => says('done');
});
afterEach(async () => {
  await Promise.all(processes.map((process) => process.stop()));
  processes = [];
});

/** Sends tasks, some at a time. Returns their ids. */
const sendMany = async (process: TasksProcess, count: number, spec: object): Promise<string[]> => {
  const ids: string[] = [];
  while (ids.length < count) {
    const some = Math.min(100, count - ids.length);
    ids.push(...(await Promise.all(Array.from({ length: some }, () => world.send(process, spec)))));
  }
  return ids;
};

/** Counts the ended tasks of the second test. */
const countEnded = async (): Promise<number> => {
  const { rows } = await acrossWorkspaces(world.agents.pool).query<{ ended: string }>(
    `select count(*) as ended from agent_tasks where ended_at is not null and capabilities = '["work"]'`,
  );
  return Number(rows[0]?.ended ?? 0);
};

const cancelAll = async (process: TasksProcess, ids: readonly string[]): Promise<void> => {
  for (let first = 0; first < ids.length; first += 100)
    await Promise.all(
      ids
        .slice(first, first + 100)
        .map((taskId) => process.tasks.cancelTask({ workspace: WORKSPACE, taskId, actor: WORKER })),
    );
};

describe('the queue of tasks', () => {
  // @shows agents-A9
  it('is claimed at 500 tasks a second or more', async () => {
    const process = start();
    await sendMany(process, CLAIMS, { worker: 'external' });
    const claimed: string[] = [];
    const work = async (): Promise<void> => {
      const request = { workspace: WORKSPACE, capabilities: [], actor: WORKER };
      for (;;) {
        const { claim } = await process.claims.claimTask(request);
        if (!claim) return;
        claimed.push(claim.task.id);
      }
    };
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 64 }, work));
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(new Set(claimed).size).toBe(CLAIMS);
    checkFigure({ what: 'tasks: claims a second', value: CLAIMS / seconds, unit: '/s', atLeast: 500 });
    await cancelAll(process, claimed);
  });

  // @shows agents-A8
  it('loses no task and does none twice under kill -9 of its processes', async () => {
    const sender = start(false);
    const others = [start(), start()];
    const ids = await sendMany(sender, TASKS, { capabilities: ['work'] });
    let kills = 0;
    let killAt = Date.now() + FIRST_KILL_MS;
    await until(async () => {
      if (Date.now() > killAt) {
        killAt = Date.now() + KILL_EVERY_MS;
        const dying = others.find(({ get }) => get(Delegation).isLeader());
        if (dying) others.splice(others.indexOf(dying), 1);
        processes = processes.filter((process) => process !== dying);
        dying?.kill();
        if (dying) others.push(start());
        if (dying) kills++;
      }
      await letTimePass(200);
      return (await countEnded()) >= ids.length;
    }, 1_500_000);
    const history = await world.history();
    const events = ids.map((id) => history.get(`task-${id}`) ?? []);
    const twice = events.filter((of) => of.filter(({ type }) => type === 'TaskEnded').length !== 1);
    const failed = events.filter((of) =>
      of.some((event) => event.type === 'TaskEnded' && event.data.status !== 'completed'),
    );
    const { rows } = await acrossWorkspaces(world.agents.pool).query<{ repeated: string }>(
      `select count(*) as repeated from (select e.stream_id from events s
         join events e on e.workspace = s.workspace and e.stream_id = s.stream_id and e.type = 'TurnRequested'
         where s.type = 'SessionStarted' and s.data ->> 'sessionKey' like '%:task:%'
         group by e.stream_id having count(*) > 1) t`,
    );
    checkFigure({ what: `tasks: done twice or stuck of ${TASKS}`, value: twice.length, atMost: 0 });
    checkFigure({ what: 'tasks: failed though their agents work', value: failed.length, atMost: 0 });
    checkFigure({ what: 'tasks: claims with a second turn', value: Number(rows[0]?.repeated), atMost: 0 });
    checkFigure({ what: 'tasks: kills of processes', value: kills, atLeast: 1 });
  });

  // @shows M5 agents-A10
  it('leaves chats as fast as they are without tasks', async () => {
    const process = start();
    const chat = async (): Promise<number> => {
      const durations: number[] = [];
      const address = newAddress('chat');
      for (let turn = 0; turn < BLOCK; turn++) {
        const startedAt = performance.now();
        const { sessionId } = await submitTo(process, { address });
        await world.agents.ended(sessionId, turn + 1);
        durations.push(performance.now() - startedAt);
      }
      return percentile(durations, 0.95);
    };
    await chat();
    const free: number[] = [];
    for (let round = 0; round < 2 * ROUNDS; round++) free.push(await chat());
    // No agent has this capability: the queue stays full.
    const ids = await sendMany(process, TASKS, { capabilities: ['none'] });
    const full: number[] = [];
    for (let round = 0; round < 2 * ROUNDS; round++) full.push(await chat());
    const pairs = (values: readonly number[]): number[] =>
      Array.from({ length: ROUNDS }, (_, index) => (values[2 * index] ?? 0) / (values[2 * index + 1] ?? 1));
    const allowance = noiseAllowance(pairs(free), MAX_ALLOWANCE);
    const ratios = full.map((value, index) => value / (free[index] ?? 1));
    checkFigure({
      what: `tasks: p95 of turns next to ${TASKS} waiting tasks`,
      value: summarizeRatios(ratios).median,
      unit: '×',
      atMost: 1.1 * allowance,
    });
    await cancelAll(process, ids);
  });
});
