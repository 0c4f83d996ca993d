import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@antiphon/kernel';
import {
  AT,
  appendFacts,
  event,
  append,
  inAuditWorld,
  playTurn,
  reader,
  rewrite,
} from './audit-world.spec.js';
import { runAudit } from './run-audit.js';

inAuditWorld();

const by = { actor: 'local', reason: null, at: AT };
const definition = (name: string): JsonObject => ({
  ...{ name, role: null, provider: 'p', model: 'm', systemPrompt: null, capabilities: [], tools: [] },
  ...{ project: null, position: null, maxIterations: 10, fallback: null, identity: null, base: 'main' },
  budget: null,
});
const spawned = (agentId: string, parentId: string | null): [string, JsonObject] => [
  'AgentSpawned',
  {
    ...{ agentId, ...by, definition: definition(agentId), origin: 'request', parentId },
    ...{ rootId: 'root', depth: parentId ? 1 : 0 },
  },
];
const admitted = (agentId: string, parentId: string | null): [string, JsonObject] => [
  'TreeMemberAdmitted',
  { rootId: 'root', agentId, parentId, depth: parentId ? 1 : 0, at: AT },
];
const limitSet = (agentId: string, limitTokens: number): [string, JsonObject] => [
  'BudgetLimitSet',
  { scopeKey: `agent/${agentId}`, limitTokens, limitMicroUsd: null, actor: 'local', at: AT, appliesBy: AT },
];
const message = (type: string, from: string, content: JsonObject): JsonObject => ({
  ...{ messageId: randomUUID(), type, from, to: { kind: 'agent', agentId: 'root' }, content },
  ...{ causeId: null, sentAt: AT },
});
const result = { status: 'completed', text: 'done', sessionId: null, turnId: null, code: null };

/** Streams of the tree of `playTree`. */
const [ROOT, CHILD, TREE, INBOX] = [1, 2, 3, 4].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
const STREAMS = {
  ...{
    root: `agent-${ROOT}`,
    child: `agent-${CHILD}`,
    tree: `agent-tree-${TREE}`,
    inbox: `agent-inbox-${INBOX}`,
  },
  limit: `budget-limit-${ROOT}`,
};

const endTaskAndChild = async (taskId: string) => {
  const toldTask = message('TaskEnded', `task/${taskId}`, {
    taskId,
    status: 'completed',
    text: 'done',
    code: null,
  });
  const toldChild = message('ChildEnded', 'agent/child', {
    ...{ agentId: 'child', status: 'completed', text: 'done', code: null },
  });
  await appendFacts(
    [`task-${taskId}`, ['TaskEnded', { taskId, status: 'completed', epoch: 1, result, strikes: [], at: AT }]],
    [STREAMS.inbox, ['AgentMessageSent', toldTask]],
  );
  const upTo = await appendFacts(
    [STREAMS.tree, ['TreeMemberLeft', { rootId: 'root', agentId: 'child', at: AT }]],
    [STREAMS.child, ['AgentTerminated', { agentId: 'child', ...by, result }]],
    [STREAMS.inbox, ['AgentMessageSent', toldChild]],
  );
  return { upTo, messages: [toldTask, toldChild] };
};

/**
 * Appends the facts of a tree: an agent with a budget spawns a child, which does a task and a turn
 * and ends. Its parent gets both ends in one context.
 */
