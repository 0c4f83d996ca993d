import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { spawnAgent } from '@antiphon/contracts/agent';
import type { AgentActor, AgentView } from '@antiphon/contracts/agent';
import type { ModelAnswer } from '@antiphon/providers-domain';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, hangs, says } from '@antiphon/agent-features/testing/test-model';
import { ReadAgents } from './read-agents.handler.js';

jest.setTimeout(60_000);

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

const OWNER: AgentActor = { caller: 'key/k1', role: 'member', agentId: null };
const spawn = async ({ runtime }: TestProcess): Promise<string> => {
  const request = { workspace: WORKSPACE, spec: { name: 'Ann', tools: ['echo'] }, actor: OWNER };
  return (await runtime.spawnAgent(spawnAgent.request.parse(request))).agent.id;
};
const readsOf = ({ get }: TestProcess) => get(ReadAgents);
const viewOf = (process: TestProcess, agentId: string): Promise<AgentView> =>
  readsOf(process).readView(WORKSPACE, agentId);
/** Returns the phase that the agent's own view and the list show. */
const phasesOf = async (process: TestProcess, agentId: string) => {
  const { agents } = await readsOf(process).list({ workspace: WORKSPACE });
  return [(await viewOf(process, agentId)).phase, agents.find(({ id }) => id === agentId)?.phase];
};
const hasPhase = (process: TestProcess, agentId: string, phase: AgentView['phase']) =>
  until(async () => (await phasesOf(process, agentId)).every((shown) => shown === phase));
const historyOf = async (process: TestProcess, agentId: string) => {
  const { changes } = await readsOf(process).history({ workspace: WORKSPACE, agentId, limit: 100 });
  return changes.reverse();
};

/** A provider whose stream stays open before its first text, and after it. */
const heldAnswer = (answer: ModelAnswer) => {
  const [text, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  world.model.reply = async ({ messages }, sink) => {
    if (messages.at(-1)?.role === 'tool') return says('');
    await text.promise;
    sink.onText(answer.text);
    await end.promise;
    return answer;
  };
  return { sendText: () => text.resolve(), end: () => end.resolve() };
};

describe('an agent whose provider sends an answer', () => {
  it('is thinking before its first text and speaking until its end, also for another process', async () => {
    const [driver, other] = [world.process(), world.process()];
    await Promise.all([driver.started, other.started]);
    const agentId = await spawn(driver);
    const answer = heldAnswer(says('hello'));
    const { sessionId } = await submitTo(driver, { address: newAddress(agentId) });
    for (const process of [driver, other]) await hasPhase(process, agentId, 'thinking');
    answer.sendText();
    for (const process of [driver, other]) await hasPhase(process, agentId, 'speaking');
    expect(await world.types(sessionId)).not.toContain('ModelCallCompleted');
    answer.end();
    const events = await world.ended(sessionId);
    for (const process of [driver, other]) await hasPhase(process, agentId, null);
    const completed = events.find(({ type }) => type === 'ModelCallCompleted')?.data;
    const changes = await until(async () => {
      const all = await historyOf(other, agentId);
      return all.at(-1)?.to === 'idle' && all.some(({ phase }) => phase === 'speaking') && all;
    });
    expect(changes.map(({ to, phase }) => phase ?? to).slice(-4)).toEqual([
      ...['listening', 'thinking', 'speaking', 'idle'],
    ]);
    expect(changes.at(-2)?.at).toBe(completed?.['firstTextAt']);
    expect(String(completed?.['firstTextAt']) < String(completed?.['completedAt'])).toBe(true);
  });

  it('is thinking again while a tool runs that the answer asks for', async () => {
    const [driver, other] = [world.process(), world.process()];
    await Promise.all([driver.started, other.started]);
    const agentId = await spawn(driver);
    const answer = heldAnswer({ ...asksFor({ name: 'echo' }), text: 'I look.' });
    const tool = Promise.withResolvers<void>();
    const result = world.responders.tool;
    world.responders.tool = async (request) => {
      await tool.promise;
      return result(request);
    };
    const { sessionId } = await submitTo(driver, { address: newAddress(agentId) });
    answer.sendText();
    for (const process of [driver, other]) await hasPhase(process, agentId, 'speaking');
    answer.end();
    await until(async () => (await world.types(sessionId)).includes('ToolCallRequested'));
    for (const process of [driver, other]) await hasPhase(process, agentId, 'thinking');
    tool.resolve();
    world.responders.tool = result;
    await world.ended(sessionId);
    for (const process of [driver, other]) await hasPhase(process, agentId, null);
    expect((await historyOf(other, agentId)).map(({ phase }) => phase)).not.toContain('speaking');
  });

  it('speaks no longer when another process takes its turn over', async () => {
    const [driver, other] = [world.process(), world.process()];
    await Promise.all([driver.started, other.started]);
    const agentId = await spawn(driver);
    world.model.reply = hangs('hello');
    await submitTo(driver, { address: newAddress(agentId) });
    await hasPhase(other, agentId, 'speaking');
    world.model.reply = hangs();
    driver.kill();
    await world.handleExit(driver);
    await hasPhase(other, agentId, 'thinking');
  });
});
