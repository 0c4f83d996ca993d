import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { PlanEvent, SessionTarget } from '@antiphon/contracts/agent';
import { inWorkspace } from '@antiphon/database';
import { rejected } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import {
  boxes,
  createPlansWorld,
  doSteps,
  lastUser,
  nextPath,
  PLAN_ACTOR,
  PLAN_CONFIG,
  PLAN_TREE,
  resultsIn,
} from '@antiphon/agent-features/testing/plans-world';
import type { PlansProcess } from '@antiphon/agent-features/testing/plans-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import { ListPlans } from './list-plans.handler.js';
import { PlanStore } from './plan-store.js';

type Call = Parameters<typeof asksFor>[0];
type PlansWorld = ReturnType<typeof createPlansWorld>;

let world: AgentWorld;
let plans: PlansWorld;
let { start, write, readFile, show, run, ended, factsOf } = {} as PlansWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  plans = createPlansWorld(world);
  ({ start, write, readFile, show, run, ended, factsOf } = plans);
}, 60_000);
afterEach(async () => {
  await plans.stopAll();
  await world.stopAll();
});
afterAll(() => world.close(), 30_000);

describe('the list of plans', () => {
  it('has each plan with its steps by path, now and as of a position, and records nothing', async () => {
    const process = start();
    const lists = process.get(ListPlans);
    const request = { workspace: WORKSPACE, limit: 100 };
    const path = nextPath();
    await write(process, path, '# Tides\n\n- [x] Collect\n- [ ] Compare\n');
    await write(process, 'empty.plan.md', 'no step\n');
    const itemOf = async (more: { readonly at?: number } = {}) =>
      (await lists.list({ ...request, ...more })).plans.find((plan) => plan.path === path);
    expect(await itemOf()).toMatchObject({ status: 'open', done: 1, steps: 2, failed: 0, agentId: null });
    expect(await factsOf(path)).toEqual([]);
    await show(process, path);
    expect((await itemOf())?.planId).not.toBeNull();
    const { plans: all, total } = await lists.list(request);
    expect(all.find((plan) => plan.path === 'empty.plan.md')).toMatchObject({
      status: 'invalid',
      planId: null,
    });
    expect(all.map((plan) => plan.path)).toEqual(all.map((plan) => plan.path).sort());
    expect(total).toBe(all.length);
    expect((await lists.list({ ...request, at: 0 })).plans).toEqual([]);
  });
});

