import { describe, expect, it } from '@jest/globals';
import type { Principal } from '@antiphon/contracts/identity';
import { notFound, transient } from '@antiphon/kernel';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { AgentAccess } from '../access/agent-access.js';
import { RunsController, WorkflowsController } from '../orchestration/workflows.controller.js';
import { HeavyRequests } from '../admission/heavy-requests.js';
import { SessionsController } from '../sessions/sessions.controller.js';
import { SessionMethods } from '../sessions/session-methods.js';
import { TaskMethods, TasksController } from '../orchestration/tasks.controller.js';
import { AgentMethods, AgentsController } from './agents.controller.js';
import { BudgetsController } from './budgets.controller.js';
import { MemoryMethods } from './memory.controller.js';
import { MessageMethods, MessagesController } from './messages.controller.js';
import { callMethod } from '../testing/call-method.js';

const AGENT_KEY: Principal = {
  ...LOCAL_OPERATOR,
  caller: 'key/k',
  workspace: 'acme',
  role: 'member',
  keyId: 'k',
  agentId: 'main',
};
const ACTOR = { caller: 'key/k', role: 'member', agentId: 'main' };
const TASK_ID = '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5';

interface Sent {
  readonly subject: string;
  readonly payload: unknown;
}

/** Records requests, each parsed by its contract as the agent service does. */
const recordRequests = (reply: unknown = {}): { requests: GatewayRequests; sent: Sent[] } => {
  const sent: Sent[] = [];
  const request: GatewayRequests['request'] = (contract, payload) => {
    sent.push({ subject: contract.subject, payload: contract.request.parse(payload) });
    return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply as never);
  };
  return { requests: { request }, sent };
};

const call = (gateway: object, name: string, params: Record<string, unknown>) =>
  callMethod(gateway, name, params, AGENT_KEY);
const ROUTERS = { of: () => ({ route: () => 'main' }) };

describe('the routes of budgets', () => {
  it('ask metering for the budgets and the cost in the workspace of the caller', async () => {
    const { requests, sent } = recordRequests({ scopes: [] });
    const budgets = new BudgetsController(requests, undefined as never, new AgentAccess(requests));
    const common = { params: undefined, body: undefined, idempotencyKey: undefined };
    await budgets.read({ ...common, query: { agent: 'main' } }, AGENT_KEY);
    await budgets.readUsage({ ...common, query: { tree: 'main' } }, AGENT_KEY);
    await budgets.readUsage({ ...common, query: {} }, { ...AGENT_KEY, agentId: null });
    expect(sent).toEqual([
      { subject: 'cmd.metering.budget.read', payload: { workspace: 'acme', agentId: 'main' } },
      { subject: 'cmd.metering.usage.read', payload: { workspace: 'acme', rootId: 'main' } },
      { subject: 'cmd.metering.usage.read', payload: { workspace: 'acme' } },
    ]);
  });
});

