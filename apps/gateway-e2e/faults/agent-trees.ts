import type { AgentView, TaskItem } from '@antiphon/contracts/agent';
import { sleep } from '@antiphon/kernel';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents } from '../stack-under-test.js';

const RETRY_MS = 250;
const REQUEST_MS = 5_000;
const DEADLINE_MS = 240_000;

/** A tree of two agents whose whole life has been requested, and answered. */
export interface EndedTree {
  readonly rootId: string;
  readonly childId: string;
  readonly text: string;
}

type Gateway = () => string;

const RETRIED: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);

/** Sends a request once. Returns null if it may be repeated; throws at a permanent refusal. */
const tryRequest = async (url: string, init: RequestInit): Promise<string | null> => {
  const signal = AbortSignal.timeout(REQUEST_MS);
  const response = await fetch(url, { ...init, signal }).catch(() => null);
  const text = (await response?.text().catch(() => null)) ?? null;
  if (!response || text === null || RETRIED.has(response.status)) return null;
  if (response.ok) return text;
  throw new Error(`${init.method ?? 'GET'} ${url}: ${response.status} ${text}`);
};

/** Sends a request until a gateway answers it. */
const request = async <T>(gateway: Gateway, method: string, path: string, key?: string, body?: object) => {
  const deadline = performance.now() + DEADLINE_MS;
  const headers = {
    ...(body ? { 'content-type': 'application/json' } : {}),
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  };
  const init = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
  for (;;) {
    const text = await tryRequest(`${gateway()}/api/v1${path}`, init);
    if (text !== null) return JSON.parse(text) as T;
    if (performance.now() > deadline) throw new Error(`${method} ${path}: no answer`);
    await sleep(RETRY_MS);
  }
};

/** Spawns an agent and its child, sends the child a message and a task, and ends both. */
export const liveTree = async (gateway: Gateway, key: string): Promise<EndedTree> => {
  const post = <T>(path: string, suffix: string, body: object): Promise<T> =>
    request<T>(gateway, 'POST', path, `${key}-${suffix}`, body);
  const budget = { tokens: 1_000_000 };
  const root = await post<AgentView>('/agents', 'root', { name: `Root ${key}`, base: 'main', budget });
  const child = await post<AgentView>('/agents', 'child', { name: 'Child', base: 'main', parent: root.id });
  const text = `for ${key}`;
  const message = { type: 'AgentSpoke', content: { text } };
  await post(`/agents/${child.id}/messages`, 'message', message);
  const task = await post<TaskItem>('/tasks', 'task', { agent: child.id, prompt: `task of ${key}` });
  for (let state = task.state; state !== 'completed'; await sleep(RETRY_MS)) {
    ({ state } = await request<TaskItem>(gateway, 'GET', `/tasks/${task.id}`));
    if (state === 'failed' || state === 'cancelled') throw new Error(`task ${task.id} is ${state}`);
  }
  await request(gateway, 'DELETE', `/agents/${root.id}`);
  return { rootId: root.id, childId: child.id, text };
};

/** Spawns a chain of agents of this base. Returns their ids, the root first. */
export const spawnChain = async (gateway: Gateway, base: string, length: number): Promise<string[]> => {
  const ids: string[] = [];
  while (ids.length < length) {
    const body = { name: `Link ${ids.length}`, base, ...(ids.length > 0 ? { parent: ids.at(-1) } : {}) };
    ids.push((await request<AgentView>(gateway, 'POST', '/agents', `chain-${ids.length}`, body)).id);
  }
  return ids;
};

/** Returns what the log says about each tree that is not exactly once. */
export const findTreeFaults = async (stack: TestStack, trees: readonly EndedTree[]): Promise<string[]> => {
  const agentEvents = await readEvents(stack, { category: 'agent' });
  const received = await readEvents(stack, { type: 'MessagesReceived' });
  const texts = received.flatMap(({ data }) =>
    (data['messages'] as { content: { text?: string } }[]).map(({ content }) => content.text),
  );
  return trees.flatMap(({ rootId, childId, text }) => {
    const count = (agentId: string, type: string): number =>
      agentEvents.filter((event) => event.type === type && event.data['agentId'] === agentId).length;
    const faults = [rootId, childId].flatMap((agentId) =>
      ['AgentSpawned', 'AgentReady', 'AgentTerminated'].flatMap((type) =>
        count(agentId, type) === 1 ? [] : [`${agentId} has ${count(agentId, type)} ${type}`],
      ),
    );
    const seen = texts.filter((one) => one === text).length;
    return seen === 1 ? faults : [...faults, `the message "${text}" is in ${seen} contexts`];
  });
};