describe('a run of a plan', () => {
  // @shows agents-A12
  it('does the steps of a plan that an agent made, one turn each, and ticks a box by its evidence', async () => {
    const path = nextPath();
    const process = start();
    const input = { path, title: 'Tides', steps: ['Collect tables', 'Compare them'] };
    world.model.reply = async (request) =>
      resultsIn(request) === 0 ? asksFor({ name: 'make_plan', input }) : says('made');
    const { sessionId } = await submitTo(process, { address: newAddress() });
    await world.ended(sessionId);
    const first = '# Tides\n\n- [ ] Collect tables <!-- s1 -->\n- [ ] Compare them <!-- s2 -->\n';
    expect(await readFile(process, path)).toBe(first);
    world.model.reply = doSteps;
    await run(process, path);
    expect(await ended(process, path)).toMatchObject({
      status: 'done',
      run: { turns: 2, ended: { reason: 'completed' } },
    });
    expect(await readFile(process, path)).toBe(first.replaceAll('[ ]', '[x]'));
    const facts = await factsOf(path);
    for (const { data } of facts.filter(({ type }) => type === 'PlanStepCompleted')) {
      const { evidence } = data as Extract<PlanEvent, { type: 'PlanStepCompleted' }>['data'];
      const { callId = '', sessionId: by = '' } = evidence.kind === 'tool' ? evidence : {};
      const cited = (await world.events(by)).find(
        (event) => event.data['callId'] === callId && event.type === 'ToolCallCompleted',
      );
      expect(cited?.data['isError']).toBe(false);
    }
    // Each fact that changes the file is one append with it.
    const files = await world.store.readStream(WORKSPACE, `file-tree-${PLAN_TREE}`);
    const written = files.filter(({ data }) => data['path'] === path).map(({ data }) => data['digest']);
    const rendered = facts.flatMap((event) => (event.type === 'PlanFileRendered' ? [event.data.digest] : []));
    expect(rendered).toEqual(written);
  });

  it('is refused to an agent that makes a plan over another, whose file stays', async () => {
    const path = nextPath();
    const process = start();
    await write(process, path, '# Mine\n\n- [ ] a\n');
    const mine = await show(process, path);
    const text = await readFile(process, path);
    const input = { path, title: 'Other', steps: ['b'] };
    world.model.reply = async (request) =>
      resultsIn(request) === 0 ? asksFor({ name: 'make_plan', input }) : says('refused');
    const { sessionId } = await submitTo(process, { address: newAddress() });
    await world.ended(sessionId);
    const failed = (await world.events(sessionId)).find(({ type }) => type === 'ToolCallFailed');
    expect(failed?.data).toMatchObject({ code: 'PLAN.EXISTS' });
    expect([await show(process, path), await readFile(process, path)]).toEqual([mine, text]);
  });

  // @shows agents-A12
  it('fails the step of an agent that claims without evidence, and ends there', async () => {
    const path = nextPath();
    const process = start();
    await write(process, path, '- [ ] a\n- [ ] b\n');
    const claim = { path, step: 's1', status: 'done', note: 'trust me' };
    world.model.reply = async (request) =>
      resultsIn(request) === 0 ? asksFor({ name: 'plan_step', input: claim }) : says('all done');
    await run(process, path);
    const plan = await ended(process, path);
    expect(plan).toMatchObject({ status: 'failed', run: { turns: 1, ended: { reason: 'step_failed' } } });
    expect(plan.steps[0]).toMatchObject({ status: 'failed', code: 'PLAN.NO_EVIDENCE' });
    expect(await readFile(process, path)).toContain('- [ ] a <!-- s1 failed -->');
    world.model.reply = doSteps;
    await run(process, path);
    expect(boxes(await ended(process, path))).toEqual(['s1 done', 's2 done']);
  });

  it('continues in another process after a kill, without a second turn of a step', async () => {
    const path = nextPath();
    const first = start();
    await write(first, path, '- [ ] a\n- [ ] b\n- [ ] c\n');
    let release = (): void => undefined;
    const isHeld = new Promise<void>((resolve) => (release = resolve));
    world.model.reply = async (request, sink, call) => {
      if (lastUser(request).includes('s2')) await isHeld;
      return doSteps(request, sink, call);
    };
    await run(first, path);
    await until(async () => boxes(await show(first, path))[1] === 's2 started');
    first.kill();
    await world.handleExit(first);
    const second = start();
    release();
    const plan = await ended(second, path);
    expect([plan.status, plan.run?.turns]).toEqual(['done', 3]);
    const facts = await factsOf(path);
    expect(facts.filter(({ type }) => type === 'PlanStepStarted')).toHaveLength(3);
    const [completed] = facts.filter((event) => event.type === 'PlanStepCompleted');
    const by = completed?.data.evidence.kind === 'tool' ? completed.data.evidence.sessionId : '';
    expect((await world.types(by)).filter((type) => type === 'TurnRequested')).toHaveLength(3);
  });

  it('ends with the error that a retry does not change, without a change of its file', async () => {
    const path = nextPath();
    const process = start();
    const text = '- [ ] a <!-- s1 -->\n';
    await write(process, path, text);
    let release = (): void => undefined;
    const isHeld = new Promise<void>((resolve) => (release = resolve));
    world.model.reply = async () => (await isHeld, says(`done ${'😀'.repeat(2_000)}`));
    await run(process, path);
    await until(async () => boxes(await show(process, path))[0] === 's1 started');
    const edited = `${text}- [ ] bytes of ${path} that are lost\n`;
    await write(process, path, edited);
    const digest = createHash('sha256').update(edited).digest('hex');
    await inWorkspace(world.pool, WORKSPACE).query('delete from file_blobs where digest = $1', [digest]);
    release();
    const end = await until(async () => (await factsOf(path)).find(({ type }) => type === 'PlanRunEnded'));
    expect(end.data).toMatchObject({
      reason: 'failed',
      cause: { kind: 'failed_with', code: 'FILE.NO_BYTES' },
    });
  });

  it('cancels the turn of its step where it ends with an error', async () => {
    const path = nextPath();
    const process = start();
    await write(process, path, '- [ ] a\n');
    let isCancelled = false;
    const isAsked = new Promise<void>((resolve) => {
      world.model.reply = (request) =>
        new Promise((_, reject) => {
          resolve();
          request.signal.addEventListener('abort', () => {
            isCancelled = true;
            reject(new Error('stopped'));
          });
        });
    });
    await run(process, path);
    await isAsked;
    const peek = jest.spyOn(PlanStore.prototype, 'peek').mockRejectedValue(rejected('TEST.BROKEN', 'broken'));
    const readEnd = async () => (await factsOf(path)).find(({ type }) => type === 'PlanRunEnded');
    const end = await until(readEnd).finally(() => peek.mockRestore());
    expect(end.data).toMatchObject({
      reason: 'failed',
      cause: { kind: 'failed_with', code: 'TEST.BROKEN', why: { kind: 'text', text: 'broken' } },
    });
    expect(isCancelled).toBe(true);
  });

  it('stops by request and cancels its turn, and needs an agent with the tool', async () => {
    const path = nextPath();
    const process = start();
    await write(process, path, '- [ ] a\n');
    world.model.reply = (request) =>
      new Promise((_, reject) =>
        request.signal.addEventListener('abort', () => reject(new Error('stopped'))),
      );
    await run(process, path);
    await expect(run(process, path)).rejects.toMatchObject({ code: 'PLAN.RUNNING' });
    await until(async () => boxes(await show(process, path))[0] === 's1 started');
    await process.plans.stop({ workspace: WORKSPACE, path, actor: PLAN_ACTOR });
    expect(await ended(process, path)).toMatchObject({
      run: { ended: { reason: 'stopped' } },
      steps: [{ code: 'TURN.CANCELLED' }],
    });
    const runBy = (by: PlansProcess, agent: string) =>
      by.plans.run({ workspace: WORKSPACE, path, agent, maxTurns: 1, actor: PLAN_ACTOR });
    await expect(runBy(process, 'missing-agent')).rejects.toMatchObject({ code: 'AGENT.NOT_FOUND' });
    const without = start(testConfig({ tools: ['echo', 'make_plan'] }));
    await expect(runBy(without, 'main')).rejects.toMatchObject({ code: 'PLAN.NO_TOOL' });
  });

  it('ends at the step that its agent reports as failed, with the reason of the agent', async () => {
    const path = nextPath();
    const process = start();
    await write(process, path, '- [ ] a\n- [ ] b\n');
    const input = { path, step: 's1', status: 'failed', note: 'no such table' };
    world.model.reply = async (request) =>
      resultsIn(request) === 0 ? asksFor({ name: 'plan_step', input }) : says('it failed');
    await run(process, path);
    const plan = await ended(process, path);
    expect(plan).toMatchObject({ status: 'failed', run: { turns: 1, ended: { reason: 'step_failed' } } });
    expect(plan.steps).toMatchObject([
      { status: 'failed', code: 'PLAN.STEP_FAILED', note: 'no such table' },
      { status: 'open' },
    ]);
  });
});