describe('the routes of agents, tasks and messages', () => {
  it('pass the workspace, the caller, its role and its agent on to the agent service', async () => {
    const { requests, sent } = recordRequests({});
    const agents = new AgentsController(requests, new AgentAccess(requests));
    const messages = new MessagesController(requests, new AgentAccess(requests));
    const common = { params: { id: 'main' }, query: undefined, idempotencyKey: undefined };
    await agents.control({ ...common, body: { action: 'pause', reason: 'lunch' } }, AGENT_KEY);
    await agents.terminate({ ...common, body: undefined, query: {} }, AGENT_KEY);
    const topic = { ...common, params: { id: 'main', topic: 'news' }, body: undefined };
    await messages.subscribe(topic, AGENT_KEY);
    await messages.unsubscribe(topic, AGENT_KEY);
    const target = { workspace: 'acme', agentId: 'main', actor: ACTOR };
    expect(sent.map(({ payload }) => payload)).toEqual([
      { ...target, action: 'pause', reason: 'lunch' },
      { ...target, action: 'terminate' },
      { ...target, topic: 'news', subscribed: true },
      { ...target, topic: 'news', subscribed: false },
    ]);
  });

  it('send a message of the inbox route to the agent of the path', async () => {
    const { requests, sent } = recordRequests({ messageId: TASK_ID });
    const body = { type: 'AgentSpoke' as const, content: { text: 'hello' } };
    const input = { params: { id: 'main' }, query: undefined, body, idempotencyKey: 'once' };
    await new MessagesController(requests, new AgentAccess(requests)).sendToAgent(input, AGENT_KEY);
    expect(sent).toEqual([
      {
        subject: 'cmd.agent.message.send',
        payload: {
          workspace: 'acme',
          message: { ...body, to: { agent: 'main' } },
          actor: ACTOR,
          idempotencyKey: 'once',
        },
      },
    ]);
  });

  it('pass the epoch of a claim on with its renewal and its result', async () => {
    const { requests, sent } = recordRequests({});
    const tasks = new TasksController(requests, new AgentAccess(requests));
    const input = { params: { id: TASK_ID }, query: undefined, idempotencyKey: undefined };
    await tasks.renew({ ...input, body: { epoch: 3 } }, AGENT_KEY);
    await tasks.finish({ ...input, body: { epoch: 3, outcome: 'completed', text: 'ok' } }, AGENT_KEY);
    const target = { workspace: 'acme', taskId: TASK_ID, actor: ACTOR, epoch: 3 };
    expect(sent).toEqual([
      { subject: 'cmd.agent.task.renew', payload: target },
      { subject: 'cmd.agent.task.finish', payload: { ...target, outcome: 'completed', text: 'ok' } },
    ]);
  });

  it('cancel the open tasks of a project that the caller may cancel, and no node of a run', async () => {
    const sent: Sent[] = [];
    const foreign = '0192f0c1-7e10-7a31-8a6e-3f0d5b9c2e77';
    const queued = [
      { id: TASK_ID, kind: 'task' },
      { id: foreign, kind: 'task' },
      { id: 'run/node', kind: 'run_node' },
    ];
    const others = { agentId: 'main', parentAgentId: null };
    const request: GatewayRequests['request'] = (contract, payload) => {
      const parsed = contract.request.parse(payload) as { state?: string; cursor?: string; taskId?: string };
      if (parsed.taskId === foreign) return Promise.reject(notFound('TASK.NOT_FOUND', 'no task'));
      sent.push({ subject: contract.subject, payload: parsed });
      const isFirst = parsed.state === 'queued' && parsed.cursor === undefined;
      const tasks = isFirst ? queued.map((task) => ({ ...task, ...others })) : [];
      return Promise.resolve({ tasks, nextCursor: isFirst ? 'p9' : null } as never);
    };
    const access = new AgentAccess({ request });
    const params = { project: 'website', reason: 'over' };
    const ask = { params: undefined, query: undefined, idempotencyKey: undefined, body: params };
    const reply = await new TasksController({ request }, access).cancelAll(ask, AGENT_KEY);
    expect(reply).toEqual({ cancelled: [TASK_ID], nextCursor: '0.p9' });
    const next = async (cursor: string) =>
      new TasksController({ request }, access).cancelAll({ ...ask, body: { ...params, cursor } }, AGENT_KEY);
    expect([await next('0.p9'), await next('1.'), await next('2.')]).toEqual([
      ...['1.', '2.', null].map((nextCursor) => ({ cancelled: [], nextCursor })),
    ]);
    const lists = sent
      .filter(({ subject }) => subject === 'cmd.agent.task.list')
      .map(({ payload }) => payload);
    expect(lists).toMatchObject([
      { state: 'queued', project: 'website' },
      { state: 'queued', cursor: 'p9' },
      { state: 'assigned' },
      { state: 'running' },
    ]);
    expect(await call(new TaskMethods({ request }, access), 'task.cancelAll', params)).toEqual(reply);
    expect(sent.filter(({ subject }) => subject === 'cmd.agent.task.cancel')).toEqual(
      Array.from({ length: 2 }, () => ({
        subject: 'cmd.agent.task.cancel',
        payload: { workspace: 'acme', taskId: TASK_ID, reason: 'over', actor: ACTOR },
      })),
    );
  });

  it('list agents from the cache of the same filter while the agent service is down', async () => {
    const page = { agents: [], nextCursor: null };
    let reply: unknown = page;
    const request = () => (reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply as never));
    const agents = new AgentsController({ request }, new AgentAccess({ request }));
    const input = { params: undefined, body: undefined, idempotencyKey: undefined };
    const all = { ...input, query: { limit: 10 } };
    await agents.list(all, AGENT_KEY);
    reply = transient('MESSAGING.NO_RESPONDERS', 'down');
    expect(await agents.list(all, AGENT_KEY)).toEqual({ ...page, stale: true });
    const idle = { ...input, query: { limit: 10, state: 'idle' as const } };
    await expect(agents.list(idle, AGENT_KEY)).rejects.toMatchObject({ code: 'MESSAGING.NO_RESPONDERS' });
  });
});