const playTree = async () => {
  const [taskId, sessionId, turnId] = [randomUUID(), randomUUID(), randomUUID()] as const;
  await appendFacts([STREAMS.limit, limitSet('root', 5_000)]);
  const limits = { depth: 3, children: 8, size: 32 };
  await appendFacts(
    [STREAMS.tree, ['TreeOpened', { rootId: 'root', limits, at: AT }], admitted('root', null)],
    [STREAMS.root, spawned('root', null), ['AgentReady', { agentId: 'root', ...by }]],
  );
  await appendFacts(
    [STREAMS.tree, admitted('child', 'root')],
    [STREAMS.child, spawned('child', 'root'), ['AgentReady', { agentId: 'child', ...by }]],
  );
  const queued: JsonObject = {
    ...{ taskId, title: 't', prompt: 'p', priority: 5, capabilities: [], agentId: null, project: null },
    ...{ parentAgentId: 'root', parentTaskId: null, deadline: null, retry: { strikes: 3, backoffMs: 0 } },
    ...{ budget: null, executor: 'agent', actor: 'local', at: AT },
  };
  const claim = { taskId, epoch: 1, at: AT };
  await appendFacts([
    `task-${taskId}`,
    ['TaskQueued', queued],
    ['TaskAssigned', { ...claim, worker: 'agent/child', agentId: 'child', stolen: false }],
    ['TaskBegun', { ...claim, sessionId: null, turnId: null }],
  ]);
  await playTurn('child', { root: 5_000 });
  const { upTo, messages } = await endTaskAndChild(taskId);
  const session = `session-${sessionId}`;
  await append(session, [
    event('SessionStarted', { sessionId, sessionKey: 'k', agentId: 'root', startedAt: AT }),
    event('TurnRequested', { turnId, content: 'hello', requestedAt: AT }),
  ]);
  await appendFacts(
    [session, ['MessagesReceived', { turnId, messages, upTo, receivedAt: AT }]],
    [STREAMS.inbox, ['InboxRead', { agentId: 'root', sessionId, turnId, upTo, count: 2 }]],
  );
  await append(session, [
    event('TurnFailed', { turnId, code: 'X', cause: { kind: 'text', text: 'x' }, failedAt: AT }),
  ]);
  return { ...STREAMS, session, task: `task-${taskId}` };
};
type Streams = Awaited<ReturnType<typeof playTree>>;

const audit = () => runAudit({ pool: reader, strictQuiesced: true });

describe('the audit of agents', () => {
  it('finds nothing in an unchanged tree, with a count for each rule', async () => {
    await playTree();
    const report = await audit();
    expect(report.first).toBeNull();
    expect(report.ok).toBe(true);
    const counts = Object.fromEntries(report.checks.map(({ name, checked }) => [name, checked]));
    expect(counts).toMatchObject({
      'agents-begin-and-end-in-order': 4,
      'messages-arrive-once': 2,
      'tree-budgets-are-nested': 1,
      'messages-are-received-once': 2,
      'agents-follow-their-lifecycle': 2,
      'trees-stay-within-limits': 2,
      'inboxes-are-read-forward': 2,
      'tasks-end-once': 1,
    });
  });

  const set = (path: string, value: string): string => `data = jsonb_set(data, '{${path}}', '${value}')`;
  it.each<[string, string, keyof Streams, number, string]>([
    ['a change of state', 'agents-follow-their-lifecycle', 'child', 2, "type = 'AgentPaused'"],
    ['the size of a tree', 'trees-stay-within-limits', 'tree', 1, set('limits,size', '1')],
    ['the parent of an agent', 'agents-begin-and-end-in-order', 'child', 1, set('parentId', '"stranger"')],
    ['the id of a spawned agent', 'agents-begin-and-end-in-order', 'child', 1, set('agentId', '"other"')],
    ['the claim of an end', 'tasks-end-once', 'task', 4, set('epoch', '2')],
    ['the cursor of an inbox', 'inboxes-are-read-forward', 'inbox', 3, set('upTo', '999')],
    ['the recipient of an end', 'messages-arrive-once', 'inbox', 2, set('to,agentId', '"stranger"')],
    ['the number of read messages', 'messages-arrive-once', 'inbox', 3, set('count', '1')],
    [
      'a received message',
      'messages-are-received-once',
      'session',
      3,
      `data = jsonb_set(data, '{messages,1}', data #> '{messages,0}')`,
    ],
    ['the limit of an agent', 'tree-budgets-are-nested', 'limit', 1, set('limitTokens', '4999')],
  ])('fails after %s was altered, and names the place', async (_, check, stream, version, change) => {
    const streams = await playTree();
    await rewrite(streams[stream], version, change);
    const report = await audit();
    expect(report.ok).toBe(false);
    const found = report.checks.find(({ name }) => name === check);
    expect(found?.first).toMatchObject({ check, workspace: 'default' });
    expect(found?.first?.position).toBeGreaterThan(0);
    expect(found?.first?.streamId).toMatch(/^(agent|task|session|budget)-/);
  });
});
