import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { HTTP_ROUTES } from '@antiphon/contracts/reference';
import { parseSigningKeys, signReport } from '@antiphon/event-store';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { checkFigure, percentile, report } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { scriptedConfig, startQuickStack, waitForValue } from './stack-under-test.js';

jest.setTimeout(1_800_000);

/** Number of positions at which every read of the past is compared with its answer of that time. */
const POSITIONS = Number(process.env['ANTIPHON_PAST_POSITIONS'] ?? 200);

const CONFIG = scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"
tools = ["calculator"]

[[agents]]
id = "guarded"
provider = "scripted"
tools = ["calculator"]
[[agents.approvals]]
tool = "calculator"
`);
const SUM = '/tool calculator {"expression":"19+23"}';
const NO_TURN = 'a turn';

type Json = Record<string, unknown>;

let stack: TestStack;
let client: SocketClient;
/** Ids of the newest thing of each kind. */
const newest: Record<string, string> = {};
let step = 0;

const api = async (path: string, method = 'GET', body?: unknown): Promise<{ status: number; body: Json }> => {
  const response = await fetch(`${stack.gatewayUrl}/api/v1${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Json };
};
const change = async (method: string, path: string, body?: unknown): Promise<Json> => {
  const response = await api(path, method, body);
  if (response.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(response)}`);
  return response.body;
};
const remember = async (kind: string, made: Promise<Json>): Promise<void> => {
  newest[kind] = String((await made)['id']);
};

/** Sends a message, and waits for its end or for its approval. */
const say = async (agent: string, content: string): Promise<void> => {
  const address = { channel: 'web', account: 'a', peer: `p${step % 7}`, agent, content };
  const turn = client.stream('chat.send', address);
  const frame = await turn.waitFor(NO_TURN, ({ event }) => event === 'done' || event === 'approval');
  const accepted = await turn.waitFor(NO_TURN, ({ event }) => event === 'accepted');
  const { sessionId, turnId } = accepted.data as { sessionId: string; turnId: string };
  Object.assign(newest, { session: sessionId, turn: turnId });
  if (frame.event === 'approval') newest['approval'] = (frame.data as { approvalId: string }).approvalId;
};

const answer = async (decision: 'approve' | 'deny'): Promise<void> => {
  const { body } = await api('/approvals?status=pending');
  const [pending] = body['approvals'] as { id: string }[];
  if (pending) await change('POST', `/approvals/${pending.id}/answer`, { decision, reason: 'spec' });
};

const WORKFLOW = { name: 'two', nodes: [{ id: 'one', agent: 'main', prompt: 'hello' }] };

/** Changes that are made one after another, again and again. */
const CHANGES: readonly (() => Promise<unknown>)[] = [
  () => say('main', `my name is Name${step}`),
  () => say('main', SUM),
  () => say('guarded', SUM),
  () => answer('approve'),
  () => remember('agent', change('POST', '/agents', { base: 'main', name: `helper ${step}` })),
  () => change('PATCH', `/agents/${newest['agent']}`, { action: 'pause' }),
  () =>
    change('PUT', `/budgets/agents/${newest['agent']}`, { limitTokens: 5_000 + step, limitMicroUsd: null }),
  () => change('PATCH', `/agents/${newest['agent']}`, { action: 'resume' }),
  () => remember('task', change('POST', '/tasks', { prompt: `do ${step}`, agent: 'main' })),
  () =>
    remember('task', change('POST', '/tasks', { prompt: 'wait', worker: 'external', capabilities: ['x'] })),
  () => change('PATCH', `/tasks/${newest['task']}`, { action: 'cancel' }),
  () => remember('workflow', change('POST', '/workflows', WORKFLOW)),
  () => remember('run', change('POST', `/workflows/${newest['workflow']}/start`, {})),
  () => change('PUT', '/budgets/day', { limitTokens: 1_000_000 + step, limitMicroUsd: null }),
  () => change('POST', '/agents/main/messages', { type: 'AgentSpoke', content: { text: `news ${step}` } }),
  () => say('guarded', SUM),
  () => answer('deny'),
  () => change('PUT', '/workspaces/default/files/notes.md', { text: `note ${step}` }),
  () => change('DELETE', `/agents/${newest['agent']}`),
  () => change('DELETE', '/budgets/day'),
  () => fork(),
  () => record(),
  () => writePlan(),
  () => change('POST', '/workspaces/default/chats', { name: `chat ${step}` }),
];

const fork = async (): Promise<void> => {
  const { body } = await api(`/sessions/${newest['session']}/turns?limit=1`);
  const [turn] = body['turns'] as { lastVersion: number; status: string }[];
  if (turn?.status !== 'completed') return;
  const made = await change('POST', `/sessions/${newest['session']}/fork`, { atVersion: turn.lastVersion });
  newest['session'] = String(made['sessionId']);
};

const writePlan = async (): Promise<void> => {
  const plan = 'tides.plan.md';
  await change('PUT', `/workspaces/default/files/${plan}`, { text: `- [ ] one\n- [ ] step ${step}\n` });
  await change('GET', `/plans?path=${plan}`);
  newest['plan'] = plan;
};

/** Records a report of an audit, signed with the key of the log. */
const record = (): Promise<Json> => {
  const audit = {
    ...{ auditId: randomUUID(), ok: true, headPosition: 1, events: 1, since: null, isLive: false },
    ...{ signing: null, durationMs: 1, checks: [], first: null },
  };
  const key = readFileSync(join(stack.home, 'credentials', 'log-signing.key'), 'utf8');
  const proof = signReport('audit', audit, new Date().toISOString(), parseSigningKeys(key, 'spec'));
  return change('POST', '/audits', { ...audit, proof });
};

/**
 * Routes whose `at` is a position of the log. Files and texts of chats have versions of their own.
 * Metrics are measurements, which a live read has before they are of the past. A context has the
 * current tools, and needs a model call.
 */
const PAST_ROUTES = HTTP_ROUTES.filter(
  ({ method, path, query }) =>
    method === 'get' &&
    query?.shape['at'] !== undefined &&
    (!path.includes('/workspaces/') || path.endsWith('/chats')) &&
    !path.endsWith('/metrics') &&
    !path.endsWith('/context'),
).map(({ path }) => path.replace('/api/v1', ''));

/** Returns every read of the past that has something to show, each with its parameters. */
const pathsNow = (): string[] => {
  const { agent = 'main', session, turn, approval, task, workflow, run, memory, plan } = newest;
  const ids: Readonly<Record<string, string | undefined>> = {
    ...{
      agents: agent,
      sessions: session,
      turns: turn,
      approvals: approval,
      tasks: task,
      workflows: workflow,
    },
    ...{ runs: run, memory, workspaces: 'default' },
  };
  return PAST_ROUTES.flatMap((path) => {
    const id = ids[path.split('/')[1] ?? ''];
    if (path.endsWith('/export')) return session ? [`/sessions/${session}/export?format=json`] : [];
    if (path === '/plans') return plan ? [`/plans?path=${plan}`] : [];
    if (path.includes('{')) return id === undefined ? [] : [path.replace(/\{\w+\}/, encodeURIComponent(id))];
    if (path === '/memory') return ['/memory?agent=main&superseded=true&detail=full&limit=100'];
    if (path === '/budgets')
      return ['/budgets?agents=true', ...(session ? [`/budgets?session=${session}`] : [])];
    if (path === '/usage') return ['/usage', ...['model', 'key', 'day'].map((by) => `/usage?by=${by}`)];
    if (path === '/events')
      return ['/events?order=desc&limit=30', '/events?type=TurnCompleted,TaskQueued&order=desc&limit=9'];
    return [path];
  });
};

/** Removes fields that belong to the moment of the answer, and signs of life, which are no facts. */
const comparable = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(comparable);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value as Json)
      .filter(([name]) => !['lastSeenAt', 'head', 'atPosition'].includes(name))
      .map(([name, field]) => [name, comparable(field)]),
  );
};
const withoutPlace = (body: Json): unknown => {
  const { position, ...rest } = body;
  // The position of a thing is part of it; that of an answer comes with the head.
  const isOfAnswer = position === undefined || ('head' in body && !('atPosition' in body));
  return comparable(isOfAnswer ? rest : { ...rest, position });
};

/** Names the first field in which two answers differ. */
const describeDifference = (seen: unknown, expected: unknown, path = ''): string => {
  const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;
  if (isObject(seen) && isObject(expected))
    for (const name of new Set([...Object.keys(seen), ...Object.keys(expected)]))
      if (!isDeepStrictEqual(seen[name], expected[name])) {
        const where = path === '' ? `${String(seen['path'])} ` : '';
        return where + describeDifference(seen[name], expected[name], `${path}/${name}`);
      }
  const [got, wanted] = [seen, expected].map((value) => JSON.stringify(value)?.slice(0, 120));
  return `${path}: ${got} instead of ${wanted}`;
};

const headOf = async (): Promise<{ head: number; isSettled: boolean }> => {
  const { body } = await api('/projections');
  const lags = (body['projections'] as { lag: number }[]).map(({ lag }) => lag);
  return { head: Number(body['head']), isSettled: lags.every((lag) => lag === 0) };
};

/** Returns the head once nothing has been appended for a moment, and every projection is there. */
const settled = (): Promise<number> =>
  waitForValue('a log at rest', async () => {
    const before = await headOf();
    await letTimePass(150);
    const after = await headOf();
    return after.isSettled && after.head === before.head ? after.head : undefined;
  });

interface Answer {
  readonly path: string;
  readonly status: number;
  readonly body: unknown;
}

/** Reads everything now. Returns null if the log grew while it was read. */
const readAll = async (head: number): Promise<Answer[] | null> => {
  const answers: Answer[] = [];
  for (const path of pathsNow()) {
    const { status, body } = await api(path);
    answers.push({ path, status, body: withoutPlace(body) });
  }
  return (await headOf()).head === head ? answers : null;
};

const recorded = new Map<number, readonly Answer[]>();

beforeAll(async () => {
  stack = await startQuickStack(CONFIG);
  client = await connectClient(stack.wsUrl);
  for (; recorded.size < POSITIONS && step < 3 * POSITIONS; step++) {
    await CHANGES[step % CHANGES.length]?.();
    const head = await settled();
    const answers = await readAll(head);
    if (answers) recorded.set(head, answers);
    const memory = (await api('/memory?agent=main&limit=1')).body['entries'] as
      { memoryId: string }[] | undefined;
    newest['memory'] = memory?.[0]?.memoryId ?? newest['memory'] ?? randomUUID();
  }
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
});

/** Reads as of a position. Repeats while the past is being folded. */
const readAt = async (path: string, at: number): Promise<{ status: number; body: Json }> =>
  waitForValue(`${path} at ${at}`, async () => {
    const response = await api(`${path}${path.includes('?') ? '&' : '?'}at=${at}`);
    return response.status === 503 ? undefined : response;
  });

describe('every read that takes a position', () => {
  it('answers as of any position what it answered when that was the head of the log', async () => {
    const positions = [...recorded.keys()].sort(() => Math.random() - 0.5);
    expect(positions.length).toBeGreaterThanOrEqual(POSITIONS);
    const durations: number[] = [];
    let compared = 0;
    const different: [seen: unknown, expected: unknown][] = [];
    for (const at of positions) {
      for (const { path, status, body } of recorded.get(at) ?? []) {
        const startedAt = performance.now();
        const past = await readAt(path, at);
        durations.push(performance.now() - startedAt);
        const seen = { path, at, status: past.status, body: withoutPlace(past.body) };
        compared++;
        if (!isDeepStrictEqual(seen, { path, at, status, body }))
          different.push([seen, { path, at, status, body }]);
      }
    }
    const [first] = different;
    if (first) report(`${different.length} of ${compared} answers differ`);
    for (const [seen, expected] of different.slice(0, 12)) report(describeDifference(seen, expected));
    expect(first?.[0]).toEqual(first?.[1]);
    checkFigure({
      what: `positions of the past, ${compared} answers`,
      value: positions.length,
      atLeast: POSITIONS,
    });
    checkFigure({
      what: 'read of the past, p95',
      value: percentile(durations, 0.95),
      unit: 'ms',
      atMost: 1_000,
    });
  });

  it('finds what each read is about, so that two equal refusals prove nothing', () => {
    const answers = [...recorded.values()].flat();
    const named = (path: string): string => path.replace(/[?].*/, '').replace(/(\/\w+\/)[^/]+/, '$1{id}');
    const found = new Set(answers.filter(({ status }) => status === 200).map(({ path }) => named(path)));
    expect([...found].sort()).toEqual([...new Set(PAST_ROUTES.map((path) => named(path)))].sort());
  });

  it('is every read of facts, as past-routes.unit.spec has them', () => {
    const read = new Set([...recorded.values()].flat().map(({ path }) => path.split(/[/?]/)[1]));
    expect([...read].sort()).toEqual([
      ...['agents', 'approvals', 'audits', 'backups', 'budgets', 'events', 'memory', 'plans', 'runs'],
      ...['sessions', 'tasks', 'turns', 'usage', 'workflows', 'workspaces'],
    ]);
  });
});
