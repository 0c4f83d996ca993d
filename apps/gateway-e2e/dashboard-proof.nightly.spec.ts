import { randomUUID } from 'node:crypto';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { sessionStream } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { connectNats, requestDeadLetters, sendDeadLetter } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { newEvent } from '@antiphon/testing';
import { findViolations, readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, runCli, waitForRoot, waitForValue } from './stack-under-test.js';

jest.setTimeout(180_000);

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld();
  await say('Hello there');
});
afterAll(() => world?.stop());

const panel = (name: string) => world.page.getByRole('region', { name, exact: true });
const button = (name: string) => world.page.getByRole('button', { name, exact: true });
const cli = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await runCli(world.stack, args);
  expect([args.join(' '), code, stderr]).toEqual([args.join(' '), expect.any(Number), expect.any(String)]);
  if (code !== 0) throw new Error(`${args.join(' ')}: ${code} ${stdout} ${stderr}`);
  return stdout;
};

/** Starts a conversation with an agent, and waits for the end of its turn. Returns its last event. */
const say = async (content: string, agent = 'gpt') => {
  const { page, stack } = world;
  await page.goto(`/agents/${agent}`);
  await page.getByLabel(/^Message to/).fill(content);
  await button('Start a conversation').click();
  await page.waitForURL(/\/sessions\//);
  const stream = `session-${new URL(page.url()).pathname.split('/').at(-1)}`;
  return waitForValue('the end of the turn', async () =>
    (await readEvents(stack, { stream })).findLast(({ type }) => /^Turn(Completed|Failed)$/.test(type)),
  );
};

describe('the page of the audit', () => {
  it('shows the recorded result of each check, with its rule and what was checked', async () => {
    const { page } = world;
    await page.goto('/audit');
    await panel('Last audit').getByText('No audit has been recorded yet').waitFor();
    await waitForRoot(world.stack);
    await cli('audit', '--record');
    await panel('Last audit').getByText('everything holds').waitFor();
    const { audits } = await readApi<{ audits: { checks: { name: string; about: string }[] }[] }>(
      world,
      '/api/v1/audits?limit=1',
    );
    const rows = page.getByRole('table').filter({ hasText: 'Rule' }).getByRole('row');
    const checks = audits[0]?.checks ?? [];
    expect(checks.length).toBeGreaterThan(20);
    expect(await rows.count()).toBe(checks.length + 1);
    for (const [index, { name, about }] of checks.entries()) {
      const cells = await rows
        .nth(index + 1)
        .getByRole('cell')
        .allInnerTexts();
      expect([cells[0], cells[1], cells[3]]).toEqual([name, about, 'ok']);
    }
  });

  it('shows the newest signed root, and how many events it does not cover yet', async () => {
    type Roots = { position: number; roots: { root: string }[] };
    await world.page.reload();
    const { roots, position } = await readApi<Roots>(world, '/api/v1/roots?limit=1');
    await panel('Signed roots')
      .getByText(roots[0]?.root ?? 'none', { exact: true })
      .waitFor();
    await panel('Signed roots').getByText('signs a root every 1 s').waitFor();
    expect(position).toBeGreaterThan(0);
  });

  it('shows each read model with its position and what it lacks', async () => {
    const { projections } = await readApi<{ projections: { name: string }[] }>(world, '/api/v1/projections');
    const rows = panel('Read models').getByRole('row');
    expect(await rows.count()).toBe(projections.length + 1);
    for (const { name } of projections) {
      const cells = await rows.filter({ hasText: name }).getByRole('cell').allInnerTexts();
      expect([name, Number(cells[1]?.replaceAll(',', '')) > 0, cells[3]]).toEqual([name, true, 'ok']);
    }
  });

  it('shows a recorded backup, and what a restore of it would lose', async () => {
    const { page, stack } = world;
    await panel('Backups').getByText('No backup has been recorded').waitFor();
    const folder = join(stack.home, 'a-backup');
    await cli('backup', folder, '--record');
    const row = panel('Backups').getByRole('row').filter({ hasText: folder });
    await row.waitFor();
    await say('one more event');
    await page.goto('/audit');
    type Backups = { head: number; backups: { position: number }[] };
    const { head, backups } = await readApi<Backups>(world, '/api/v1/backups');
    await row.getByText(`${head - (backups[0]?.position ?? 0)} events`).waitFor();
  });

  it('shows an archive with its state, which says that its file is missing', async () => {
    const { page, stack } = world;
    await panel('Archives').getByText('Every event is in the log').waitFor();
    const folder = join(stack.home, 'archives');
    await cli('events', 'archive', '--before', '999999999', '--folder', folder);
    await page.reload();
    const row = panel('Archives').getByRole('row').nth(1);
    await row.getByText('intact').waitFor();
    const { archives } = await readApi<{ archives: { events: number; file: string }[] }>(
      world,
      '/api/v1/archives',
    );
    expect(await row.getByRole('cell').nth(2).innerText()).toBe(String(archives[0]?.events));
    expect(await findViolations(page)).toEqual([]);
    const file = join(folder, archives[0]?.file ?? '');
    renameSync(file, `${file}.away`);
    await page.reload();
    await row.getByText('missing').waitFor();
    renameSync(`${file}.away`, file);
  });

  it('shows what stopped a read model and a consumer, and replays it until its cause is corrected', async () => {
    const { page, stack } = world;
    const pool = createPool({ url: stack.databaseUrl, applicationName: 'spec' });
    const store = createPostgresEventStore(pool);
    const [sessionId, turnId] = [randomUUID(), randomUUID()];
    const at = '2026-11-22T10:00:00.000Z';
    const poison = newEvent({ turnId, content: 7, requestedAt: at });
    const started = newEvent({ sessionId, sessionKey: 'poison', agentId: 'claude', startedAt: at });
    const events = [
      { ...started, type: 'SessionStarted' },
      { ...poison, type: 'TurnRequested' },
      { ...newEvent({ turnId, reason: 'no more' }), type: 'TurnFailed' },
      { ...newEvent({ turnId, usage: 'much' }), type: 'ModelCallAborted' },
    ];
    const streamId = sessionStream(sessionId);
    await store.append({ workspace: 'default', streams: [{ streamId, expectedVersion: 0, events }] });
    await waitForValue(
      'both letters',
      async () => {
        type Letters = { streams: { retryAt: string | null }[]; messages: unknown[] };
        const { streams, messages } = await readApi<Letters>(world, '/api/v1/dead-letters');
        return streams[0]?.retryAt === null && messages.length > 0 ? true : undefined;
      },
      90_000,
    );
    await page.goto('/audit');
    const rows = panel('Dead letters').getByRole('row');
    const stream = rows.filter({ hasText: streamId }).filter({ hasText: 'memory-facts' });
    await stream.getByText('memory-facts').waitFor();
    await stream.getByText('5 tries', { exact: false }).waitFor();
    await rows.filter({ hasText: 'metering-settle-calls' }).getByText('MESSAGING.INVALID').waitFor();
    expect(await findViolations(page)).toEqual([]);

    await stream.getByRole('button', { name: 'Replay' }).click();
    await panel('Dead letters')
      .getByText(/failed again/)
      .waitFor();
    await stream.waitFor();
    await pool.query(`begin; set local session_replication_role = replica;
      update events set data = jsonb_set(data, '{content}', '"my name is Eve"') where event_id = '${poison.eventId}';
      commit`);
    await stream.getByRole('button', { name: 'Replay' }).click();
    await panel('Dead letters').getByText('1 replayed').waitFor();
    await stream.waitFor({ state: 'detached' });
    const { streams } = await readApi<{ streams: unknown[] }>(world, '/api/v1/dead-letters');
    expect(streams).toEqual([]);
    await store.close();
    await pool.end();
  });

  it('shows dead letters page by page', async () => {
    const { page, stack } = world;
    const { url, user, password } = stack.nats;
    const link = await connectNats({ url, user, password, service: 'operator', logger: silentLogger });
    // Requests name no workspace: an operator of the default one sees them.
    const letters = Array.from({ length: 101 }, (_, id) =>
      sendDeadLetter(link, {
        ...{ consumer: requestDeadLetters('agent'), id: `${id}`, subject: `cmd.agent.spec.${id}` },
        ...{ data: new Uint8Array([1]), headers: undefined, deliveryCount: 1 },
        error: invalid('SPEC.INVALID', 'it is wrong'),
      }),
    );
    await Promise.all(letters);
    await link.drain();
    await page.reload();
    const rows = panel('Dead letters').getByRole('row').filter({ hasText: 'Replay' });
    await rows.nth(99).waitFor();
    const { nextAfter } = await readApi<{ nextAfter: number }>(world, '/api/v1/dead-letters');
    await button('Next page').click();
    await rows.nth(99).waitFor({ state: 'detached' });
    const { messages } = await readApi<{ messages: { subject: string }[] }>(
      world,
      `/api/v1/dead-letters?after=${nextAfter}`,
    );
    await rows.filter({ hasText: messages.at(-1)?.subject ?? 'none' }).waitFor();
    expect(await rows.count()).toBe(messages.length);
    await button('First page').click();
    await rows.nth(99).waitFor();
  });
});

describe('the page of money', () => {
  const setTokens = async (opener: ReturnType<typeof button>, tokens: string): Promise<void> => {
    await opener.click();
    const dialog = world.page.getByRole('dialog');
    await dialog.getByLabel('Tokens', { exact: true }).fill(tokens);
    await dialog.getByRole('button', { name: 'Set budget' }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  const reset = async (opener: ReturnType<typeof button>): Promise<void> => {
    await opener.click();
    await world.page.getByRole('dialog').getByRole('button', { name: 'Use the configured limit' }).click();
    await world.page.getByRole('dialog').waitFor({ state: 'detached' });
  };

  it.each(['day', 'month', 'session'] as const)(
    'sets the limit of each %s, which refuses the next turn, and takes it back',
    async (kind) => {
      const { page } = world;
      await page.goto('/money');
      await setTokens(button(`Set limit of each ${kind}`), '1');
      await panel('Budgets of the workspace').getByText('set at run time').first().waitFor();
      const refused = await say('this is refused');
      expect([refused.type, refused.data['code']]).toEqual(['TurnFailed', 'BUDGET.EXCEEDED']);
      await page.locator('[data-turn]').getByText('(BUDGET.EXCEEDED)').waitFor();
      await page.goto('/money');
      await reset(button(`Set limit of each ${kind}`));
      expect((await say('this is admitted')).type).toBe('TurnCompleted');
    },
  );

  it('sets the budget of an agent, shows it with its use, and refuses its turns alone', async () => {
    const { page } = world;
    await page.goto('/money');
    const usage = panel('Usage by agent').getByRole('row').filter({ hasText: 'gpt' });
    await setTokens(usage.getByRole('button', { name: 'Set budget' }), '1');
    const row = panel('Budgets of the workspace').getByRole('row').filter({ hasText: 'Agent' });
    await row.getByText('gpt', { exact: true }).waitFor();
    await row.getByRole('meter', { name: 'Tokens of agent/gpt' }).waitFor();
    expect((await say('refused')).data['code']).toBe('BUDGET.EXCEEDED');
    expect((await say('admitted', 'claude')).type).toBe('TurnCompleted');
    await page.goto('/money');
    await setTokens(row.getByRole('button', { name: 'Set budget' }), '');
    expect((await say('admitted again')).type).toBe('TurnCompleted');
  });
});

describe('a failure', () => {
  it('of an agent names it and its reason on each page, and leads to it', async () => {
    const { page, stack } = world;
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'Fragile', base: 'claude' });
    const spawned = await fetch(`${stack.gatewayUrl}/api/v1/agents`, { method: 'POST', headers, body });
    const { id } = (await spawned.json()) as { id: string };
    const ready = await waitForValue('the agent', async () =>
      (await readEvents(stack, { type: 'AgentReady' })).find(({ data: { agentId } }) => agentId === id),
    );
    await page.goto('/money');
    await page.getByText('Connected', { exact: true }).waitFor();
    const reason = 'its process was lost again and again';
    const data = { agentId: id, actor: 'runtime', reason, code: 'TURN.DRIVER_LOST' };
    const failed = { ...newEvent({ ...data, at: new Date().toISOString() }), type: 'AgentFailed' };
    const pool = createPool({ url: stack.databaseUrl, applicationName: 'spec' });
    const store = createPostgresEventStore(pool);
    const stream = { streamId: ready.streamId, expectedVersion: ready.streamVersion, events: [failed] };
    await store.append({ workspace: 'default', streams: [stream] });
    const toast = page
      .getByRole('log', { name: 'Failures' })
      .locator('div')
      .filter({ has: page.getByRole('link', { name: 'agent failed' }) });
    await toast.getByText(reason).waitFor();
    await page.getByRole('link', { name: 'Memory', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Memory' }).waitFor();
    await toast.getByRole('link', { name: 'agent failed' }).click();
    await page.getByRole('heading', { level: 1, name: 'Fragile' }).waitFor();
    expect(await toast.count()).toBe(0);
    expect(await readApi(world, `/api/v1/agents/${encodeURIComponent(id)}`)).toMatchObject({
      state: 'error',
    });
    await store.close();
    await pool.end();
  });

  it('of a task is on each page until it is closed, and leads to its run', async () => {
    const { page, stack } = world;
    const call = (method: string, path: string, body: object) => {
      const headers = { 'content-type': 'application/json' };
      return fetch(stack.gatewayUrl + path, { method, headers, body: JSON.stringify(body) });
    };
    await page.goto('/memory');
    await page.getByText('Connected', { exact: true }).waitFor();
    const limits = { limitTokens: 1, limitMicroUsd: null };
    expect((await call('PUT', '/api/v1/budgets/agents/claude', limits)).status).toBe(200);
    const workflow = { name: 'refused', nodes: [{ id: 'only', agent: 'claude', prompt: 'go' }] };
    expect((await call('POST', '/api/v1/runs', { workflow })).ok).toBe(true);
    const failures = page.getByRole('log', { name: 'Failures' });
    await failures.getByRole('link', { name: 'task failed' }).waitFor({ timeout: 30_000 });
    await failures.getByRole('link', { name: 'task failed' }).click();
    await page.waitForURL(/\/runs\//);
    expect(await failures.getByRole('link', { name: 'task failed' }).count()).toBe(0);
  });
});

describe('all of it', () => {
  it('asked no other origin and broke no policy', () => {
    expect(world.leaks).toEqual([]);
  });
});
