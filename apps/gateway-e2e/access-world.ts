import { randomUUID } from 'node:crypto';
import type { IssuedKey, IssuedWorkspace } from '@antiphon/contracts/keys';
import { ROLES, type Permission, type Principal, type Role } from '@antiphon/contracts/identity';
import { connectClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startQuickStack, twoVendorConfig, waitForAccepted, waitForValue } from './stack-under-test.js';

/** Text that only the workspace `acme` has: in its messages, workflows and keys. */
export const CANARY = `canary-${randomUUID()}`;
const TOKEN = 'the-token-of-the-sweep-has-over-32-characters';

export interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly text: string;
}

/** A credential of the sweep, as the gateway knows it; `principal` is null for none that is valid. */
export interface Holder {
  readonly label: string;
  readonly token: string | null;
  readonly principal: Pick<Principal, 'role' | 'scopes' | 'agentId' | 'workspace'> | null;
}

/** Ids of resources of `acme`, by the first part of a route's path below `/api/v1`. */
export interface Resources {
  readonly sessions: string;
  readonly turns: string;
  readonly approvals: string;
  readonly workflows: string;
  readonly runs: string;
  readonly keys: string;
  /** Agent that `acme` spawned. */
  readonly agents: string;
  readonly tasks: string;
  /** No delivery of any workspace. */
  readonly deliveries: string;
}

export interface AccessWorld {
  readonly stack: TestStack;
  readonly resources: Resources;
  readonly holders: readonly Holder[];
  holder(label: string): Holder;
  request(
    method: string,
    path: string,
    token: string | null,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  close(): Promise<void>;
}

const requester =
  (stack: TestStack): AccessWorld['request'] =>
  async (method, path, token, body, more = {}) => {
    const response = await fetch(stack.gatewayUrl + path, {
      method: method.toUpperCase(),
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...more,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isProblem = response.headers.get('content-type')?.includes('problem+json');
    return {
      status: response.status,
      code: isProblem ? (JSON.parse(text) as { code: string }).code : undefined,
      text,
    };
  };

type Request = AccessWorld['request'];

const createHolders = async (request: Request): Promise<Holder[]> => {
  const issue = async (token: string, body: object): Promise<IssuedKey> =>
    JSON.parse((await request('post', '/api/v1/keys', token, body)).text) as IssuedKey;
  const holders: Holder[] = [];
  for (const workspace of ['acme', 'globex']) {
    const made = await request('post', '/api/v1/workspaces', TOKEN, { id: workspace, name: workspace });
    const admin = (JSON.parse(made.text) as IssuedWorkspace).key.token ?? '';
    const add = async (label: string, role: Role, more: { agentId?: string; scopes?: Permission[] } = {}) => {
      const name = workspace === 'acme' ? `${CANARY} ${label}` : label;
      const { token } = await issue(admin, { name, role, ...more });
      const principal = { role, workspace, scopes: more.scopes ?? null, agentId: more.agentId ?? null };
      holders.push({ label: `${workspace} ${label}`, token, principal });
    };
    for (const role of ROLES) await add(role, role);
    await add('agent', 'admin', { agentId: 'claude' });
    await add('scoped', 'admin', { scopes: ['events:read'] });
  }
  return [
    ...holders,
    { label: 'no key', token: null, principal: null },
    { label: 'a wrong key', token: `ak_${'a'.repeat(16)}_${'b'.repeat(43)}`, principal: null },
  ];
};

const createResources = async (stack: TestStack, request: Request, token: string): Promise<Resources> => {
  const client = await connectClient(stack.wsUrl, { authorization: `Bearer ${token}` });
  const address = { channel: 'web', account: 'main', agent: 'claude' };
  const turn = client.stream('chat.send', { ...address, peer: 'ada', content: `approve ${CANARY}` });
  const { sessionId, turnId } = await waitForAccepted(turn);
  const asked = await turn.waitFor('the approval', ({ event }) => event === 'approval');
  const definition = { name: CANARY, nodes: [{ id: 'one', agent: 'gpt', prompt: CANARY }] };
  const post = async (path: string, body: object) =>
    (JSON.parse((await request('post', path, token, body)).text) as { id: string }).id;
  const workflows = await post('/api/v1/workflows', definition);
  const runs = await post(`/api/v1/workflows/${workflows}/start`, {});
  await waitForValue('the end of the run', async () =>
    (await request('get', `/api/v1/runs/${runs}`, token)).text.includes('"completed"') ? true : undefined,
  );
  const keys = await post('/api/v1/keys', { name: `${CANARY} spare`, role: 'viewer' });
  const tasks = await post('/api/v1/tasks', { prompt: CANARY, worker: 'external', capabilities: ['none'] });
  const agents = await post('/api/v1/agents', { base: 'claude', name: CANARY });
  const content = { text: CANARY };
  await post(`/api/v1/agents/${agents}/messages`, { type: 'AgentSpoke', content });
  await client.close();
  const { approvalId } = asked.data as { approvalId: string };
  const deliveries = '01920000-0000-7000-8000-000000000000';
  const named = { workflows, runs, keys, agents, tasks, deliveries };
  return { sessions: sessionId, turns: turnId, approvals: approvalId, ...named };
};

const approvalsOf = (config: string): string =>
  config.replace('id = "claude"', 'id = "claude"\napprovals = [{ tool = "echo", answer_by = "operator" }]');

/**
 * Starts a stack with the workspaces `acme` and `globex`. Each has a key of every role, one of an
 * agent and one with a scope. `acme` has one resource of each kind.
 */
export const createAccessWorld = async (): Promise<AccessWorld> => {
  const mock: MockModel = await startMockModel(({ user, toolResults }) =>
    user.startsWith('approve') && toolResults.length === 0
      ? { tools: [{ id: 'call_1', name: 'echo', input: { text: user } }] }
      : { text: [user] },
  );
  const stack = await startQuickStack(approvalsOf(twoVendorConfig(mock.url, `token = "${TOKEN}"`)));
  const request = requester(stack);
  const holders = await createHolders(request);
  const holder = (label: string): Holder => holders.find((one) => one.label === label) as Holder;
  const resources = await createResources(stack, request, holder('acme admin').token ?? '');
  return {
    ...{ stack, resources, holders, holder, request },
    close: async () => {
      await stack.stop();
      await mock.close();
    },
  };
};