describe('the socket methods of memory', () => {
  it('ask memory for a session or an agent, in the workspace and as the agent of the key', async () => {
    const { requests, sent } = recordRequests({});
    const methods = new MemoryMethods(requests);
    await call(methods, 'memory.query', { agent: 'main', query: 'name', detail: 'full', limit: 5 });
    await call(methods, 'memory.query', { sessionId: TASK_ID, superseded: true, at: 7 });
    await call(methods, 'memory.recall', { memoryId: TASK_ID });
    const own = { workspace: 'acme', callerAgent: 'main' };
    expect(sent).toEqual([
      {
        subject: 'cmd.memory.entry.query',
        payload: {
          ...{ ...own, target: { agentId: 'main' }, query: 'name', detail: 'full' },
          ...{ includeSuperseded: false, limit: 5 },
        },
      },
      {
        subject: 'cmd.memory.entry.query',
        payload: {
          ...{ ...own, target: { sessionId: TASK_ID }, detail: 'summary', includeSuperseded: true },
          ...{ at: 7, limit: 20 },
        },
      },
      { subject: 'cmd.memory.entry.recall', payload: { ...own, memoryId: TASK_ID } },
    ]);
  });

  it.each([{}, { agent: 'main', sessionId: TASK_ID }, { agent: 'main', limit: 101 }])(
    'refuse %j without a request',
    async (params) => {
      const { requests, sent } = recordRequests({});
      await expect(
        Promise.resolve().then(() => call(new MemoryMethods(requests), 'memory.query', params)),
      ).rejects.toMatchObject({ code: 'GATEWAY.INVALID_PARAMS' });
      expect(sent).toEqual([]);
    },
  );
});

describe('the socket methods of agents, tasks and messages', () => {
  it('keep the idempotency key apart from what is created', async () => {
    const { requests, sent } = recordRequests({ agent: {}, task: {}, messageId: TASK_ID });
    const idempotencyKey = 'once';
    await call(new AgentMethods(requests, new AgentAccess(requests)), 'agent.spawn', {
      name: 'Ada',
      idempotencyKey,
    });
    await call(new TaskMethods(requests, new AgentAccess(requests)), 'task.create', {
      prompt: 'count',
      idempotencyKey,
    });
    const message = { to: { everyone: true }, content: { text: 'hello' } };
    await call(new MessageMethods(requests), 'message.send', { ...message, idempotencyKey });
    const common = { workspace: 'acme', actor: ACTOR, idempotencyKey };
    expect(sent).toMatchObject([
      { subject: 'cmd.agent.agent.spawn', payload: { ...common, spec: { name: 'Ada' } } },
      { subject: 'cmd.agent.task.create', payload: { ...common, spec: { prompt: 'count' } } },
      { subject: 'cmd.agent.message.send', payload: { ...common, message } },
    ]);
  });

  it('terminate an agent by agent.control and return it', async () => {
    const { requests, sent } = recordRequests({ agent: { id: 'main', state: 'terminated' } });
    const params = { agentId: 'main', action: 'terminate' };
    expect(
      await call(new AgentMethods(requests, new AgentAccess(requests)), 'agent.control', params),
    ).toEqual({
      id: 'main',
      state: 'terminated',
    });
    expect(sent[0]?.payload).toEqual({ workspace: 'acme', ...params, actor: ACTOR });
  });

  it.each([
    ['agent.spawn', {}, 'name is required'],
    ['agent.control', { agentId: 'main', action: 'explode' }, 'action'],
    ['task.get', { taskId: '../etc' }, 'taskId'],
    ['message.send', { to: { topic: '-' }, content: {} }, 'to'],
  ])('refuse %s with %j and name the field', async (name, params, field) => {
    const { requests, sent } = recordRequests();
    const access = new AgentAccess(requests);
    const gateways = {
      agent: new AgentMethods(requests, access),
      task: new TaskMethods(requests, access),
      message: new MessageMethods(requests),
    };
    const gateway = gateways[name.split('.')[0] as keyof typeof gateways];
    await expect(call(gateway, name, params)).rejects.toMatchObject({
      code: 'GATEWAY.INVALID_PARAMS',
      message: expect.stringContaining(field),
    });
    expect(sent).toEqual([]);
  });
});

