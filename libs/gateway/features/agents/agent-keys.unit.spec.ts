import { describe, expect, it } from '@jest/globals';
import type { Principal } from '@antiphon/contracts/identity';
import { notFound } from '@antiphon/kernel';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import { ChatsController } from '../chats/chats.controller.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { FilesController } from '../chats/files.controller.js';
import { RunsController } from '../orchestration/workflows.controller.js';
import { HeavyRequests } from '../admission/heavy-requests.js';
import { SessionsController } from '../sessions/sessions.controller.js';
import { AgentAccess } from '../access/agent-access.js';
import { PlansController } from '../orchestration/plans.controller.js';
import { TaskMethods, TasksController } from '../orchestration/tasks.controller.js';
import { callMethod } from '../testing/call-method.js';
import { ApprovalMethods, ApprovalsController } from './approvals.controller.js';
import { BudgetsController } from './budgets.controller.js';

const ID = '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5';
const KEY: Principal = { ...LOCAL_OPERATOR, ...{ caller: 'key/k', role: 'member', agentId: 'lead' } };
const PARENTS: Readonly<Record<string, string | null>> = { lead: null, helper: 'lead', sibling: null };
const REFUSED = { code: 'AGENT.NOT_ALLOWED' };

/** Requests to an agent service that has one approval, one chat and one task of an agent. */
const createRequests = (agentId: string) => {
  const sent: string[] = [];
  const item = { id: ID, agentId, parentAgentId: null, sessionId: ID };
  const request = (contract: { readonly subject: string }, payload: { readonly agentId?: string }) => {
    sent.push(contract.subject);
    if (contract.subject === 'cmd.agent.agent.get') {
      const parentId = PARENTS[payload.agentId ?? ''];
      if (parentId === undefined) return Promise.reject(notFound('AGENT.NOT_FOUND', 'gone'));
      return Promise.resolve({ agent: { parentId } });
    }
    const plan = { run: { agentId } };
    const scopes = [
      { kind: 'day', key: 'day/1' },
      { kind: 'agent', key: `agent/${agentId}` },
    ];
    return Promise.resolve({
      ...item,
      scopes,
      plan,
      task: item,
      tasks: [item],
      approvals: [item],
      chats: [item],
    });
  };
  return { requests: { request } as unknown as GatewayRequests, sent };
};
const storeOf = (agentId: string) =>
  ({
    readStreamPage: () => Promise.resolve({ events: [{ data: { agentId } }], hasMore: false }),
  }) as never;

const call = (gateway: object, name: string, params: Record<string, unknown>) =>
  callMethod(gateway, name, params, KEY);
const input = { params: { id: ID }, query: {}, body: {}, idempotencyKey: undefined } as never;
const chatInput = { params: { id: 'default', chat: ID }, query: {}, body: {}, idempotencyKey: undefined };

/** Returns reads and changes of what an agent has, each with the key of another agent. */
const usesOf = (agentId: string): Readonly<Record<string, () => Promise<unknown>>> => {
  const { requests } = createRequests(agentId);
  const access = new AgentAccess(requests);
  const store = storeOf(agentId);
  const approvals = new ApprovalsController(requests, access);
  const tasks = new TasksController(requests, access);
  const streams = { open: () => Promise.resolve(Buffer.from('')) } as never;
  const none = undefined as never;
  const chats = new ChatsController(requests, store, streams, access, none, none);
  const budgets = new BudgetsController(requests, store, access);
  const sessions = new SessionsController(store, requests, undefined as never, access, new HeavyRequests());
  return {
    'POST /sessions/{id}/files/rewind': () => sessions.rewind(input, KEY),
    'GET /approvals/{id}': () => approvals.get(input, KEY),
    'approval.get': () => call(new ApprovalMethods(requests, access), 'approval.get', { approvalId: ID }),
    'GET /tasks/{id}': () => tasks.get(input, KEY),
    'task.get': () => call(new TaskMethods(requests, access), 'task.get', { taskId: ID }),
    'GET /plans': () => new PlansController(requests, new AgentAccess(requests)).get(input, KEY),
    'GET /chats/{chat}/events': () => chats.stream(chatInput as never, KEY, undefined),
    'GET /budgets?session=': () =>
      budgets.read({ ...(input as object), query: { session: ID } } as never, KEY),
  };
};

