import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { agentStream, spawnAgent, agentInboxStream } from '@antiphon/contracts/agent';
import type { AgentActor, AgentSpec, AgentView } from '@antiphon/contracts/agent';
import { isAppError } from '@antiphon/kernel';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { hangs, streams } from '@antiphon/agent-features/testing/test-model';
import { giveTimeToFail } from '@antiphon/testing/waits';
import { ReadAgents } from './read-agents.handler.js';

jest.setTimeout(60_000);

let world: AgentWorld;
let processes: TestProcess[];
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  processes = [world.process(), world.process(), world.process()];
});
afterAll(() => world.close());

const MEMBER: AgentActor = { caller: 'key/k1', role: 'member', agentId: null };
const at = (index: number): TestProcess => processes[index % 3] as TestProcess;
const spawn = async (spec: Partial<AgentSpec> = {}, index = 0): Promise<AgentView> => {
  const request = { workspace: WORKSPACE, spec: { name: 'Ann', ...spec }, actor: MEMBER };
  return (await at(index).runtime.spawnAgent(spawnAgent.request.parse(request))).agent;
};
const control = async (
  agentId: string,
  action: 'pause' | 'resume' | 'terminate',
  index = 0,
  actor: AgentActor = MEMBER,
): Promise<AgentView> => {
  const request = { workspace: WORKSPACE, agentId, action, reason: 'spec', actor };
  return (await at(index).runtime.controlAgent(request)).agent;
};
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: unknown) => (isAppError(error) ? error.code : String(error)),
  );
const factsOf = (agentId: string) =>
  world.store.readStream(WORKSPACE, agentStream(agentUuidOf(WORKSPACE, agentId)));
const typesOf = async (agentId: string): Promise<string[]> =>
  (await factsOf(agentId)).map(({ type }) => type);
const historyOf = async (agentId: string) => {
  const reads = at(0).get(ReadAgents);
  return (await reads.history({ workspace: WORKSPACE, agentId, limit: 1_000 })).changes.reverse();
};

describe('a paused agent', () => {
  // @shows G11 P5
  it('finishes its step, continues when it is resumed on another process, and records each change', async () => {
    const agent = await spawn();
    const answer = hangs();
    world.model.reply = answer;
    const { sessionId } = await submitTo(at(1), { address: newAddress(agent.id) });
    await until(() => world.model.requests.some(({ model }) => model === 'm'));
    expect(await control(agent.id, 'pause', 2)).toMatchObject({ state: 'paused', reason: 'spec' });
    expect(await codeOf(control(agent.id, 'pause'))).toBe('none');
    world.model.reply = streams('hello');
    const later = await submitTo(at(0), { address: newAddress(agent.id) });
    await giveTimeToFail(1_500);
    expect(await world.types(later.sessionId)).not.toContain('ModelCallStarted');
    await control(agent.id, 'resume', 2);
    await world.ended(later.sessionId);
    await at(0).runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    await world.ended(sessionId);
    expect(await typesOf(agent.id)).toEqual(['AgentSpawned', 'AgentReady', 'AgentPaused', 'AgentResumed']);
    const changes = await until(async () => {
      const seen = await historyOf(agent.id);
      return seen.at(-1)?.to === 'idle' && seen.length > 6 && seen;
    });
    const states = changes.map(({ to, phase }) => (phase ? `${to}/${phase}` : to));
    expect(states.slice(0, 4)).toEqual(['spawning', 'idle', 'working/listening', 'working/thinking']);
    expect(states).toContain('paused');
    for (const [index, change] of changes.entries()) expect(change.from).toBe(changes[index - 1]?.to ?? null);
  });

  // @shows agents-A4
  it('takes its descendants along, and only those that it paused are resumed with it', async () => {
    const root = await spawn();
    const child = await spawn({ parent: root.id });
    const other = await spawn({ parent: root.id });
    await control(other.id, 'pause');
    await control(root.id, 'pause', 1);
    expect(await codeOf(control(child.id, 'pause'))).toBe('none');
    await control(root.id, 'resume', 2);
    expect(await typesOf(child.id)).toEqual(['AgentSpawned', 'AgentReady', 'AgentPaused', 'AgentResumed']);
    expect(await typesOf(other.id)).toEqual(['AgentSpawned', 'AgentReady', 'AgentPaused']);
  });
});