describe('the key of an agent', () => {
  const common = { params: { id: TASK_ID }, query: undefined, idempotencyKey: undefined };

  it('is named in each request about a session, so that the agent service limits it', async () => {
    const { requests, sent } = recordRequests({ cancelled: true });
    const methods = new SessionMethods(requests, ROUTERS);
    await call(methods, 'session.new', { sessionId: TASK_ID });
    await call(methods, 'session.fork', { sessionId: TASK_ID });
    await call(methods, 'session.cancel', { sessionId: TASK_ID });
    const sessions = new SessionsController(
      undefined as never,
      requests,
      undefined as never,
      new AgentAccess(requests),
      new HeavyRequests(),
    );
    await sessions.fork({ ...common, body: {} } as never, AGENT_KEY);
    expect(sent).toHaveLength(4);
    for (const { payload } of sent)
      expect(payload).toMatchObject({ workspace: 'acme', caller: 'key/k', callerAgent: 'main' });
  });

  it('changes no workflow and no run, whose nodes are turns of any agents', async () => {
    const { requests, sent } = recordRequests();
    const runs = new RunsController(requests, undefined as never);
    const workflows = new WorkflowsController(requests);
    const body = { workflow: {}, inputs: {} };
    for (const change of [
      () => runs.start({ ...common, body } as never, AGENT_KEY),
      () => runs.cancel(common as never, AGENT_KEY),
      () => workflows.create({ ...common, body } as never, AGENT_KEY),
      () => workflows.replace({ ...common, body } as never, AGENT_KEY),
      () => workflows.remove(common as never, AGENT_KEY),
      () => workflows.start({ ...common, body } as never, AGENT_KEY),
    ])
      await expect((async () => change())()).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
    expect(sent).toEqual([]);
  });
});

describe('a channel of the runtime', () => {
  it.each(['task', 'run', 'plan', 'fork', 'chat', 'agent'])(
    'is refused to clients, and nothing is sent: %s',
    async (channel) => {
      const { requests, sent } = recordRequests();
      const methods = new SessionMethods(requests, ROUTERS);
      const address = { channel, account: TASK_ID, peer: '1' };
      await expect(call(methods, 'session.new', address)).rejects.toMatchObject({
        code: 'GATEWAY.INVALID_PARAMS',
        message: expect.stringContaining(`"${channel}" is reserved`),
        data: { fields: ['channel'] },
      });
      expect(sent).toEqual([]);
      await call(methods, 'session.new', { ...address, channel: 'web' });
      expect(sent).toHaveLength(1);
    },
  );
});

describe('a message to a workspace without an agent', () => {
  it('is refused with what to do, and nothing is sent', async () => {
    const { requests, sent } = recordRequests();
    const methods = new SessionMethods(requests, { of: () => ({ route: () => '' }) });
    const address = { channel: 'web', account: 'main', peer: 'ada' };
    await expect(call(methods, 'session.new', address)).rejects.toMatchObject({
      code: 'AGENT.NOT_FOUND',
      message: expect.stringContaining('no configured agent. What to do'),
    });
    expect(sent).toEqual([]);
  });
});