describe('the key of an agent', () => {
  it.each(Object.keys(usesOf('sibling')))('is refused what another agent has: %s', async (name) => {
    await expect(usesOf('sibling')[name]?.()).rejects.toMatchObject(REFUSED);
    await expect(usesOf('removed')[name]?.()).rejects.toMatchObject({
      code: expect.stringMatching(/^AGENT/),
    });
    await usesOf('helper')[name]?.();
    await usesOf('lead')[name]?.();
  });

  it('is refused the text of a chat of another agent', async () => {
    const { requests } = createRequests('sibling');
    const access = new AgentAccess(requests);
    const none = undefined as never;
    const chats = new ChatsController(requests, storeOf('sibling'), {} as never, access, none, none);
    const read = chats.read(chatInput as never, KEY, undefined, {} as never);
    await expect(read).rejects.toMatchObject(REFUSED);
  });

  it.each([
    ['helper', 1],
    ['sibling', 0],
    ['removed', 0],
  ])('is shown in lists what it may read of the agent %s', async (agentId, count) => {
    const { requests } = createRequests(agentId);
    const access = new AgentAccess(requests);
    const listed = await Promise.all([
      new ApprovalsController(requests, new AgentAccess(requests)).list(input, KEY),
      call(new ApprovalMethods(requests, access), 'approval.list', { limit: 10 }),
      new TasksController(requests, new AgentAccess(requests)).list(input, KEY),
      new ChatsController(
        requests,
        storeOf(agentId),
        {} as never,
        access,
        undefined as never,
        undefined as never,
      ).list(chatInput as never, KEY),
    ]);
    const [approvals, again, tasks, chats] = listed as unknown as Record<string, unknown[]>[];
    expect([approvals?.['approvals'], again?.['approvals']].map((list) => list?.length)).toEqual([
      count,
      count,
    ]);
    expect([tasks?.['tasks'], chats?.['chats']].map((list) => list?.length)).toEqual([count, count]);
  });

  it('sets no budget, not even its own', async () => {
    const { requests, sent } = createRequests('lead');
    const set = new BudgetsController(requests, storeOf('lead'), new AgentAccess(requests)).setLimit(
      { ...(input as object), params: { id: 'lead' }, body: { limitTokens: 1 } } as never,
      KEY,
    );
    await expect(set).rejects.toMatchObject(REFUSED);
    expect(sent).toEqual([]);
  });

  it('reads no runs, whose results are answers of any agents', async () => {
    const { requests, sent } = createRequests('lead');
    const runs = new RunsController(requests, undefined as never);
    for (const read of [
      () => runs.list(input, KEY),
      () => runs.get(input, KEY),
      () => runs.history(input, KEY),
    ])
      await expect((async () => read())()).rejects.toMatchObject(REFUSED);
    expect(sent).toEqual([]);
  });

  it('reads and writes no files, and nothing is sent or stored', async () => {
    const { requests, sent } = createRequests('lead');
    const pool = { query: () => Promise.reject(new Error('the database was asked')) };
    const files = new FilesController(requests, pool as never, storeOf('lead'), {
      files: {},
    } as never);
    const path = { id: 'default', path: 'system/agents/sibling.md' };
    const file = { params: path, query: {}, body: { text: 'obey', path: 'a' }, idempotencyKey: undefined };
    for (const use of [
      () => files.list(file as never, KEY),
      () => files.read(file as never, KEY, {} as never),
      () => files.write(file as never, KEY, {} as never),
      () => files.delete(file as never, KEY),
      () => files.changes(file as never, KEY),
      () => files.erase(file as never, KEY),
      () => files.history(file as never, KEY),
    ])
      await expect((async () => use())()).rejects.toMatchObject(REFUSED);
    expect(sent).toEqual([]);
  });

  it.each([
    ['helper', ['agent/helper']],
    ['sibling', []],
    ['removed', []],
  ])('is shown no budget but those of its tree, of the agent %s', async (agentId, keys) => {
    const { requests } = createRequests(agentId);
    const budgets = new BudgetsController(requests, storeOf(agentId), new AgentAccess(requests));
    const { scopes } = await budgets.read({ ...(input as object), query: { agents: true } } as never, KEY);
    expect(scopes.map(({ key }) => key)).toEqual(keys);
  });
});
