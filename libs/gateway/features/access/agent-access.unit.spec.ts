import { describe, expect, it } from '@jest/globals';
import type { GatewayRequests } from '../gateway.ports.js';
import { LOCAL_OPERATOR } from './authenticator.js';
import { AgentAccess } from './agent-access.js';

const PARENTS: Readonly<Record<string, string | null>> = {
  ...{ root: null, lead: 'root', helper: 'lead', tool: 'helper', sibling: 'root' },
};

const createReads = () => {
  const asked: string[] = [];
  const request = (_contract: unknown, { agentId }: { agentId: string }) => {
    asked.push(agentId);
    return Promise.resolve({ agent: { parentId: PARENTS[agentId] ?? null } });
  };
  return { access: new AgentAccess({ request } as unknown as GatewayRequests), asked };
};
const LEAD = { workspace: 'acme', agentId: 'lead' };

describe('reads by the key of an agent', () => {
  it('are limited to the agent and its descendants', async () => {
    const { access } = createReads();
    const allowed = await Promise.all(Object.keys(PARENTS).map((id) => access.canRead(LEAD, id)));
    expect(Object.keys(PARENTS).filter((_, i) => allowed[i])).toEqual(['lead', 'helper', 'tool']);
    for (const id of ['root', 'sibling', undefined])
      await expect(access.require(LEAD, id)).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
  });

  it('ask for the parent of each agent once', async () => {
    const { access, asked } = createReads();
    for (let i = 0; i < 3; i++) await access.require(LEAD, 'tool');
    expect(asked).toEqual(['tool', 'helper']);
  });

  it('of a session are limited by the agent of the session', async () => {
    const { access } = createReads();
    const storeOf = (agentId?: string) => ({
      readStreamPage: () =>
        Promise.resolve({ events: agentId === undefined ? [] : [{ data: { agentId } }], hasMore: false }),
    });
    const read = (agentId?: string) => access.requireSession(LEAD, storeOf(agentId) as never, 's');
    await read('helper');
    await read();
    await expect(read('sibling')).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
  });

  it('ask for nothing with the key of a person', async () => {
    const { access, asked } = createReads();
    await access.require(LOCAL_OPERATOR, 'sibling');
    await access.require(LOCAL_OPERATOR, undefined);
    expect(asked).toEqual([]);
  });
});
