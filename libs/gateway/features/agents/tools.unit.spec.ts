import { describe, expect, it } from '@jest/globals';
import { getAgent, listAgentTools } from '@antiphon/contracts/agent';
import type { Permission, Principal } from '@antiphon/contracts/identity';
import { TOOL_ROUTES } from '@antiphon/contracts/reference';
import { listPlugins } from '@antiphon/contracts/sandbox';
import { AgentAccess } from '../access/agent-access.js';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { ToolsController } from './tools.controller.js';

const { tools, ...rest } = TOOL_ROUTES.listTools.example.reply;
const agents = ['main', 'child', 'other'].map((id) => ({ id, name: id, approval: null }));
const catalogue = {
  ...{ ...rest, tools: tools.map((tool) => ({ ...tool, agents, agentCount: 3 })) },
  unknown: [
    { name: 'gone', agents: ['other'] },
    { name: 'lost', agents: ['child', 'other'] },
  ],
};
const plugin = (name: string, status: string) => ({
  ...{ name, kind: 'tool', status, reason: status === 'loaded' ? null : 'the file does not exist' },
  ...{ moduleDigest: null, capabilities: [], tools: [] },
});

/** Returns the requests to other services. `child` is below `main`. */
const services = (hasSandbox = true): GatewayRequests => ({
  request: ((contract: { subject: string }, payload: { agentId: string }) => {
    if (contract.subject === listAgentTools.subject) return Promise.resolve(catalogue);
    if (contract.subject === listPlugins.subject)
      return hasSandbox
        ? Promise.resolve({ plugins: [plugin('echo', 'loaded'), plugin('survey', 'missing')] })
        : Promise.reject(new Error('no responders'));
    if (contract.subject === getAgent.subject)
      return Promise.resolve({ agent: { parentId: payload.agentId === 'child' ? 'main' : null } });
    return Promise.reject(new Error(contract.subject));
  }) as GatewayRequests['request'],
});

const list = (principal: Partial<Principal> = {}, requests = services()) => {
  const none = { params: undefined, body: undefined, idempotencyKey: undefined };
  return new ToolsController(requests, new AgentAccess(requests)).list(
    { ...none, query: {} },
    { ...LOCAL_OPERATOR, ...principal },
  );
};

describe('the catalogue of tools', () => {
  it('has the plug-ins that are not loaded, with the reason', async () => {
    const { plugins, tools: shown } = await list();
    expect(plugins?.map(({ name, reason }) => [name, reason])).toEqual([
      ['survey', 'the file does not exist'],
    ]);
    expect(shown[0]).toMatchObject({ agentCount: 3, calls: { count: 12 } });
  });

  it('is returned without plug-ins while the sandbox does not respond', async () => {
    expect((await list({}, services(false))).plugins).toBeNull();
  });

  it('gives the key of an agent the agents of its own tree, and no counts of others', async () => {
    const { tools: shown, unknown } = await list({ agentId: 'main' });
    expect(shown[0]).toMatchObject({ agentCount: 2, calls: null });
    expect(shown[0]?.agents.map(({ id }) => id)).toEqual(['main', 'child']);
    expect(unknown).toEqual([{ name: 'lost', agents: ['child'] }]);
  });

  it('shows no agents and no calls to a key without the right to read them', async () => {
    const scopes: readonly Permission[] = ['plugins:read'];
    const { tools: shown, unknown } = await list({ scopes: [...scopes] });
    expect(shown[0]).toMatchObject({ agentCount: 0, agents: [], calls: null });
    expect(unknown).toEqual([]);
  });
});