describe('a terminated agent', () => {
  // @shows agents-A4
  it('ends with its tree of 32 on three processes within a second, and no call begins after it', async () => {
    const root = await spawn({ limits: { children: 8, size: 32, depth: 3 } });
    const all = [root];
    for (let index = 0; all.length < 32; index++)
      all.push(await spawn({ parent: (all[Math.floor(index / 8)] as AgentView).id }, index));
    const [finished] = all.slice(-1) as [AgentView];
    const done = await submitTo(at(0), { address: newAddress(finished.id) });
    await world.ended(done.sessionId);
    await until(async () => (await historyOf(finished.id)).length >= 5);
    world.model.reply = hangs();
    const open = await Promise.all(
      all.map(({ id }, index) => submitTo(at(index), { address: newAddress(id) })),
    );
    await until(async () => {
      const types = await Promise.all(open.map(({ sessionId }) => world.types(sessionId)));
      return types.every((seen) => seen.includes('ModelCallStarted'));
    });
    await until(async () => (await historyOf(finished.id)).at(-1)?.phase === 'thinking');
    const started = performance.now();
    expect(await control(root.id, 'terminate', 1)).toMatchObject({ state: 'terminated' });
    const calls = world.model.requests.length;
    await Promise.all(open.map(({ sessionId }) => world.ended(sessionId)));
    const elapsed = performance.now() - started;
    // The goal is one second on two free cores; other work shares them here.
    expect(elapsed).toBeLessThan(3_000);
    await giveTimeToFail(1_000);
    expect(world.model.requests.length).toBe(calls);
    const types = await Promise.all(all.map(({ id }) => typesOf(id)));
    expect(types.every((seen) => seen.filter((type) => type === 'AgentTerminated').length === 1)).toBe(true);
    const [last] = (await factsOf(finished.id)).slice(-1);
    expect(last?.data).toMatchObject({ result: { status: 'partial', turnId: done.turnId } });
    expect(await codeOf(submitTo(at(2), { address: newAddress(finished.id) }))).toBe('AGENT.TERMINATED');
    expect(await codeOf(control(finished.id, 'resume'))).toBe('AGENT.STATE_CONFLICT');
    expect(await codeOf(control(finished.id, 'terminate'))).toBe('none');
    process.stdout.write(`terminate of a tree of 32: ${Math.round(elapsed)} ms\n`);
    world.model.reply = streams('hello');
  });

  it('tells its parent once, and frees its place for the agent that waits', async () => {
    const root = await spawn({ limits: { size: 2 } });
    const child = await spawn({ parent: root.id });
    const waiting = await spawn({ parent: root.id, whenFull: 'queue' }, 1);
    expect(waiting).toMatchObject({ state: 'spawning', queued: { position: 1, limit: 'size' } });
    await Promise.all([control(child.id, 'terminate', 0), control(child.id, 'terminate', 1)]);
    const inbox = await world.store.readStream(WORKSPACE, agentInboxStream(agentUuidOf(WORKSPACE, root.id)));
    expect(inbox.map(({ data }) => data['type'])).toEqual(['ChildEnded']);
    expect(await typesOf(waiting.id)).toEqual(['AgentSpawned', 'AgentReady']);
  });

  it('is out of reach for an agent that is not its ancestor', async () => {
    const [one, two] = [await spawn(), await spawn()];
    const actor: AgentActor = { caller: 'key/k2', role: 'member', agentId: one.id };
    expect(await codeOf(control(two.id, 'terminate', 0, actor))).toBe('AGENT.NOT_ALLOWED');
    expect(await codeOf(control('missing-agent', 'pause'))).toBe('AGENT.NOT_FOUND');
  });
});
