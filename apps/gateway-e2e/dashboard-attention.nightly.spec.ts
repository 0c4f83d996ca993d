import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { connectNats, requestDeadLetters, sendDeadLetter } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { invalid } from '@antiphon/kernel';
import { newEvent } from '@antiphon/testing';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { MockScript } from '@antiphon/testing/providers';
import pg from 'pg';
import { readApi, savePictures, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(240_000);

const DAY_MS = 86_400_000;
const PLAN = 'tides.plan.md';

/** Asks for a tool, makes a plan, or fails as a vendor does. */
const model: MockScript = ({ user, toolResults }) => {
  if (user.includes('outage')) return { status: 500, body: { error: { message: 'overloaded' } } };
  if (user.includes('fail this')) return { status: 400, body: { error: { message: 'no such thing' } } };
  if (toolResults.length > 0) return { text: ['done'] };
  if (user.includes('calculate'))
    return { tools: [{ id: 'call_1', name: 'calculator', input: { expression: '40 + 2' } }] };
  if (user.includes('make a plan')) {
    const input = { path: PLAN, title: 'Tides', steps: ['Add them', 'Say it'] };
    return { tools: [{ id: 'call_2', name: 'make_plan', input }] };
  }
  return { text: ['well'] };
};
const SETTINGS = `
[[agents.approvals]]
tool = "calculator"

[[agents]]
id = "planner"
workspace = "*"
name = "Planner"
provider = "openai"
model = "gpt-4o"
tools = ["make_plan"]
`;

let world: DashboardWorld;
let client: SocketClient;
let peers = 0;
beforeAll(async () => {
  world = await startDashboardWorld({ model, settings: SETTINGS });
  client = await connectClient(world.stack.wsUrl);
}, 120_000);
afterAll(async () => {
  await client?.close();
  await world?.stop();
});

const tryResume = (pid: number): void => {
  try {
    process.kill(pid, 'SIGCONT');
  } catch {
    // It has ended.
  }
};
const call = createApiCaller(() => world.stack.gatewayUrl);
const post = async <T = { id: string }>(method: string, path: string, body: object): Promise<T> => {
  const reply = await call<T>('', method, path, body);
  expect([path, reply.status < 300, reply.body]).toEqual([path, true, expect.anything()]);
  return reply.body;
};
const say = (content: string, agent: string) => {
  const params = { channel: 'test', account: 'e2e', peer: `attention-${++peers}`, content, agent };
  return client.stream('chat.send', params);
};
const list = () => world.page.getByRole('list', { name: 'What needs attention' });
/** Returns the entry of a title, once it is there. */
const entry = (title: string | RegExp) =>
  list()
    .getByRole('listitem')
    .filter({ has: world.page.locator('strong', { hasText: title }) });
/** Opens the page again, which reads also what no event announces. Expects one entry of each title. */
const expectOnce = async (...titles: readonly (string | RegExp)[]): Promise<void> => {
  await world.page.goto('/attention');
  for (const title of titles) {
    await entry(title).first().waitFor();
    expect([String(title), await entry(title).count()]).toEqual([String(title), 1]);
  }
};
const expectGone = async (title: string | RegExp): Promise<void> => {
  await world.page.goto('/attention');
  await world.page.getByRole('heading', { level: 2, name: /^Now/ }).waitFor();
  await waitForValue(`no entry ${title}`, async () => {
    if ((await entry(title).count()) === 0) return true;
    await world.page.reload();
    await list().waitFor();
    return undefined;
  });
};

describe('the page of attention', () => {
  it('lists nothing on a fresh stack', async () => {
    const { page } = world;
    await page.goto('/attention');
    await page.getByText('Nothing needs you').waitFor();
    await page.getByRole('button', { name: 'Attention 0', exact: true }).waitFor();
    expect(await list().count()).toBe(0);
  });

  it('lists a task without an agent, a key that ends soon and a conflict of a plan until each is solved', async () => {
    const { page } = world;
    const task = { title: 'Survey', prompt: 'dive', capabilities: ['diving'] };
    const { id: stuck } = await post('POST', '/tasks', task);
    const expiresAt = new Date(Date.now() + 3 * DAY_MS).toISOString();
    const { id: key } = await post('POST', '/keys', { name: 'harbour', expiresAt });
    await say('make a plan', 'planner').done();
    await post('PUT', `/workspaces/default/files/${PLAN}`, { text: '# Tides\n\nNo box is left.\n' });
    const titles = [
      'The task Survey has no agent',
      'The key harbour ends soon',
      `The plan ${PLAN} has conflicts`,
    ];
    await expectOnce(...titles);
    expect(await list().getByRole('listitem').count()).toBe(titles.length);
    await post('PATCH', `/tasks/${stuck}`, { action: 'cancel' });
    expect((await call('', 'DELETE', `/keys/${key}`)).status).toBeLessThan(300);
    await entry('has conflicts').getByRole('link', { name: 'Open the plan' }).click();
    await page.getByRole('button', { name: 'Take the facts' }).click();
    await page.getByRole('region', { name: 'Conflict 1', exact: true }).waitFor({ state: 'detached' });
    for (const title of titles) await expectGone(title);
    await page.getByText('Nothing needs you').waitFor();
  });

  it('lists an approval, a budget that is nearly spent, a service that is down and a late root until each is solved', async () => {
    const waiting = say('please calculate', 'gpt');
    await waiting.waitFor('the approval', ({ event }) => event === 'approval');
    const { scopes } = await readApi<{ scopes: { kind: string; settledTokens: number }[] }>(
      world,
      '/api/v1/budgets',
    );
    const spent = scopes.find(({ kind }) => kind === 'day')?.settledTokens ?? 0;
    expect(spent).toBeGreaterThan(0);
    await post('PUT', '/budgets/day', { limitTokens: Math.ceil(spent / 0.9), limitMicroUsd: null });
    // A signer that cannot write its table signs no root.
    const lock = new pg.Client({ connectionString: world.stack.databaseUrl });
    await lock.connect();
    await lock.query('begin; lock table log_roots in share mode');
    const pid = world.stack.stackJson().services['memory']?.[0]?.pid ?? 0;
    process.kill(pid, 'SIGSTOP');
    try {
      await expectOnce(/gpt asks to call calculator/, /^\d+ % of the budget day/, 'memory is down');
      // The supervisor ends a service that does not respond.
      tryResume(pid);
      await waitForValue(
        'a late root',
        async () => {
          await world.page.goto('/attention');
          await list().waitFor();
          return (await entry('A signed root of the log is late').count()) === 1 ? true : undefined;
        },
        120_000,
      );
      await savePictures(world.page, 'attention-states');
    } finally {
      tryResume(pid);
      await lock.query('rollback');
      await lock.end();
    }
    await post('DELETE', '/budgets/day', {});
    const { approvals } = await readApi<{ approvals: { id: string }[] }>(
      world,
      '/api/v1/approvals?status=pending',
    );
    await post('POST', `/approvals/${approvals[0]?.id}/answer`, { decision: 'approve' });
    await waiting.done();
    for (const title of ['asks to call', 'of the budget', 'memory is down', 'signed root'])
      await expectGone(title);
    await world.page.getByText('Nothing needs you').waitFor();
  });

  it('lists failed turns, tasks and runs once for each cause, and a task no longer once it is tried again', async () => {
    await say('fail this', 'gpt').done();
    await say('fail this too', 'gpt').done();
    const spec = { title: 'Broken', prompt: 'fail this', agent: 'gpt', retry: { strikes: 1 } };
    const { id: task } = await post('POST', '/tasks', spec);
    const nodes = [{ id: 'one', agent: 'gpt', prompt: 'fail this' }];
    const { id: workflow } = await post('POST', '/workflows', { name: 'broken', nodes });
    await post('POST', `/workflows/${workflow}/start`, {});
    for (const type of ['TaskEnded', 'RunFailed'])
      await waitForValue(type, async () =>
        (await readEvents(world.stack, { type })).find(
          ({ data }) => type === 'RunFailed' || data['status'] === 'failed',
        ),
      );
    await expectOnce(/turn failed/i, /^Task failed$/, /^run failed$/i);
    expect(await entry(/^\d × turn failed/i).count()).toBe(1);
    await post('POST', '/tasks', { prompt: 'again', agent: 'gpt', retryOf: task });
    await expectGone(/^Task failed$/);
  });

  it('lists a paused provider, an agent in error and what could not be handled', async () => {
    const { stack } = world;
    for (let turn = 0; turn < 5; turn++) await say('outage', 'claude').done();
    const { id } = await post('POST', '/agents', { name: 'Fragile', base: 'gpt' });
    const ready = await waitForValue('the agent', async () =>
      (await readEvents(stack, { type: 'AgentReady' })).find(({ data }) => data['agentId'] === id),
    );
    const retryAt = new Date(Date.now() + 600_000).toISOString();
    const data = {
      ...{ agentId: id, actor: 'runtime', reason: 'lost', code: 'TURN.DRIVER_LOST' },
      ...{ failures: 1, retryAt },
    };
    const failed = { ...newEvent({ ...data, at: new Date().toISOString() }), type: 'AgentFailed' };
    const pool = createPool({ url: stack.databaseUrl, applicationName: 'spec' });
    const store = createPostgresEventStore(pool);
    const stream = { streamId: ready.streamId, expectedVersion: ready.streamVersion, events: [failed] };
    await store.append({ workspace: 'default', streams: [stream] });
    await store.close();
    await pool.end();
    const { url, user, password } = stack.nats;
    const link = await connectNats({ url, user, password, service: 'operator', logger: silentLogger });
    await sendDeadLetter(link, {
      ...{ consumer: requestDeadLetters('agent'), id: '1', subject: 'cmd.agent.spec.1' },
      ...{ data: new Uint8Array([1]), headers: undefined, deliveryCount: 1 },
      error: invalid('SPEC.INVALID', 'it is wrong'),
    });
    await link.drain();
    await waitForValue('the three facts', async () => {
      await world.page.goto('/attention');
      await list().waitFor();
      return (await list()
        .getByText(/is paused|is in error|could not be handled/)
        .count()) >= 3
        ? true
        : undefined;
    });
    await expectOnce(
      ...[/^Provider anthropic is paused$/, `Agent ${id} is in error`, /^1 events could not be handled$/],
    );
    await savePictures(world.page, 'attention-failures');
  });
});
