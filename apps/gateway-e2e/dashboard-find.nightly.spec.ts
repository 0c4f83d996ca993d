import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Route } from 'playwright-core';
import { createPool } from '@antiphon/database';
import { connectClient } from '@antiphon/testing/client';
import { readApi, savePictures, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

interface Session {
  readonly id: string;
  readonly key: string;
  readonly channel: string;
  readonly state: string;
}

let world: DashboardWorld;
let sessions: readonly Session[];
let runId: string;

const change = async (method: string, path: string, body: unknown): Promise<Record<string, unknown>> => {
  const response = await fetch(`${world.stack.gatewayUrl}/api/v1${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
};

/** Makes a session that ended its turn, one that waits for a decision, and a run. */
beforeAll(async () => {
  world = await startDashboardWorld();
  const client = await connectClient(world.stack.wsUrl);
  const send = (channel: string, content: string) =>
    client.stream('chat.send', { channel, account: 'web', peer: 'ada', agent: 'gpt', content });
  await send('mail', 'Hello').done();
  void send('phone', 'please calculate it')
    .done()
    .catch(() => undefined);
  const nodes = [{ id: 'one', agent: 'claude', prompt: 'hello', needs: [] }];
  const { id } = await change('POST', '/workflows', { name: 'one', nodes });
  runId = String((await change('POST', `/workflows/${String(id)}/start`, {}))['id']);
  sessions = await waitForValue('the sessions', async () => {
    const found = await readApi<{ sessions: Session[] }>(world, '/api/v1/sessions?agent=gpt');
    const isReady = found.sessions.some(({ state }) => state === 'waiting') && found.sessions.length === 2;
    return isReady ? found.sessions : undefined;
  });
  await world.page.goto('/');
  await client.close();
}, 120_000);
afterAll(() => world?.stop());

const button = (name: string) => world.page.getByRole('button', { name, exact: true });
const waitForRows = (label: string, count: number) =>
  waitForValue(`${count} rows of ${label}`, async () => {
    const rows = world.page.getByRole('region', { name: label }).first().locator('tbody tr');
    return (await rows.count()) === count ? true : undefined;
  });

describe('a list of the dashboard', () => {
  it('shows its next page, and all of it in the end', async () => {
    for (let round = 0; round < 30; round++)
      for (const action of ['pause', 'resume']) await change('PATCH', '/agents/claude', { action });
    const path = '/api/v1/agents/claude/history?limit=1000';
    const countAll = async () => (await readApi<{ changes: object[] }>(world, path)).changes.length;
    await waitForValue('the history', async () => ((await countAll()) >= 60 ? true : undefined));
    await world.page.goto('/agents/claude?tab=history');
    await world.page.getByText('These are 50 changes.').waitFor();
    await waitForRows('Changes of state', 50);
    await button('Show more changes').click();
    await button('Show more changes').waitFor({ state: 'detached' });
    // The run of this agent may add changes while the page is read.
    const rows = world.page.getByRole('region', { name: 'Changes of state' }).locator('tbody tr');
    await waitForValue('all changes', async () =>
      (await rows.count()) === (await countAll()) ? true : undefined,
    );
  });

  it('of agents continues after its first page', async () => {
    const { page } = world;
    const { agents } = await readApi<{ agents: object[] }>(world, '/api/v1/agents');
    expect(agents.length).toBeGreaterThan(1);
    // Pages of one agent stand for those of the API, which have a thousand.
    await page.route(/api\/v1\/agents(\?|$)/, (route) => {
      const url = new URL(route.request().url());
      url.searchParams.set('limit', '1');
      return route.continue({ url: url.href });
    });
    await page.goto('/agents?view=table');
    for (let count = 1; count < agents.length; count++) {
      await page.getByText(`These are ${count} agents.`).waitFor();
      await waitForRows('Agents', count);
      await button('Show more agents').click();
    }
    await waitForRows('Agents', agents.length);
    await button('Show more agents').waitFor({ state: 'detached' });
    await page.unroute(/api\/v1\/agents(\?|$)/);
  });

  it('filters events by a range of time', async () => {
    const { page } = world;
    await page.goto('/events');
    const rows = page.getByRole('table', { name: 'Events, newest first' }).getByRole('button');
    await rows.first().waitFor();
    await button('More').click();
    await page.getByLabel('From', { exact: true }).fill('2099-01-01T00:00:00');
    await page.getByText('No event matches').waitFor();
    expect(new URL(page.url()).searchParams.get('since')).toMatch(/Z$/);
    await button('Clear').click();
    await page.getByLabel('Until', { exact: true }).fill('2099-01-01T00:00:00');
    await rows.first().waitFor();
    await page.getByLabel('Until', { exact: true }).fill('2020-01-01T00:00:00');
    await page.getByText('No event matches').waitFor();
  });

  it('filters events by usual questions, and keeps other filters behind More', async () => {
    const { page } = world;
    await page.goto('/events');
    const table = page.getByRole('table', { name: 'Events, newest first' });
    await table.getByRole('button').first().waitFor();
    expect(await page.getByLabel('Stream', { exact: true }).count()).toBe(0);
    for (const [name, query, type] of [
      ['Money', 'category=budget', /^Budget/],
      ['Messages', 'type=TurnRequested%2CAgentMessageSent', /^(TurnRequested|AgentMessageSent)$/],
    ] as const) {
      await button(name).click();
      await page.waitForURL(`**/events?${query}`);
      await waitForValue(`only ${name}`, async () => {
        const types = await table.getByRole('button').allInnerTexts();
        return types.length > 0 && types.every((each) => type.test(each)) ? true : undefined;
      });
      expect(await button(name).getAttribute('aria-pressed')).toBe('true');
    }
    await button('Failures').click();
    await page.getByText('No event matches').waitFor();
    await button('Failures').click();
    await page.waitForURL('**/events');
    await button('More').click();
    await page.getByLabel('Category', { exact: true }).fill('chat');
    await page.waitForURL('**/events?category=chat');
    // A filter that is set stays in view.
    await button('Less').click();
    expect(await page.getByLabel('Category', { exact: true }).inputValue()).toBe('chat');
    expect(await page.getByLabel('Stream', { exact: true }).count()).toBe(0);
  });

  it('says what an event is about on a phone, in a second line', async () => {
    const { page } = world;
    const size = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/events?type=TurnRequested');
    const row = page.getByRole('row').filter({ hasText: 'TurnRequested' }).first();
    const [type, about] = [row.getByRole('cell').nth(1), row.getByRole('cell').nth(2)];
    const [above, below] = [await type.boundingBox(), await about.boundingBox()];
    expect(await about.innerText()).toMatch(/hello|calculate/i);
    expect(below?.y).toBeGreaterThan((above?.y ?? 0) + 10);
    expect(below?.width).toBeGreaterThan(200);
    await savePictures(page, 'events');
    await page.setViewportSize(size ?? { width: 1_440, height: 900 });
  });

  it('finds the memory of an agent by its id or name', async () => {
    const { page } = world;
    await page.goto('/memory');
    const field = page.getByRole('combobox', { name: 'Agent', exact: true });
    const before = await waitForValue('the agents', async () => (await field.inputValue()) || undefined);
    const [name, id] = before === 'gpt' ? ['Claude', 'claude'] : ['Gpt', 'gpt'];
    await field.fill(name);
    await page.waitForURL(`**/memory?agent=${id}`);
    await field.fill('no such agent');
    await field.blur();
    expect(await field.inputValue()).toBe(id);
    expect(new URL(page.url()).search).toBe(`?agent=${id}`);
  });

  it('filters sessions by their state, channel and key', async () => {
    const { page } = world;
    await page.goto('/sessions?agent=gpt');
    await waitForRows('Sessions', 2);
    await page.getByRole('combobox', { name: 'State' }).selectOption('waiting');
    await waitForRows('Sessions', 1);
    await page.getByText('waits for a decision', { exact: true }).last().waitFor();
    await page.getByRole('searchbox', { name: 'Key' }).fill('mail');
    await page.getByText('No session matches').waitFor();
    await page.getByRole('combobox', { name: 'State' }).selectOption('');
    await waitForRows('Sessions', 1);
    await page.goto('/sessions?channel=phone');
    await waitForRows('Sessions', 1);
    expect(sessions.map(({ channel }) => channel).sort()).toEqual(['mail', 'phone']);
  });
});

describe('the filters of a page', () => {
  const shown = async (): Promise<Record<string, string>> => {
    const { page } = world;
    const state = await page.getByRole('combobox', { name: 'State' }).inputValue();
    const key = await page.getByRole('searchbox', { name: 'Key' }).inputValue();
    return { state, key };
  };
  const waitForSearch = (search: string) => world.page.waitForURL((url) => url.search === search);

  it('are walked by Back and Forward: one step for a choice, one for what was typed', async () => {
    const { page } = world;
    await page.goto('/sessions?agent=gpt');
    await waitForRows('Sessions', 2);
    await page.getByRole('combobox', { name: 'State' }).selectOption('waiting');
    await waitForSearch('?agent=gpt&state=waiting');
    const key = page.getByRole('searchbox', { name: 'Key' });
    for (const text of ['ma', 'mail']) {
      await key.fill(text);
      await waitForSearch(`?agent=gpt&state=waiting&text=${text}`);
    }
    await page.goBack();
    await waitForSearch('?agent=gpt&state=waiting');
    expect(await shown()).toEqual({ state: 'waiting', key: '' });
    await page.goBack();
    await waitForRows('Sessions', 2);
    expect(await shown()).toEqual({ state: '', key: '' });
    await page.goForward();
    await page.goForward();
    await page.getByText('No session matches').waitFor();
    expect(await shown()).toEqual({ state: 'waiting', key: 'mail' });
  });

  it.each([
    ['/sessions?agent=gpt&state=waiting', 'Sessions', 1],
    ['/events?type=TurnRequested&since=2020-01-01T00:00:00.000Z', 'Events', 2],
    ['/agents?state=ready&view=table', 'Agents', 2],
  ])('are shown by a link in a browser that was not here before: %s', async (path, table, least) => {
    const { page } = world;
    const rowsOf = async (one: typeof page): Promise<string[]> => {
      await one.goto(new URL(path, page.url()).href);
      const body = one.getByRole(table === 'Events' ? 'table' : 'region', { name: new RegExp(`^${table}`) });
      const rows = body.first().locator(table === 'Events' ? '[role=row], tr' : 'tbody tr');
      await rows.first().waitFor();
      // How long ago something was differs between two reads.
      return (await rows.allInnerTexts()).map((text) =>
        text.replaceAll(/\d+ (s|min|h) ago|just now/g, 'then'),
      );
    };
    const fresh = await page.context().browser()!.newContext();
    try {
      const other = await fresh.newPage();
      const [here, there] = [await rowsOf(page), await rowsOf(other)];
      expect(there).toEqual(here);
      expect(there.length).toBeGreaterThanOrEqual(least);
    } finally {
      await fresh.close();
    }
  });
});

describe('the palette, by keyboard', () => {
  const find = async (words: string): Promise<void> => {
    const { page } = world;
    await page.goto('/settings');
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: /Page, agent/ }).waitFor();
    await page.keyboard.type(words);
  };
  const openFound = async (words: string, path: string): Promise<void> => {
    await find(words);
    await world.page.keyboard.press('Enter');
    await world.page.waitForURL((url) => url.pathname + url.search === path);
  };

  it('opens a run, a session and a turn by their whole ids', async () => {
    const [turn] = await readEvents(world.stack, { type: 'TurnRequested' });
    const turnId = String(turn?.data['turnId']);
    await openFound(runId, `/runs/${runId}`);
    for (const { id } of sessions) await openFound(id, `/sessions/${id}`);
    await openFound(turnId, `/why/${turnId}`);
  });

  it('lists only what has the id, and says that nothing has it', async () => {
    const { page } = world;
    await find(runId);
    await page.getByRole('option', { name: `Run ${runId}` }).waitFor();
    expect(await page.getByRole('option').count()).toBe(1);
    await find('0199aa00-0000-7000-8000-000000000000');
    await page.getByText('Nothing is found.').waitFor();
  });

  it('says that it failed to look, not that there is nothing', async () => {
    const { page } = world;
    const words = '0199aa00-0000-7000-8000-000000000000';
    const api = /api\/v1\/(agents|sessions|runs|turns)/;
    for (const fail of [
      (route: Route) => route.abort(),
      (route: Route) => route.fulfill({ status: 503, json: { message: 'no log', code: 'LOG.DOWN' } }),
    ]) {
      await page.goto('/settings');
      await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
      await page.route(api, fail);
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: /Page, agent/ }).waitFor();
      await page.getByText('Not everything was looked up').waitFor();
      await page.keyboard.type(words);
      await page.getByText('The look-up failed').waitFor();
      expect(await page.getByText('Nothing is found.').count()).toBe(0);
      await page.unroute(api);
    }
    await find(words);
    await page.getByText('Nothing is found.').waitFor();
    expect(await page.getByText('The look-up failed').count()).toBe(0);
  });

  it('goes to a position and to an agent by its name', async () => {
    await openFound('#7', '/settings?at=7');
    await openFound('Claude', '/agents/claude');
  });
});

describe('the list of approvals', () => {
  it('goes from one approval that waits to the next by j, the oldest first', async () => {
    const { page } = world;
    const client = await connectClient(world.stack.wsUrl);
    const send = (peer: string) =>
      client.stream('chat.send', {
        ...{ channel: 'phone', account: 'web', peer, agent: 'gpt', content: 'please calculate it' },
      });
    void send('bob')
      .done()
      .catch(() => undefined);
    const asked = await waitForValue('two approvals', async () => {
      const { approvals } = await readApi<{ approvals: { sessionId: string }[] }>(
        world,
        '/api/v1/approvals?status=pending&order=asc',
      );
      return approvals.length === 2 ? approvals.map(({ sessionId }) => sessionId) : undefined;
    });
    await page.goto('/approvals');
    const links = page.getByRole('link', { name: 'its session' });
    await links.nth(1).waitFor();
    const hrefs = (await links.all()).map((link) => link.getAttribute('href'));
    expect(await Promise.all(hrefs)).toEqual(asked.map((id) => `/sessions/${id}`));
    const focused = () =>
      page.evaluate<string | null>(
        `document.activeElement.querySelector('[href^="/sessions/"]')?.getAttribute('href') ?? null`,
      );
    for (const id of [asked[0], asked[1], asked[0]]) {
      await page.keyboard.press('j');
      expect(await focused()).toBe(`/sessions/${id}`);
    }
    await page.getByLabel('Reason of the decision about calculator').first().fill('j');
    await client.close();
  });
});

describe('a word of yesterday', () => {
  const DAY_MS = 86_400_000;
  /** Gives all events so far the time of a day before. */
  const moveToYesterday = async (): Promise<void> => {
    const pool = createPool({ url: world.stack.databaseUrl, applicationName: 'spec' });
    await pool.query(`begin; set local session_replication_role = replica;
      update events set recorded_at = recorded_at - interval '1 day'; commit`);
    await pool.end();
  };
  const say = async (content: string): Promise<void> => {
    const client = await connectClient(world.stack.wsUrl);
    await client
      .stream('chat.send', { channel: 'mail', account: 'web', peer: content, agent: 'gpt', content })
      .done();
    await client.close();
  };

  it('is found, and a jump to its time shows what the API returns at that position', async () => {
    const { page } = world;
    await say('When is the Biike lit?');
    await moveToYesterday();
    await say('a later message');
    await page.goto('/events');
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    const palette = page.getByRole('combobox', { name: /^Page, agent/ });
    await page.keyboard.press('/');
    await palette.fill('biike lit');
    await page
      .getByRole('option', { name: /When is the Biike lit/ })
      .first()
      .click();
    await page.waitForURL(/\/sessions\/[0-9a-f-]{36}/);
    await page.getByText('When is the Biike lit?').first().waitFor();
    const { results } = await readApi<{ results: { at: string }[] }>(world, '/api/v1/search?q=biike');
    const saidAt = Date.parse(results[0]?.at ?? '');
    expect(Date.now() - saidAt).toBeGreaterThan(DAY_MS);
    const time = `${new Date(saidAt + 600_000).toISOString().slice(0, 19)}Z`;
    await page.keyboard.press('Control+k');
    await palette.fill(`@${time}`);
    await page.getByRole('option', { name: /Show everything as of/ }).click();
    await page.waitForURL(/at=\d+/);
    const at = Number(new URL(page.url()).searchParams.get('at'));
    const until = await readApi<{ events: { position: number }[] }>(
      ...([world, `/api/v1/events?until=${time}&order=desc&limit=1`] as const),
    );
    expect(at).toBe(until.events[0]?.position);
    await page.goto(`/sessions?at=${at}`);
    const then = await readApi<{ sessions: Session[] }>(world, `/api/v1/sessions?at=${at}`);
    const links = page.locator('main tbody tr td:first-child a');
    await links.first().waitFor();
    const shown = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    expect(shown.map((href) => href?.split(/[/?]/)[2])).toEqual(then.sessions.map(({ id }) => id));
    const now = await readApi<{ sessions: Session[] }>(world, '/api/v1/sessions');
    expect(now.sessions.length).toBe(then.sessions.length + 1);
  });
});
