import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { expectContextParts } from './dashboard-context.js';
import {
  GUARDED_WITH_WRITER,
  findViolations,
  readApi,
  startDashboardWorld,
  type DashboardWorld,
} from './dashboard-world.js';
import { describePastPages } from './describe-past-pages.js';
import { readEvents, waitForValue } from './stack-under-test.js';

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld({ settings: GUARDED_WITH_WRITER });
}, 120_000);
afterAll(() => world?.stop());

const heading = (name: string | RegExp) => world.page.getByRole('heading', { level: 1, name });
const button = (name: string) => world.page.getByRole('button', { name, exact: true });
/** Waits until no element matches: by a locator, because the policy of the page refuses eval. */
const expectNone = (selector: string) => world.page.locator(selector).first().waitFor({ state: 'detached' });
const eventsOf = async (sessionId: string) => readEvents(world.stack, { stream: `session-${sessionId}` });
const sessionIdOf = (): string => new URL(world.page.url()).pathname.split('/').at(-1) ?? '';

/** Waits until an event of a type is in a session. */
const waitForEvent = (sessionId: string, type: string, count = 1) =>
  waitForValue(`${count} ${type}`, async () => {
    const found = (await eventsOf(sessionId)).filter((event) => event.type === type);
    return found.length >= count ? found.at(-1) : undefined;
  });

