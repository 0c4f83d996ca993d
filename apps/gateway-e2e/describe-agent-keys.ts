import { describe, expect, it } from '@jest/globals';
import type { AgentView, TaskItem } from '@antiphon/contracts/agent';
import type { IssuedKey } from '@antiphon/contracts/keys';
import { waitForValue, type createApiCaller } from './stack-under-test.js';

/** The stack of another spec, with a workspace `acme` that has the agents, and `globex`. */
export interface AgentKeysWorld {
  readonly call: ReturnType<typeof createApiCaller>;
  /** Spawns an agent in `acme`, with the first key of the workspace unless another one is given. */
  readonly spawn: (spec: object, token?: string) => Promise<AgentView>;
  /** Returns the first key of a workspace. */
  readonly keyOf: (workspace: 'acme' | 'globex') => string;
}

/** Tests of what keys of other workspaces and keys of agents may do to agents. */
export const describeAgentKeys = ({ call, spawn, keyOf }: AgentKeysWorld): void => {
  /** Creates a key that belongs to an agent of `acme`. */
  const keyOfAgent = async (agentId: string): Promise<string> => {
    const request = { name: agentId, role: 'member', agentId };
    const { body } = await call<IssuedKey>(keyOf('acme'), 'POST', '/keys', request);
    return body.token ?? '';
  };

  describe('the key of another workspace', () => {
    it('reaches no agent, task, message or configured agent', async () => {
      const agent = await spawn({ name: 'Secret plan', capabilities: ['secrets'] });
      const external = { prompt: 'secret work', worker: 'external' };
      const { body: task } = await call<TaskItem>(keyOf('acme'), 'POST', '/tasks', external);
      const sent = { type: 'AgentSpoke', content: { text: 'secret words' } };
      await call(keyOf('acme'), 'POST', `/agents/${agent.id}/messages`, sent);
      const topics = `/agents/${agent.id}/topics/news`;
      for (const id of [agent.id, 'acme-only'])
        for (const [method, path, body] of [
          ['GET', `/agents/${id}`, undefined],
          ['GET', `/agents/${id}/history`, undefined],
          ['GET', `/agents/${id}/metrics`, undefined],
          ['GET', `/agents/${id}/messages`, undefined],
          ['POST', `/agents/${id}/messages`, sent],
          ['PATCH', `/agents/${id}`, { action: 'pause' }],
          ['DELETE', `/agents/${id}`, undefined],
          ['PUT', topics, undefined],
          ['POST', '/agents', { name: 'spy', parent: id }],
          ['POST', '/agents', { name: 'spy', base: id }],
          ['POST', '/tasks', { prompt: 'spy', agent: id }],
          ['POST', '/messages', { to: { agent: id }, ...sent }],
        ] as const) {
          const answer = await call(keyOf('globex'), method, path, body);
          expect([method, path, answer.status]).toEqual([method, path, 404]);
        }
      for (const [method, path, body] of [
        ['GET', `/tasks/${task.id}`, undefined],
        ['PATCH', `/tasks/${task.id}`, { action: 'cancel' }],
        ['POST', `/tasks/${task.id}/renew`, { epoch: 1 }],
        ['POST', `/tasks/${task.id}/finish`, { epoch: 1, outcome: 'completed' }],
      ] as const)
        expect([method, path, (await call(keyOf('globex'), method, path, body)).status]).toEqual([
          method,
          path,
          404,
        ]);
      expect((await call(keyOf('globex'), 'POST', '/tasks/claim', {})).body).toEqual({ claim: null });
      for (const path of ['/agents', '/agents?state=terminated', '/tasks', '/events?limit=1000'])
        expect(JSON.stringify((await call(keyOf('globex'), 'GET', path)).body)).not.toMatch(
          /[Ss]ecret|acme-only/,
        );
      expect((await call<AgentView>(keyOf('acme'), 'GET', `/agents/${agent.id}`)).body.state).toBe('idle');
      expect((await call<TaskItem>(keyOf('acme'), 'GET', `/tasks/${task.id}`)).body.epoch).toBe(0);
    });
  });

  describe('the key of an agent', () => {
    it('changes its agent and its descendants, and no other', async () => {
      const root = await spawn({ name: 'Lead' });
      const other = await spawn({ name: 'Stranger' });
      const own = await keyOfAgent(root.id);
      const child = await spawn({ name: 'Helper', base: undefined, parent: root.id }, own);
      expect(child.parentId).toBe(root.id);
      for (const [method, path, body] of [
        ['PATCH', `/agents/${other.id}`, { action: 'pause' }],
        ['DELETE', `/agents/${other.id}`, undefined],
        ['PUT', `/agents/${other.id}/topics/news`, undefined],
        ['POST', '/agents', { name: 'Spy', parent: other.id }],
        ['POST', '/tasks', { prompt: 'work for me', agent: other.id }],
      ] as const) {
        const { status, body: problem } = await call(own, method, path, body);
        expect([method, path, status, problem.code]).toEqual([method, path, 403, 'AGENT.NOT_ALLOWED']);
      }
      const ended = await call<AgentView>(own, 'DELETE', `/agents/${child.id}`);
      expect([ended.status, ended.body.state]).toEqual([200, 'terminated']);
    });

    it('attaches no file of the workspace to its own chat', async () => {
      const root = await spawn({ name: 'Attacher' });
      const own = await keyOfAgent(root.id);
      const chats = '/workspaces/acme/chats';
      const { status, body: chat } = await call<{ id: string }>(own, 'POST', chats, {
        ...{ name: `chat-${root.id}`, agent: root.id },
      });
      expect(status).toBe(201);
      const attach = { command: 'attach', path: 'secret.md' };
      const answer = await call(own, 'POST', `${chats}/${chat.id}`, attach);
      expect([answer.status, answer.body.code]).toEqual([403, 'AGENT.NOT_ALLOWED']);
    });

    it('reads its agent and its descendants, and no sibling', async () => {
      const root = await spawn({ name: 'Reader' });
      const sibling = await spawn({ name: 'Sibling' });
      const own = await keyOfAgent(root.id);
      const child = await spawn({ name: 'Reader child', base: undefined, parent: root.id }, own);
      const paths = (id: string) => [
        ...['', '/history', '/metrics', '/messages'].map((path) => `/agents/${id}${path}`),
        ...[`/usage?agent=${id}`, `/budgets?agent=${id}`, `/events?agent=${id}`],
      ];
      const answers = async (id: string) =>
        Promise.all(
          paths(id).map(async (path) => {
            const { status, body } = await call(own, 'GET', path);
            return [path, status, body.code];
          }),
        );
      for (const { id } of [root, child])
        expect(await answers(id)).toEqual(paths(id).map((path) => [path, 200, undefined]));
      expect(await answers(sibling.id)).toEqual(
        paths(sibling.id).map((path) => [path, 403, 'AGENT.NOT_ALLOWED']),
      );
      for (const path of ['/events', '/audits']) expect((await call(own, 'GET', path)).status).toBe(403);
      await waitForValue('the list of its own tree', async () => {
        const { agents } = (await call<{ agents: AgentView[] }>(own, 'GET', '/agents')).body;
        expect(agents.map(({ id }) => id)).not.toContain(sibling.id);
        return agents.map(({ id }) => id).join() === [root.id, child.id].join() ? true : undefined;
      });
    });
  });
};
