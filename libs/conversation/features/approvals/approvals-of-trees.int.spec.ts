import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { ApprovalRule } from '@antiphon/config';
import { agentStream, agentTreeStream } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

const rule: ApprovalRule = {
  ...{ tool: '*', ask: 'unsafe', expiresAfterMs: 86_400_000, escalateAfterMs: null },
  ...{ escalateTo: 'admin', answerBy: 'operator' },
};
const config = testConfig({ tools: ['once'], approvals: [rule] });
const at = '2026-11-21T09:30:00.000Z';

describe('Approvals of a tree of agents', () => {
  let world: AgentWorld;
  let agent: TestProcess;

  /** Stores the facts of an agent and of its place in the tree of `main`. */
  const spawn = async (agentId: string, parentId: string | null, depth: number): Promise<void> => {
    const definition = {
      ...{ name: agentId, role: null, provider: 'first', model: 'm', systemPrompt: null, capabilities: [] },
      ...{ tools: ['once'], project: null, position: null, maxIterations: 4, fallback: null },
      ...{ identity: null, base: 'main', budget: null },
    };
    const change = { agentId, actor: 'spec', reason: null, at };
    const fact = (type: string, data: object) => ({
      ...{ eventId: randomUUID(), type, schemaVersion: 1, data: data as never },
      metadata: { correlationId: 'spec', service: 'agent' },
    });
    const origin = parentId === null ? 'configuration' : 'request';
    await world.store.append({
      workspace: WORKSPACE,
      streams: [
        {
          streamId: agentStream(agentUuidOf(WORKSPACE, agentId)),
          expectedVersion: 0,
          events: [
            fact('AgentSpawned', { ...change, definition, origin, parentId, rootId: 'main', depth }),
            fact('AgentReady', change),
          ],
        },
        {
          streamId: agentTreeStream(agentUuidOf(WORKSPACE, 'main')),
          expectedVersion: 'any',
          events: [fact('TreeMemberAdmitted', { rootId: 'main', agentId, parentId, depth, at })],
        },
      ],
    });
  };
  const list = (process: TestProcess, rootId?: string) =>
    process.runtime.approvals.list({ workspace: WORKSPACE, status: 'pending', rootId, limit: 50 });

  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    world.responders.tools = [echoTool(false, 'once')];
    world.model.reply = async ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('done') : asksFor({ name: 'once' });
    await spawn('main', null, 0);
    await spawn('kid', 'main', 1);
    await spawn('grandkid', 'kid', 2);
    agent = world.process({ config });
  }, 60_000);
  afterAll(() => world.close());

  // @shows agents-A11
  it('are listed once with the path from the root, wait alone, and survive a restart', async () => {
    const asker = await submitTo(agent, { address: newAddress('grandkid') });
    const [approval] = await until(async () => {
      const { approvals } = await list(agent, 'main');
      return approvals.length > 0 && approvals;
    });
    expect(approval).toMatchObject({
      ...{ agentId: 'grandkid', rootId: 'main', path: ['main', 'kid', 'grandkid'] },
    });
    expect((await list(agent, 'kid')).approvals).toEqual([]);

    // A sibling continues.
    world.model.reply = async ({ messages }) => says(`saw ${messages.length}`);
    const sibling = await submitTo(agent, { address: newAddress('kid') });
    expect((await world.ended(sibling.sessionId)).at(-1)?.type).toBe('TurnCompleted');

    await agent.runtime.stop();
    const second = world.process({ config });
    const { approvals } = await list(second, 'main');
    expect(approvals).toEqual([approval]);
    const approver = { caller: 'ada', role: 'operator' as const, agentId: null };
    await second.runtime.approvals.answer({
      ...{ workspace: WORKSPACE, approvalId: approval?.id ?? '', decision: 'approve', reason: '', approver },
    });
    const types = (await world.ended(asker.sessionId)).map(({ type }) => type);
    expect(types.at(-1)).toBe('TurnCompleted');
    expect(types.filter((type) => type === 'ToolCallCompleted')).toHaveLength(1);
  });
});
