import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, createAgentWorld } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import {
  boxes,
  createPlansWorld,
  doSteps,
  nextPath,
  PLAN_ACTOR,
} from '@antiphon/agent-features/testing/plans-world';

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

describe('an edit of a plan file', () => {
  // @shows chats-C14
  it('becomes facts at the next read: a person ticks, an agent does not', async () => {
    const path = nextPath();
    const process = start();
    await write(process, path, '# A\n\n* [ ] a\n* [x] b\n');
    expect(boxes(await show(process, path))).toEqual(['s1 open', 's2 done']);
    const file = await readFile(process, path);
    expect(file).toBe('# A\n\n- [ ] a <!-- s1 -->\n- [x] b <!-- s2 -->\n');
    await write(process, path, `${file.replace('[ ] a', '[x] aa')}- [ ] c\n`);
    expect(boxes(await show(process, path))).toEqual(['s1 done', 's2 done', 's3 open']);
    const edited = await readFile(process, path);
    await write(process, path, edited.replace('[ ] c', '[x] c'), 'agent/main');
    // A person's edit on top does not launder the agent's tick.
    await write(process, path, edited.replace('[ ] c', '[x] cc'));
    expect(await show(process, path)).toMatchObject({
      conflicts: [{ kind: 'tick_without_evidence', stepId: 's3' }],
      steps: [{ text: 'aa' }, {}, { text: 'cc', status: 'open' }],
    });
    const types = (await factsOf(path)).map(({ type }) => type);
    await show(process, path);
    expect((await factsOf(path)).map(({ type }) => type)).toEqual(types);
  });

  it('is read as of each position as it was read when that was the head', async () => {
    const path = nextPath();
    const process = start();
    const at = async () => ({ plan: await show(process, path), position: await world.store.headPosition() });
    const seen: Awaited<ReturnType<typeof at>>[] = [];
    const before = await world.store.headPosition();
    for (const text of [
      '- [ ] a\n',
      '- [ ] a <!-- s1 -->\n- [ ] b\n',
      'no steps\n',
      '- [ ] a <!-- s1 -->\n',
    ]) {
      await write(process, path, text);
      seen.push(await at());
    }
    expect(seen.map(({ plan }) => plan.status)).toEqual(['open', 'open', 'invalid', 'open']);
    const head = await world.store.headPosition();
    for (const { plan, position } of seen)
      expect(await process.plans.get({ workspace: WORKSPACE, path, at: position })).toEqual({
        ...{ plan, position, head },
      });
    const missing = { workspace: WORKSPACE, path, at: before };
    await expect(process.plans.get(missing)).rejects.toMatchObject({ code: 'PLAN.NOT_FOUND' });
    // An edit that no live read has seen stays one.
    await write(process, path, '- [ ] a <!-- s1 -->\n- [ ] later\n');
    const edited = await world.store.headPosition();
    const { plan } = await process.plans.get({ workspace: WORKSPACE, path, at: edited });
    expect(plan.steps).toHaveLength(1);
    expect(await world.store.headPosition()).toBe(edited);
  });

  it('is shown to a read without takesEdits, which appends nothing and writes no file', async () => {
    const path = nextPath();
    const process = start();
    const preview = async () => (await process.plans.get({ workspace: WORKSPACE, path })).plan;
    await expect(preview()).rejects.toMatchObject({ code: 'PLAN.NOT_FOUND' });
    await write(process, path, '- [ ] a\n');
    let head = await world.store.headPosition();
    expect(boxes(await preview())).toEqual(['s1 open']);
    expect(await world.store.headPosition()).toBe(head);
    const taken = await show(process, path);
    expect(await preview()).toEqual(taken);
    for (const text of ['- [x] a <!-- s1 -->\n- [ ] b\n', 'no steps\n']) {
      await write(process, path, text);
      head = await world.store.headPosition();
      const { steps, status } = await preview();
      expect([await world.store.headPosition(), await readFile(process, path)]).toEqual([head, text]);
      expect(await show(process, path)).toMatchObject({ status, steps });
    }
  });

  // @shows chats-C14
  it('with ids of earlier steps corrects a file that was no plan', async () => {
    const path = nextPath();
    const process = start();
    const shown = [];
    for (const text of ['- [ ] a\n', '- [ ] b\n', 'no steps\n', '- [ ] a <!-- s1 -->\n']) {
      await write(process, path, text);
      const plan = await show(process, path);
      shown.push([plan.status, ...boxes(plan)]);
    }
    expect(shown).toEqual([
      ['open', 's1 open'],
      ['open', 's2 open'],
      ['invalid', 's2 open'],
      ['open', 's3 open'],
    ]);
    expect(await readFile(process, path)).toBe('- [ ] a <!-- s3 -->\n');
    world.model.reply = doSteps;
    await run(process, path);
    expect(boxes(await ended(process, path))).toEqual(['s3 done']);
  });

  it('without steps is a conflict that is shown once, keeps the file, and starts no run', async () => {
    const path = nextPath();
    const process = start();
    await write(process, path, 'no boxes\n');
    await expect(show(process, path)).rejects.toMatchObject({ code: 'PLAN.NO_STEPS' });
    await write(process, path, '- [ ] a\n');
    await show(process, path);
    await write(process, path, '```\n- [ ] a\n```\n');
    for (const _ of [1, 2])
      expect(await show(process, path)).toMatchObject({
        status: 'invalid',
        conflicts: [{ kind: 'no_steps' }],
      });
    expect(await readFile(process, path)).toBe('```\n- [ ] a\n```\n');
    expect((await factsOf(path)).filter(({ type }) => type === 'PlanEditConflicted')).toHaveLength(1);
    await expect(run(process, path)).rejects.toMatchObject({ code: 'PLAN.NO_STEPS' });
    await expect(show(process, 'none.plan.md')).rejects.toMatchObject({ code: 'PLAN.NOT_FOUND' });
  });

  it('is settled by the facts, which the file then shows, unless another edit came first', async () => {
    const path = nextPath();
    const process = start();
    const actor = PLAN_ACTOR;
    const take = async (digest: string | null) =>
      (await process.plans.takeFacts({ workspace: WORKSPACE, path, digest, actor })).plan;
    await write(process, path, '- [ ] a\n');
    await show(process, path);
    const facts = await readFile(process, path);
    await write(process, path, 'no boxes\n');
    const seen = await show(process, path);
    expect(seen).toMatchObject({ status: 'invalid', conflicts: [{ kind: 'no_steps' }] });
    await write(process, path, 'no boxes, once more\n');
    await expect(take(seen.digest)).rejects.toMatchObject({ code: 'FILE.STALE' });
    expect(await readFile(process, path)).toBe('no boxes, once more\n');
    const { digest } = await show(process, path);
    const settled = await take(digest);
    expect(settled).toMatchObject({ status: 'open', conflicts: [], conflictedAt: null });
    expect(await readFile(process, path)).toBe(facts);
    const types = (await factsOf(path)).map(({ type }) => type);
    expect(types.filter((type) => type === 'PlanConflictsSettled')).toHaveLength(1);
    // Again it changes nothing, and the next read finds no edit.
    expect(await take(settled.digest)).toEqual(settled);
    expect(await show(process, path)).toEqual(settled);
    expect((await factsOf(path)).map(({ type }) => type)).toEqual(types);
  });
});
