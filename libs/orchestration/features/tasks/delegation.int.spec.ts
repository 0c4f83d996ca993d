import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { TurnRequested } from '@antiphon/contracts/agent';
import type { ModelRequest } from '@antiphon/providers-domain';
import { acrossWorkspaces } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import { until } from '@antiphon/agent-features/testing/agent-world';
import { configWith, createTasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import type { TasksProcess, TasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { letTimePass } from '@antiphon/testing/waits';
import { Delegation } from './delegation.js';

jest.setTimeout(120_000);

let world: TasksWorld;
beforeAll(async () => {
  world = await createTasksWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterAll(() => world?.close());

const AGENTS = configWith({ one: [], two: [], three: [], four: [] });
const asked = ({ messages }: ModelRequest): string =>
  messages.flatMap((message) => (message.role === 'user' ? [message.text] : [])).at(-1) ?? '';
let processes: TasksProcess[] = [];
const start = (): TasksProcess => {
  const process = world.process(AGENTS);
  processes.push(process);
  return process;
};
const kill = (process: TasksProcess): void => {
  processes = processes.filter((each) => each !== process);
  process.kill();
};
beforeEach(() => {
  world.agents.model.reply = async (request) => says(asked(request));
});
afterEach(async () => {
  await Promise.all(processes.map((process) => process.stop()));
  processes = [];
});

const leader = (): Promise<TasksProcess> =>
  until(() => processes.find(({ get }) => get(Delegation).isLeader()));

/** Returns the number of turns of each task session. */
const turnsBySession = async (): Promise<number[]> => {
  const { rows } = await acrossWorkspaces(world.agents.pool).query<{ turns: string }>(
    `select count(*) filter (where e.type = '${TurnRequested.shape.type.value}') as turns
     from events s join events e on e.workspace = s.workspace and e.stream_id = s.stream_id
     where s.type = 'SessionStarted' and s.data ->> 'sessionKey' like '%:task:%' group by s.stream_id`,
  );
  return rows.map(({ turns }) => Number(turns));
};

describe('a process that assigns tasks and dies', () => {
  it('is replaced within 10 s, and the turn of its task is not repeated', async () => {
    start();
    const dying = await leader();
    const surviving = start();
    const begun = Promise.withResolvers<void>();
    const killed = Promise.withResolvers<void>();
    // The turn runs in either process.
    world.agents.model.reply = async (request) => {
      begun.resolve();
      await killed.promise;
      return says(asked(request));
    };
    const id = await world.send(surviving, { prompt: 'long work' });
    await begun.promise;
    kill(dying);
    const killedAt = Date.now();
    killed.resolve();
    const task = await world.ended(surviving, id, 20_000);
    expect(Date.now() - killedAt).toBeLessThan(10_000);
    expect(task).toMatchObject({ state: 'completed', result: { text: 'long work' } });
    expect(new Set(await turnsBySession())).toEqual(new Set([1]));
  });

  it('loses no task and repeats none, however often it dies', async () => {
    start();
    await leader();
    const sender = start();
    const ids: string[] = [];
    for (let round = 0; round < 3; round++) {
      const sent = Array.from({ length: 20 }, (_, index) =>
        world.send(sender, { prompt: `${round}/${index}` }),
      );
      ids.push(...(await Promise.all(sent)));
      const dying = await leader();
      if (dying !== sender) kill(dying);
      start();
    }
    for (const id of ids) expect((await world.ended(sender, id, 60_000)).state).toBe('completed');
    const history = await world.history();
    for (const id of ids) {
      const types = (history.get(`task-${id}`) ?? []).map(({ type }) => type);
      expect(types.filter((type) => type === 'TaskEnded')).toHaveLength(1);
      expect(types.filter((type) => type === 'TaskAssigned')).toHaveLength(
        1 + types.filter((type) => type === 'TaskRequeued').length,
      );
    }
    expect(new Set(await turnsBySession())).toEqual(new Set([1]));
  });
});

describe('the turns of tasks', () => {
  // @shows M4
  it('run in every process, and each once', async () => {
    start();
    await leader();
    start();
    start();
    const held: string[] = [];
    let most: number[] = [];
    world.agents.model.reply = async (request) => {
      held.push(asked(request));
      await letTimePass(30);
      const working = processes.map(({ runtime }) => runtime.working());
      most = working.map((count, index) => Math.max(count, most[index] ?? 0));
      return says(asked(request));
    };
    const [sender] = processes;
    const sent = Array.from({ length: 40 }, (_, index) => world.send(sender!, { prompt: `spread/${index}` }));
    for (const id of await Promise.all(sent))
      expect((await world.ended(sender!, id)).state).toBe('completed');
    expect(new Set(held).size).toBe(40);
    expect(held).toHaveLength(40);
    for (const count of most) expect(count).toBeGreaterThan(0);
  });
});

describe('workspaces that share the agents', () => {
  it('get the same share of the slots', async () => {
    const process = world.process(AGENTS, { times: { maxRunning: 4 } });
    processes.push(process);
    const order: string[] = [];
    world.agents.model.reply = async (request) => {
      order.push(asked(request).split('/')[0] ?? '');
      await letTimePass(20);
      return says('done');
    };
    const workspaces = ['many', 'few-a', 'few-b'];
    const sent = workspaces.flatMap((workspace) =>
      Array.from({ length: workspace === 'many' ? 40 : 10 }, (_, index) =>
        world.send(process, { prompt: `${workspace}/${index}` }, { workspace }),
      ),
    );
    await Promise.all(sent);
    await until(() => order.length >= 60, 30_000);
    const first = order.slice(5, 29);
    for (const workspace of workspaces)
      expect(first.filter((name) => name === workspace).length).toBeGreaterThanOrEqual(5);
  });
});