describe('the dashboard in Chromium', () => {
  it('opens without a sign-in on loopback, and shows the state of the installation', async () => {
    await world.page.goto('/');
    await heading('Overview').waitFor();
    await world.page.getByText('Connected', { exact: true }).waitFor();
    await world.page.getByText('all services run').waitFor();
    // Services are one line while all of them work.
    const services = world.page.getByRole('region', { name: 'Services and engines' });
    await services.getByText(/^(\d+) of \1 work$/).waitFor();
    expect(await services.getByRole('listitem').count()).toBe(0);
    expect(await readApi(world, '/api/v1/health')).toMatchObject({ status: 'ok' });
    expect(await world.page.title()).toBe('Overview · Antiphon');
  });

  it('spawns an agent, and pauses and resumes it', async () => {
    const { page } = world;
    await page.getByRole('link', { name: 'Agents', exact: true }).click();
    await button('Spawn an agent').click();
    await page.getByLabel('Name').fill('Researcher');
    await page.getByLabel('Base').selectOption('claude');
    await button('Spawn').click();
    await heading('Researcher').waitFor();
    const id = decodeURIComponent(sessionIdOf());
    expect(await readApi(world, `/api/v1/agents/${id}`)).toMatchObject({ name: 'Researcher', state: 'idle' });
    await button('Pause').click();
    await button('Resume').waitFor();
    expect(await readApi(world, `/api/v1/agents/${id}`)).toMatchObject({ state: 'paused' });
    await button('Resume').click();
    await button('Pause').waitFor();
  });

  it('shows the diff of a change before it is approved, and keeps it with the call', async () => {
    const { page } = world;
    await page.goto('/agents/writer');
    await page.getByLabel('Message to Writer').fill('please write the file');
    await button('Start a conversation').click();
    const diff = page.getByRole('region', { name: 'Changes by write' });
    const lines = async (): Promise<string[]> => (await diff.innerText()).trim().split('\n');
    await diff.waitFor();
    const asked = await waitForEvent(sessionIdOf(), 'ApprovalRequested');
    expect(await lines()).toEqual(String(asked.data['preview']).trim().split('\n'));
    expect(await diff.locator('[data-kind=added]').allInnerTexts()).toEqual(['+one', '+two']);
    await page.goto(`/approvals?id=${String(asked.data['approvalId'])}`);
    expect(await lines()).toContain('+two');
    await page.goBack();
    // A card takes no click in its first half second, and is gone after one that it took.
    await waitForValue('the approval', async () => {
      const approve = button('Approve');
      if ((await approve.count()) > 0) await approve.click({ timeout: 1_000 }).catch(() => undefined);
      return (await eventsOf(sessionIdOf())).find(({ type }) => type === 'ApprovalGranted');
    });
    await waitForEvent(sessionIdOf(), 'TurnCompleted');
    await page.locator('[data-call] summary').click();
    expect(await lines()).toContain('+two');
    expect(
      await (await fetch(`${world.stack.gatewayUrl}/api/v1/workspaces/default/files/notes.md`)).text(),
    ).toBe('one\ntwo\n');
  });

  it('chats, and shows hostile text of a model without running or fetching it', async () => {
    const { page } = world;
    await page.goto('/agents/gpt');
    await page.getByLabel('Message to Gpt').fill('Hello there, my name is Ada');
    await button('Start a conversation').click();
    await page.getByRole('heading', { name: 'Answer' }).waitFor();
    await waitForEvent(sessionIdOf(), 'TurnCompleted');
    const text = await page.locator('[data-turn]').innerText();
    expect(text).toContain('<img src=x onerror="window.hacked=1">');
    expect(text).toContain('image not loaded: pixel, https://evil.example/p.png');
    expect(text).toContain('U+202E');
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    expect(await page.locator('[data-turn] :is(img, script, a:not(footer a))').count()).toBe(0);
  });

  it('edits the arguments of a call in place by keys, after which the tool runs once with them', async () => {
    const { page } = world;
    await page.getByLabel('Message', { exact: true }).fill('please calculate it');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'All arguments of calculator' }).waitFor();
    const asked = await waitForEvent(sessionIdOf(), 'ApprovalRequested');
    expect(await page.getByText(String(asked.data['digest'])).count()).toBe(1);
    const change = button('Change arguments');
    await change.click();
    const text = page.getByLabel('New arguments of calculator');
    await text.and(page.locator(':focus')).waitFor();
    await text.fill('{"expression": 7}');
    await page.keyboard.press('Control+Enter');
    const problems = page.locator('form').getByRole('alert');
    await problems.getByText('/expression').waitFor();
    expect(await text.getAttribute('aria-invalid')).toBe('true');
    await page.keyboard.press('Escape');
    await text.waitFor({ state: 'detached' });
    await change.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Enter');
    await text.fill('{"expression": "41 + 1"}');
    await page.keyboard.press('Control+Enter');
    await page.locator('[data-turn]').getByText('It is 42.').waitFor();
    await waitForEvent(sessionIdOf(), 'TurnCompleted', 2);
    const events = await eventsOf(sessionIdOf());
    const called = events.filter(({ type }) => type === 'ToolCallRequested');
    expect(called.map(({ data }) => data['input'])).toEqual([{ expression: '41 + 1' }]);
    await page.locator('[data-call] summary').click();
    expect(
      await page.getByRole('region', { name: 'Arguments of calculator as approved' }).innerText(),
    ).toMatch(/"41 \+ 1"/);
    const types = events.map(({ type }) => type);
    expect(types.filter((type) => /^(Approval|ToolCall)/.test(type))).toEqual([
      'ApprovalRequested',
      'ApprovalGranted',
      'ToolCallRequested',
      'ToolCallCompleted',
    ]);
  });

  it('shows the session as it was, and acts only in the present', async () => {
    const { page } = world;
    const asked = await waitForEvent(sessionIdOf(), 'ApprovalRequested');
    await page.goto(`${page.url()}?at=${asked.position}`);
    await page.getByText(`As of ${asked.position}`).waitFor();
    await page.getByRole('region', { name: 'All arguments of calculator' }).waitFor();
    expect(await page.locator('[data-turn]').getByText('It is 42.').count()).toBe(0);
    expect(await button('Approve').isDisabled()).toBe(true);
    expect(await page.getByLabel('Message', { exact: true }).isDisabled()).toBe(true);
    await page.getByRole('slider').press('ArrowLeft');
    await page.waitForURL((url) => url.searchParams.get('at') === String(asked.position - 1));
    await button('Back to live').click();
    await page.locator('[data-turn]').getByText('It is 42.').waitFor();
  });

  it('shows money as it was, equal to the API at that position', async () => {
    const { page } = world;
    const asked = await waitForEvent(sessionIdOf(), 'ApprovalRequested');
    const path = `?at=${asked.position}`;
    const usage = await readApi<{ agents: { calls: number }[] }>(world, `/api/v1/usage${path}`);
    expect(usage).toMatchObject({ position: asked.position });
    await page.goto(`/money${path}`);
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'gpt', exact: true }) });
    expect(await row.getByRole('cell').nth(1).innerText()).toBe(String(usage.agents[0]?.calls));
    await page.goto(`/sessions/${asked.streamId.slice('session-'.length)}`);
    await page.locator('[data-turn]').getByText('It is 42.').waitFor();
  });

  it('leads from an answer to its context, facts, events, cost and trace', async () => {
    const { page } = world;
    const sessionId = sessionIdOf();
    const turn = await waitForEvent(sessionId, 'TurnRequested', 2);
    await page.getByRole('link', { name: 'Why', exact: true }).last().click();
    await heading('Why: please calculate it').waitFor();
    const context = page.getByRole('region', { name: 'Context', exact: true });
    await context.getByRole('link', { name: String(turn.position), exact: true }).waitFor();
    await expectContextParts(world, sessionId, String(turn.data['turnId']));
    const usage = await readApi<{ turns: { usage: { calls: number } }[] }>(
      world,
      `/api/v1/sessions/${sessionId}/turns?limit=1`,
    );
    const calls = page.getByRole('region', { name: 'Model calls' }).locator('tbody tr');
    expect(await calls.count()).toBe(usage.turns[0]?.usage.calls);
    const own = (await eventsOf(sessionId)).filter(({ data }) => data['turnId'] === turn.data['turnId']);
    const events = page.getByRole('region', { name: 'Events of the turn' }).locator('tbody tr');
    expect(await events.count()).toBe(own.length);
    const call = own.find(({ type }) => type === 'ModelCallStarted');
    await page.goto(`/events?open=${call?.position}`);
    await page.getByRole('link', { name: 'Why', exact: true }).click();
    await page.waitForURL((url) => url.pathname === `/sessions/${sessionId}/why/${call?.eventId}`);
    await heading('Why: please calculate it').waitFor();
    const marked = page.locator('tr[aria-current=true] td').first();
    expect(Number((await marked.innerText()).replaceAll(',', ''))).toBe(call?.position);
    await page.goto(`/why/${String(turn.data['turnId'])}`);
    await heading('Why: please calculate it').waitFor();
    await page.goto(`/sessions/${sessionId}`);
  });

  it('forks at an earlier turn, and shows where the fork and its origin part', async () => {
    const { page } = world;
    const origin = sessionIdOf();
    await button('Fork here').first().click();
    await page.getByText('The new session inherits 1 turn of this one').waitFor();
    await button('Fork').click();
    await page.waitForURL((url) => !url.pathname.endsWith(origin));
    const fork = sessionIdOf();
    await page.getByLabel('Message', { exact: true }).fill('something else');
    await page.keyboard.press('Enter');
    await waitForEvent(fork, 'TurnCompleted');
    await page.getByRole('link', { name: 'Compare with its origin' }).click();
    await page.getByText('Both have the first turn. They part at turn 2: message, answer, tools.').waitFor();
    const [forked] = (await eventsOf(fork)).filter(({ type }) => type === 'SessionForked');
    expect(forked?.data['origin']).toMatchObject({ sessionId: origin });
    await page.keyboard.press('n');
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Turn 2');
    await page.goto(`/sessions/${origin}`);
  });

  it('starts a what-if with the bound of its cost, and no tool runs again', async () => {
    const { page } = world;
    const origin = sessionIdOf();
    const asked = await waitForEvent(origin, 'TurnRequested', 2);
    await button('What if').last().click();
    const reserved = (await readEvents(world.stack, { type: 'BudgetReserved' })).filter(
      ({ data }) => data['turnId'] === asked.data['turnId'],
    );
    const bound = reserved.reduce((total, { data }) => total + Number(data['microUsd']), 0) / 1_000_000;
    await page.getByText(`at most $${bound.toFixed(bound < 0.01 ? 6 : 4)} for 2 model calls`).waitFor();
    await page.getByText('no budget limits it').waitFor();
    await page.getByText('1 tool call will not run again.').waitFor();
    await page.getByLabel('Model').selectOption('anthropic/claude-sonnet-4');
    await button('Start the what-if').click();
    await page.getByText('They part at turn 2: model, tools.').waitFor();
    const whatIf = new URL(page.url()).searchParams.get('b') ?? '';
    const types = (await eventsOf(whatIf)).map(({ type }) => type);
    expect(types.filter((type) => type === 'TurnCompleted')).toHaveLength(1);
    expect(await readApi(world, `/api/v1/sessions/${whatIf}`)).toMatchObject({ turns: 1 });
    await page.goto(`/sessions/${origin}`);
  });

  it('replays a turn from the record, event by event', async () => {
    const { page } = world;
    const before = await eventsOf(sessionIdOf());
    await button('Replay').last().click();
    const bar = page.getByRole('group', { name: 'Replay' });
    await bar.getByText('turn requested').waitFor();
    expect(await page.locator('[data-turn]').getByText('It is 42.').count()).toBe(0);
    for (let step = 0; step < 8; step++) await bar.getByRole('button', { name: 'One event on' }).click();
    await bar.getByRole('button', { name: 'Play', exact: true }).click();
    await page.locator('[data-turn]').getByText('It is 42.').waitFor();
    await bar.getByRole('button', { name: 'End the replay' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await eventsOf(sessionIdOf())).toEqual(before);
  });

  it('lists the log by position, and opens an event with its hash', async () => {
    const { page } = world;
    const sessionId = sessionIdOf();
    await page.goto(`/events?session=${sessionId}&type=ToolCallCompleted`);
    await page.getByRole('button', { name: 'ToolCallCompleted' }).click();
    const [logged] = await readApi<{ events: { hash: string; position: number }[] }>(
      world,
      `/api/v1/events?session=${sessionId}&type=ToolCallCompleted`,
    ).then(({ events }) => events);
    await page.getByText(logged?.hash ?? 'none').waitFor();
    expect(new URL(page.url()).searchParams.get('open')).toBe(String(logged?.position));
  });

  it('sets a budget, and shows the turn that it refuses', async () => {
    const { page } = world;
    await page.goto('/money');
    const usage = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'gpt', exact: true }) });
    await usage.getByRole('button', { name: 'Set budget' }).click();
    const dialog = page.getByRole('dialog', { name: 'Set the budget of gpt' });
    await dialog.getByLabel('Tokens', { exact: true }).fill('1');
    await dialog.getByRole('button', { name: 'Set budget' }).click();
    await dialog.waitFor({ state: 'detached' });
    const { scopes } = await readApi<{ scopes: object[] }>(world, '/api/v1/budgets?agent=gpt');
    expect(scopes).toContainEqual(expect.objectContaining({ key: 'agent/gpt', limitTokens: 1 }));
    await page.goto('/agents/gpt');
    await page.getByLabel('Message to Gpt').fill('Hello again');
    await button('Start a conversation').click();
    await page.locator('[data-turn] [data-state=failed]').waitFor();
    const failed = await waitForEvent(sessionIdOf(), 'TurnFailed');
    await page
      .locator('[data-turn]')
      .getByText(`(${String(failed.data['code'])})`)
      .waitFor();
    const failures = page.getByRole('log', { name: 'Failures' });
    await failures.getByRole('link', { name: 'turn failed' }).waitFor();
    await failures.getByRole('button', { name: 'Close this message' }).click();
    expect(await failures.getByRole('link').count()).toBe(0);
    expect(failed.data['code']).toMatch(/BUDGET/);
  });

  describePastPages(() => world);

  it('signs in by a one-time link with the rights of its key, and out again', async () => {
    const { page, stack } = world;
    const post = async (path: string, body: object, token?: string) => {
      const headers = {
        'content-type': 'application/json',
        ...(token && { authorization: `Bearer ${token}` }),
      };
      const sent = { method: 'POST', headers, body: JSON.stringify(body) };
      return (await (await fetch(stack.gatewayUrl + path, sent)).json()) as Record<string, string>;
    };
    const key = await post('/api/v1/keys', { name: 'reader', role: 'viewer' });
    const link = await post('/api/v1/dashboard/links', {}, key['token']);
    await page.goto(link['path'] ?? '');
    await heading('Overview').waitFor();
    await page.goto('/settings');
    await button('Sign out').waitFor();
    await page.getByText('agents:write', { exact: true }).waitFor({ state: 'detached' });
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.goto('/agents/gpt');
    await page.getByRole('button', { name: 'Pause', exact: true, disabled: true }).waitFor();
    await page.goto('/settings');
    await button('Sign out').click();
    await page.getByText('agents:write', { exact: true }).waitFor();
  });

  it('shows the figures of the gateway, which follow its turns', async () => {
    const { page, stack } = world;
    await page.goto('/performance');
    const row = page.getByRole('row').filter({ hasText: 'turn first text' });
    await row.waitFor();
    const text = await (await fetch(`${stack.gatewayUrl}/metrics`)).text();
    const [, count = ''] = /^antiphon_turn_first_text_seconds_count (\d+)$/m.exec(text) ?? [];
    expect(await row.getByRole('cell').nth(1).innerText()).toBe(count);
    // The server has counted the turns while no page of metrics was open.
    const turns = await readEvents(stack, { type: 'TurnRequested' });
    const caption = page.getByRole('figure', { name: 'Turns', exact: true }).locator('figcaption');
    expect(await caption.innerText()).toContain(`${turns.length} turns in 1 hour`);
    const { agents } = await readApi<{ agents: object[] }>(world, '/api/v1/agents');
    await page.goto('/agents');
    await page.getByRole('link', { name: 'Researcher', exact: true }).waitFor();
    expect(agents).toHaveLength(4);
  });

  it('draws the stages of a turn, says when they are stale, and makes no read while it is hidden', async () => {
    const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
    let reads = 0;
    page.on('request', (request) => (reads += Number(new URL(request.url()).pathname === '/metrics')));
    await page.clock.install();
    await page.goto('/performance');
    const stages = page.getByRole('list', { name: 'Stages of a turn, p50 and p95' });
    expect(await stages.getByRole('listitem').first().innerText()).toMatch(
      /^.*(?:p50 .+ · p95 |mean .+ · \d+ so far)/s,
    );
    await page.route('**/metrics', (route) => route.fulfill({ status: 500, body: '{}' }));
    await page.clock.fastForward(10_000);
    await page.getByText('The figures are stale.').waitFor();
    await page.unroute('**/metrics');
    await page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { value: 'hidden', writable: true })`,
    );
    const before = reads;
    await page.clock.fastForward(60_000);
    expect(reads).toBe(before);
    await page.evaluate(`document.visibilityState = 'visible'; dispatchEvent(new Event('visibilitychange'))`);
    await page.getByText('The figures are stale.').waitFor({ state: 'detached' });
    expect(reads).toBe(before + 1);
    await page.close();
  });

  it('goes to any page by keys, with the focus on its heading', async () => {
    const { page } = world;
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: /Page, agent/ }).fill('money');
    await page.keyboard.press('Enter');
    await heading('Money').waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Money');
    await page.keyboard.press('g');
    await page.keyboard.press('u');
    await heading('Audit').waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
  });

  it('shows within 2 s that the connection is lost, and continues after it', async () => {
    const { page } = world;
    await page.context().setOffline(true);
    await page.getByText('Connection lost').waitFor({ timeout: 2_000 });
    await page.context().setOffline(false);
    await page.getByText('Connected', { exact: true }).waitFor();
  });

  it('violates no rule of WCAG 2.2 AA on its main pages', async () => {
    const { page } = world;
    const [started] = await readEvents(world.stack, { type: 'SessionStarted' });
    const session = `/sessions/${started?.streamId.slice('session-'.length)}`;
    const paths = ['/', `${session}?at=20`, '/approvals', '/events?open=1'];
    for (const [index, path] of paths.entries()) {
      await page.emulateMedia({ colorScheme: index % 2 === 0 ? 'light' : 'dark' });
      await page.goto(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await expectNone('main p[aria-busy=true]');
      expect([path, await findViolations(page)]).toEqual([path, []]);
    }
  }, 60_000);

  it('sends no request to another origin, breaks no policy and logs no error', () => {
    expect(world.leaks).toEqual([]);
    expect(world.errors.filter((text) => !/ERR_INTERNET_DISCONNECTED|WebSocket/.test(text))).toEqual([]);
  });
});
