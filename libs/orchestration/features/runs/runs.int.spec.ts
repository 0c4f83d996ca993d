import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelRequest } from '@antiphon/providers-domain';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, until } from '@antiphon/agent-features/testing/agent-world';
import { createRunsWorld } from '@antiphon/agent-features/testing/runs-world';
import type { RunsProcess, RunsWorld } from '@antiphon/agent-features/testing/runs-world';
import { hangs, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(60_000);

let world: RunsWorld;
let agent: RunsProcess;
beforeAll(async () => {
  world = await createRunsWorld(
    await createTestDatabase(),
    process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
    process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
  );
  agent = world.process();
  await until(() => agent.worker.isPolling(), 30_000);
});
afterAll(() => world?.close());

const asked = ({ messages }: ModelRequest): string =>
  messages.flatMap((message) => (message.role === 'user' ? [message.text] : [])).at(-1) ?? '';
const prompts = (): string[] => world.agents.model.requests.map(asked);

beforeEach(() => {
  world.agents.model.requests.length = 0;
  world.agents.model.reply = async (request) => says(`done(${asked(request).trim()})`);
});

const eventsOf = async (runId: string) => world.agents.store.readStream(WORKSPACE, `run-${runId}`);
const example = readFileSync(
  fileURLToPath(new URL('../../../../examples/workflows/plan-implement-review.yaml', import.meta.url)),
  'utf8',
);

const DIAMOND = `
name: diamond
nodes:
  - { id: top, agent: main, prompt: start }
  - { id: left, agent: main, needs: [top], prompt: 'left of {{nodes.top.output}}' }
  - { id: right, agent: second, needs: [top], prompt: 'right of {{nodes.top.output}}' }
  - { id: bottom, agent: main, needs: [left, right], prompt: '{{nodes.left.output}} + {{nodes.right.output}}' }
`;

describe('a run', () => {
  it('runs the example in order, with the outputs of parents in each prompt', async () => {
    world.agents.model.reply = async (request) =>
      says(`[${/^(Write|Implement|Review)/.exec(asked(request))?.[0]}]`);
    const run = await world.ended(agent, await world.start(agent, example, { goal: 'a parser' }));
    expect(run.status).toBe('completed');
    expect(run.tasks.map(({ id, output }) => [id, output])).toEqual([
      ['plan', '[Write]'],
      ['implement', '[Implement]'],
      ['review', '[Review]'],
    ]);
    expect(prompts()).toEqual([
      expect.stringContaining('Goal: a parser'),
      expect.stringContaining('Plan: [Write]'),
      expect.stringMatching(/Plan: \[Write\]\s+Work: \[Implement\]/),
    ]);
    // A node has no heartbeat, but its turn is work of its agent.
    const last = await world.agents.events(run.tasks.at(-1)?.sessionId ?? '');
    const endedAt = last.find(({ type }) => type === 'TurnCompleted')?.recordedAt;
    const agentId = run.tasks.at(-1)?.agent;
    await until(async () => {
      const { agents } = await agent.runtime.listAgents(WORKSPACE);
      return agents.find(({ id }) => id === agentId)?.lastTurnAt === endedAt;
    });
    const sessions = run.tasks.map(({ sessionId }) => sessionId);
    expect(new Set(sessions).size).toBe(3);
  });

  it('runs ready tasks in parallel', async () => {
    let atWork = 0;
    let release: () => void = () => undefined;
    const both = new Promise<void>((resolve) => (release = resolve));
    world.agents.model.reply = async (request) => {
      if (/^(left|right)/.test(asked(request)) && ++atWork === 2) release();
      if (/^(left|right)/.test(asked(request))) await both;
      return says(asked(request));
    };
    const run = await world.ended(agent, await world.start(agent, DIAMOND));
    expect(run.tasks.at(-1)?.output).toBe('left of start + right of start');
  });

  it('is found in Temporal by id and search attributes, which contain no text', async () => {
    const runId = await world.start(agent, DIAMOND.replace('prompt: start', 'prompt: SECRETWORD'));
    const run = await world.ended(agent, runId);
    const handle = world.temporal.workflow.getHandle(`run/${runId}`);
    await handle.result();
    expect((await handle.describe()).status.name).toBe('COMPLETED');
    const bottom = run.tasks.at(-1)?.sessionId;
    await until(async () => {
      const query = `AntiphonWorkspace="default" AND AntiphonSession="${bottom}" AND AntiphonAgent="main"`;
      for await (const { workflowId } of world.temporal.workflow.list({ query }))
        return workflowId === `run/${runId}`;
      return false;
    });
    const history = JSON.stringify(await handle.fetchHistory());
    const decoded = history.replace(/"data":"([A-Za-z0-9+/=]+)"/g, (_, data: string) =>
      Buffer.from(data, 'base64').toString('utf8'),
    );
    expect(decoded).toContain('bottom');
    expect(decoded).not.toMatch(/SECRETWORD|done\(/);
    expect(run.tasks[0]?.output).toBe('done(SECRETWORD)');
  });

  it('publishes its events once, in order', async () => {
    const runId = await world.start(agent, DIAMOND);
    await world.ended(agent, runId);
    const types = (await eventsOf(runId)).map(({ type }) => type);
    expect(types.slice(0, 4)).toEqual(['RunStarted', 'TaskReady', 'TaskStarted', 'TaskCompleted']);
    expect(types.filter((type) => type === 'TaskCompleted')).toHaveLength(4);
    expect(types.at(-1)).toBe('RunCompleted');
  });
});

const failure = () =>
  new ModelFailure({ reason: 'provider_error', message: 'no', dispatched: true, retryable: false });

describe('a task whose turn fails', () => {
  it('is retried in another session after a retryable failure', async () => {
    world.agents.model.reply = async (request, _sink, call) => {
      if (call === 1) throw failure();
      return says(asked(request));
    };
    const runId = await world.start(agent, 'name: r\nnodes: [{ id: a, agent: main, prompt: hi }]');
    const run = await world.ended(agent, runId);
    expect(run).toMatchObject({ status: 'completed', tasks: [{ attempt: 2, output: 'hi', error: null }] });
    const started = (await eventsOf(runId)).filter(({ type }) => type === 'TaskStarted');
    expect(new Set(started.map(({ data }) => data['sessionId'])).size).toBe(2);
  });

  it('stops only the tasks that need it', async () => {
    world.agents.model.reply = async (request) => {
      if (asked(request).startsWith('left')) throw failure();
      return says(asked(request));
    };
    const source = DIAMOND.replace('id: left, agent: main', 'id: left, agent: main, attempts: 1');
    const run = await world.ended(agent, await world.start(agent, source));
    expect(run.status).toBe('failed');
    expect(run.tasks.map(({ id, status }) => [id, status])).toEqual([
      ['top', 'completed'],
      ['left', 'failed'],
      ['right', 'completed'],
      ['bottom', 'skipped'],
    ]);
    expect(run.tasks[1]?.error?.code).toBe('PROVIDER.ERROR');
  });
});

describe('the cancel of a run', () => {
  it('cancels its running turns, and starts no more', async () => {
    let begun: () => void = () => undefined;
    const atWork = new Promise<void>((resolve) => (begun = resolve));
    world.agents.model.reply = hangs('half', () => begun());
    const runId = await world.start(agent, DIAMOND);
    await atWork;
    await until(async () => (await world.view(agent, runId)).tasks[0]?.status === 'running');
    const cancel = () => agent.cancelRun.handle({ workspace: WORKSPACE, caller: 'spec', runId });
    expect(await cancel()).toEqual({ cancelled: true, status: 'cancelling' });
    const run = await world.ended(agent, runId);
    expect(run.status).toBe('cancelled');
    expect(run.tasks.map(({ status }) => status)).toEqual(['cancelled', 'skipped', 'skipped', 'skipped']);
    expect(await world.agents.types(run.tasks[0]?.sessionId ?? '')).toContain('TurnCancelled');
    expect(await cancel()).toEqual({ cancelled: false, status: 'cancelled' });
    await world.temporal.workflow.getHandle(`run/${runId}`).result();
  });
});

describe('the reconciler', () => {
  it('starts an open run that Temporal does not have', async () => {
    const deaf = world.process({ server: undefined });
    const runId = await world.start(deaf, DIAMOND);
    await until(async () =>
      (await deaf.queries.listRuns({ workspace: WORKSPACE, limit: 1 })).runs.some(({ id }) => id === runId),
    );
    await world.temporal.schedule.getHandle(`${world.taskQueue}/reconcile-runs`).trigger();
    expect((await world.ended(deaf, runId)).status).toBe('completed');
    await deaf.stop();
  });

  it('continues a run from the log after its Temporal workflow was lost', async () => {
    let begun: () => void = () => undefined;
    const atWork = new Promise<void>((resolve) => (begun = resolve));
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    world.agents.model.reply = async (request) => {
      if (asked(request).startsWith('left')) {
        begun();
        await released;
      }
      return says(asked(request));
    };
    const runId = await world.start(agent, DIAMOND);
    await atWork;
    await world.temporal.workflow.getHandle(`run/${runId}`).terminate('lost');
    await world.temporal.schedule.getHandle(`${world.taskQueue}/reconcile-runs`).trigger();
    release();
    const run = await world.ended(agent, runId);
    expect(run.tasks.map(({ output, attempt }) => [output, attempt])).toEqual([
      ['start', 1],
      ['left of start', 1],
      ['right of start', 1],
      ['left of start + right of start', 1],
    ]);
    expect(prompts()).toHaveLength(4);
  });
});

describe('a task that waits', () => {
  it('does not delay short activities', async () => {
    const other = await createRunsWorld(
      await createTestDatabase(),
      process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
      process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
    );
    try {
      const narrow = other.process({ capacity: { short: 1, tasks: 1 } });
      await until(() => narrow.worker.isPolling(), 30_000);
      let begun: () => void = () => undefined;
      const atWork = new Promise<void>((resolve) => (begun = resolve));
      other.agents.model.reply = async (request, sink, call) => {
        begun();
        return hangs()(request, sink, call);
      };
      await other.start(narrow, DIAMOND);
      await atWork;
      const sweep = { workflowId: `sweep-${other.taskQueue}`, taskQueue: other.taskQueue };
      await other.temporal.workflow.execute('sweep', { ...sweep, args: [{ what: 'sweepTurns' }] });
    } finally {
      await other.close();
    }
  });
});

describe('a stopping worker', () => {
  it('leaves its tasks to the next worker, and their turns continue', async () => {
    const other = world.process();
    await until(() => other.worker.isPolling());
    let begun: () => void = () => undefined;
    const atWork = new Promise<void>((resolve) => (begun = resolve));
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    world.agents.model.reply = async (request) => {
      begun();
      await released;
      return says(asked(request));
    };
    const runId = await world.start(other, DIAMOND);
    await atWork;
    const stopping = other.worker.stop();
    await stopping;
    release();
    const run = await world.ended(agent, runId);
    expect(run.status).toBe('completed');
    expect(prompts()).toHaveLength(4);
    await other.stop();
  });
});

describe('a saved workflow', () => {
  const save = (source: string, more = {}) =>
    agent.workflows.save({ workspace: WORKSPACE, caller: 'spec', source, draft: false, ...more });
  const get = (workflowId: string) => agent.queries.getWorkflow({ workspace: WORKSPACE, workflowId });

  it('passes ready, running and completed, and its next version is ready', async () => {
    const { id, status, order } = await save(DIAMOND);
    expect([status, order]).toEqual(['ready', ['top', 'left', 'right', 'bottom']]);
    const request = { workspace: WORKSPACE, caller: 'spec', what: { workflowId: id }, inputs: {} };
    const { runId } = await agent.startRun.handle({ ...request, idempotencyKey: 'once' });
    expect(await agent.startRun.handle({ ...request, idempotencyKey: 'once' })).toEqual({
      runId,
      joined: true,
    });
    await world.ended(agent, runId);
    expect(await get(id)).toMatchObject({ status: 'completed', lastRunId: runId });
    expect(await save(DIAMOND, { workflowId: id })).toMatchObject({ status: 'ready', version: 2 });
    const events = await world.agents.store.readStream(WORKSPACE, `workflow-${id}`);
    expect(events.map(({ type }) => type).slice(0, 5)).toEqual([
      'WorkflowSaved',
      'WorkflowValidationStarted',
      'WorkflowValidated',
      'WorkflowRunStarted',
      'WorkflowRunEnded',
    ]);
  });

  it('is not saved over a version that its editor has not seen, unless nothing differs', async () => {
    const { id } = await save(DIAMOND);
    const other = DIAMOND.replace(/^name: .*/m, 'name: other');
    const mine = { workflowId: id, version: 1, idempotencyKey: 'mine' };
    expect(await save(other, mine)).toMatchObject({ name: 'other', version: 2 });
    expect(await save(other, mine)).toMatchObject({ name: 'other', version: 2 });
    await expect(save(DIAMOND, { workflowId: id, version: 1 })).rejects.toMatchObject({
      code: 'WORKFLOW.VERSION_CONFLICT',
      data: { version: 2 },
    });
    expect(await get(id)).toMatchObject({ name: 'other', version: 2 });
  });

  it('is rejected with the path of its cycle, or saved as a draft that cannot start', async () => {
    const circle =
      'name: c\nnodes: [{id: a, agent: main, prompt: x, needs: [b]}, {id: b, agent: main, prompt: x, needs: [a]}]';
    await expect(save(circle)).rejects.toMatchObject({
      code: 'WORKFLOW.CYCLE',
      message: expect.stringContaining('a -> b -> a'),
      data: { path: ['a', 'b', 'a'] },
    });
    const draft = await save(circle, { draft: true });
    expect(draft.status).toBe('draft');
    const judged = await agent.workflows.validate({
      workspace: WORKSPACE,
      caller: 'spec',
      workflowId: draft.id,
    });
    expect(judged).toMatchObject({ status: 'draft', problem: { code: 'WORKFLOW.CYCLE' } });
    const start = { workspace: WORKSPACE, caller: 'spec', what: { workflowId: draft.id }, inputs: {} };
    await expect(agent.startRun.handle(start)).rejects.toMatchObject({ code: 'WORKFLOW.NOT_READY' });
  });

  it('is listed with its current state until it is deleted', async () => {
    const { id } = await save(DIAMOND.replace('diamond', 'listed'));
    const listed = async () =>
      (await agent.queries.listWorkflows({ workspace: WORKSPACE, limit: 200 })).workflows.find(
        (workflow) => workflow.id === id,
      );
    expect(await until(listed)).toMatchObject({ name: 'listed', status: 'ready', nodes: 4, version: 1 });
    await agent.workflows.remove({ workspace: WORKSPACE, caller: 'spec', workflowId: id });
    await expect(get(id)).rejects.toMatchObject({ code: 'WORKFLOW.NOT_FOUND' });
    await until(async () => (await listed()) === undefined);
  });
});