describe('the plan tools of an agent', () => {
  /** Makes calls one after another in one turn. Returns the code or the result of each. */
  const callTools = async (process: PlansProcess, target: SessionTarget, ...calls: Call[]) => {
    world.model.reply = async (request) => {
      const call = calls[resultsIn(request)];
      return call ? asksFor(call) : says('ok');
    };
    const { sessionId, turnId } = await submitTo(process, target);
    await world.ended(sessionId);
    const results = (await world.events(sessionId)).filter(({ data }) => data['turnId'] === turnId);
    return {
      sessionId,
      results: results.flatMap(({ type, data }) =>
        type === 'ToolCallFailed' ? [data['code']] : type === 'ToolCallCompleted' ? [data['content']] : [],
      ),
    };
  };
  const make = (path: string): Call => ({ name: 'make_plan', input: { path, title: 'A', steps: ['a'] } });
  const report = (path: string): Call => ({
    name: 'plan_step',
    input: { path, step: 's1', status: 'failed', note: 'no' },
  });

  it('change only plans within the write_roots of the agent, and a run outside is refused', async () => {
    const [path, inside] = [nextPath(), `drafts/${nextPath()}`];
    const narrow = start({
      ...PLAN_CONFIG,
      agents: PLAN_CONFIG.agents.map((agent) => ({ ...agent, writeRoots: ['drafts'] })),
    });
    await write(narrow, path, '- [ ] a <!-- s1 -->\n');
    const calls = [make(`other-${path}`), report(path), make(inside), report(inside)];
    const { results } = await callTools(narrow, { address: newAddress() }, ...calls);
    expect(results.slice(0, 2)).toEqual(['FILE.NOT_ALLOWED', 'FILE.NOT_ALLOWED']);
    expect(results.slice(2)).toEqual([expect.stringContaining(inside), expect.stringContaining('failed')]);
    expect(boxes(await show(narrow, path))).toEqual(['s1 open']);
    await expect(run(narrow, path)).rejects.toMatchObject({ code: 'FILE.NOT_ALLOWED' });
  });

  it('are refused in a forked session, whose files are not those of the workspace', async () => {
    const path = nextPath();
    const process = start();
    const { sessionId } = await callTools(process, { address: newAddress() }, make(path));
    const fork = await process.runtime.forkSession({ workspace: WORKSPACE, sessionId, caller: 'key/ada' });
    const { results } = await callTools(
      process,
      { sessionId: fork.sessionId },
      make(nextPath()),
      report(path),
    );
    expect(results).toEqual(['PLAN.FORKED_SESSION', 'PLAN.FORKED_SESSION']);
    expect(boxes(await show(process, path))).toEqual(['s1 open']);
  });
});
