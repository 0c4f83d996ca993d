import { describe, expect, it } from '@jest/globals';
import { listAgentMetrics, listCapabilities, type AgentMetrics } from '@antiphon/contracts/agent';
import { AgentMetricsQuery, type AgentFrame } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing/waits';
import { AgentAccess } from '../access/agent-access.js';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import { MetricsFrames } from '../events/metrics-frames.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { AgentMetricsController } from './agent-metrics.controller.js';
import { MetricsOfAgents } from './metrics-of-agents.js';

const DAY = '2026-11-22';
const AT = `${DAY}T10:00:00.000Z`;
const latest: AgentMetrics = {
  ...{ at: AT, cpuMs: 1, memoryBytes: 2, diskBytes: 3, diskReadBytes: 0, diskWrittenBytes: 0 },
  ...{ turns: 0, modelCalls: 1, toolCalls: 0, inputTokens: 4, outputTokens: 5 },
};
const COST = { calls: 1, settledTokens: 9, settledMicroUsd: 70, reservedTokens: 0, reservedMicroUsd: 0 };

/** Creates the replies of the agent service and metering, and records the requests. */
const services = () => {
  const sent: { readonly subject: string; readonly payload: unknown }[] = [];
  const request: GatewayRequests['request'] = (contract, payload) => {
    sent.push({ subject: contract.subject, payload });
    if (contract.subject === listAgentMetrics.subject)
      return Promise.resolve({
        agents: ['main', 'idle'].map((agentId) => ({ agentId, latest, recent: [] })),
        ...{ day: DAY, nextCursor: null },
      } as never);
    if (contract.subject === listCapabilities.subject) {
      const agents = ['main', 'idle'].map((id) => ({ id, name: id, state: 'idle' }));
      const other = { name: 'tides', count: 1, agents: agents.slice(1) };
      return Promise.resolve({ capabilities: [{ name: 'all', count: 2, agents }, other] } as never);
    }
    return Promise.resolve({ agents: [{ agentId: 'main', ...COST }], total: COST } as never);
  };
  return { requests: { request }, sent };
};
const principal: Principal = { ...LOCAL_OPERATOR, workspace: 'acme' };
const controllerOf = (requests: GatewayRequests) =>
  new AgentMetricsController(new MetricsOfAgents(requests), new AgentAccess(requests), requests);
const input = (query: object) => ({
  ...{ params: undefined, body: undefined, idempotencyKey: undefined },
  query: AgentMetricsQuery.parse(query),
});

describe('the metrics of all agents', () => {
  it('are two requests: samples, and the costs of their day', async () => {
    const { requests, sent } = services();
    const reply = await controllerOf(requests).list(input({ agents: 'main,idle', minutes: '30' }), principal);
    expect(reply.agents.map(({ agentId, today }) => [agentId, today])).toEqual([
      ['main', { calls: 1, settledTokens: 9, settledMicroUsd: 70 }],
      ['idle', { calls: 0, settledTokens: 0, settledMicroUsd: 0 }],
    ]);
    expect(sent.map(({ payload }) => payload)).toEqual([
      expect.objectContaining({ workspace: 'acme', agentIds: ['main', 'idle'], minutes: 30 }),
      { workspace: 'acme', day: DAY, at: undefined },
    ]);
  });

  it('have no cost without the right to read budgets', async () => {
    const { requests, sent } = services();
    const scoped: Principal = { ...principal, scopes: ['agents:read'] };
    const { agents } = await controllerOf(requests).list(input({}), scoped);
    expect(agents.map(({ today }) => today)).toEqual([null, null]);
    expect(sent).toHaveLength(1);
  });

  it('and the capabilities are those of its own tree for the key of an agent', async () => {
    const { requests } = services();
    const own: Principal = { ...principal, agentId: 'main' };
    const access = new AgentAccess(requests);
    access.canRead = (_reader, id) => Promise.resolve(id === 'main');
    access.filter = async (_reader, items, agentsOf) =>
      items.filter((item) => agentsOf(item).includes('main'));
    const controller = new AgentMetricsController(new MetricsOfAgents(requests), access, requests);
    expect((await controller.list(input({}), own)).agents.map(({ agentId }) => agentId)).toEqual(['main']);
    const { capabilities } = await controller.capabilities({ ...input({}), query: {} }, own);
    expect(capabilities.map(({ name, count }) => [name, count])).toEqual([['all', 1]]);
  });

  it.each(['', ' ', 'a b', '../x', Array.from({ length: 51 }, (_, n) => `a${n}`).join(',')])(
    'are refused for the ids %j',
    (agents) => expect(AgentMetricsQuery.safeParse({ agents }).success).toBe(false),
  );
});

describe('frames of metrics', () => {
  /** A connection whose notifications the test sends. */
  const heard: ((at: string) => void)[] = [];
  const connection = {
    subscribe: (_subject: string, { callback }: { callback: (error: null, message: object) => void }) => {
      heard.push((at) => callback(null, { json: () => ({ workspace: 'acme', at }) }));
      return { unsubscribe: () => undefined };
    },
  };

  it('are read once for notifications that come together, and not at all without a subscriber', async () => {
    const { requests, sent } = services();
    const frames = new MetricsFrames(new MetricsOfAgents(requests), { connection } as never, silentLogger);
    const pushed: AgentFrame[] = [];
    let isWanted = false;
    frames.follow('acme', { isWanted: () => isWanted, push: (more) => pushed.push(...more) });
    const hear = heard.at(-1) ?? (() => undefined);
    hear(AT);
    expect(sent).toEqual([]);
    isWanted = true;
    for (const second of [1, 2, 3]) hear(`${DAY}T10:00:0${second}.000Z`);
    await until(() => pushed.length === 4);
    const reads = sent.filter(({ subject }) => subject === listAgentMetrics.subject);
    expect(reads.map(({ payload }) => (payload as { since: string }).since)).toEqual([
      `${DAY}T10:00:01.000Z`,
      `${DAY}T10:00:02.000Z`,
    ]);
    expect(pushed[0]).toEqual({
      ...{ type: 'agent.metrics', agentId: 'main', latest },
      today: { calls: 1, settledTokens: 9, settledMicroUsd: 70 },
    });
  });
});
