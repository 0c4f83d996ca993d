import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { ApprovalRule } from '@antiphon/config';
import { spawnAgent, listCapabilities, type AgentActor, type AgentView } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import { ListCapabilities } from './list-capabilities.handler.js';
import { ReadAgents } from './read-agents.handler.js';

jest.setTimeout(60_000);

const rule: ApprovalRule = {
  ...{ tool: '*', ask: 'unsafe', expiresAfterMs: 86_400_000, answerBy: 'operator' },
  ...{ escalateAfterMs: 3_600_000, escalateTo: 'admin' },
};
const config = testConfig({ tools: ['once'], approvals: [rule] });
const OWNER: AgentActor = { caller: 'key/k1', role: 'operator', agentId: null };

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.responders.tools = [echoTool(false, 'once')];
  world.model.reply = async ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'once', input: { n: 1 } });
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

const spawn = async ({ runtime }: TestProcess, spec: object): Promise<string> => {
  const request = spawnAgent.request.parse({ workspace: WORKSPACE, spec, actor: OWNER });
  return (await runtime.spawnAgent(request)).agent.id;
};
const list = async ({ get }: TestProcess, query: object = {}): Promise<AgentView[]> =>
  (await get(ReadAgents).list({ workspace: WORKSPACE, ...query })).agents as AgentView[];
const idsOf = async (process: TestProcess, query: object) =>
  (await list(process, query)).map(({ id }) => id).sort();

describe('an agent whose tool call waits for an approval', () => {
  it('is waiting in its view and in lists until the approval is answered', async () => {
    const process = world.process({ config });
    await process.started;
    const agentId = await spawn(process, { name: 'Ann', tools: ['once'] });
    const { sessionId } = await submitTo(process, { address: newAddress(agentId) });
    const waiting = await until(async () => {
      const view = (await list(process)).find(({ id }) => id === agentId);
      return view?.phase === 'waiting' && view;
    });
    const approvalId = waiting.current?.approvalId ?? '';
    expect(waiting).toMatchObject({ state: 'working', current: { sessionId, taskId: null } });
    expect(approvalId).not.toBe('');
    const own = await process.get(ReadAgents).readView(WORKSPACE, agentId);
    expect(own).toMatchObject({ state: 'working', phase: 'waiting', current: { approvalId } });
    await process.runtime.approvals.answer({
      ...{ workspace: WORKSPACE, approvalId, decision: 'approve', reason: '' },
      approver: { caller: 'ada', role: 'operator', agentId: null },
    });
    await world.ended(sessionId);
    await until(async () => {
      const view = (await list(process)).find(({ id }) => id === agentId);
      return view?.state === 'idle' && view.phase === null && view.current === null;
    });
  });
});

describe('the list of agents', () => {
  it('is filtered by capability, model and a part of the id, name, role or project', async () => {
    const process = world.process({ config });
    await process.started;
    const tides = await spawn(process, {
      ...{ name: 'Tide Reader', capabilities: ['tides', 'english'], project: 'harbour' },
      ...{ role: 'reader', model: 'm2' },
    });
    const words = await spawn(process, { name: 'Writer', capabilities: ['english'] });
    await until(async () => (await idsOf(process, {})).includes(words));
    expect(await idsOf(process, { capability: 'tides' })).toEqual([tides]);
    expect(await idsOf(process, { capability: 'english' })).toEqual([tides, words].sort());
    expect(await idsOf(process, { capability: 'tide' })).toEqual([]);
    expect(await idsOf(process, { model: 'm2' })).toEqual([tides]);
    for (const q of ['tide r', 'HARBOUR', tides]) expect(await idsOf(process, { q })).toEqual([tides]);
    expect(await idsOf(process, { q: '%' })).toEqual([]);
    const { capabilities } = await process
      .get(ListCapabilities)
      .handle(listCapabilities.request.parse({ workspace: WORKSPACE }));
    expect(capabilities.map(({ name, count }) => [name, count])).toEqual([
      ['english', 2],
      ['tides', 1],
    ]);
    expect(capabilities[1]?.agents).toEqual([{ id: tides, name: 'Tide Reader', state: 'idle' }]);
    const other = listCapabilities.request.parse({ workspace: 'other' });
    expect(await process.get(ListCapabilities).handle(other)).toMatchObject({ capabilities: [] });
  });
});
