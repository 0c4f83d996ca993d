import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { MockScript } from '@antiphon/testing/providers';
import type { Page } from 'playwright-core';
import {
  findViolations,
  readApi,
  savePictures,
  startDashboardWorld,
  type DashboardWorld,
} from './dashboard-world.js';
import { readEvents, runCli, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

/** Refuses a message about money, asks for the calculator, and names a harbour otherwise. */
const model: MockScript = ({ user, toolResults }) => {
  if (user.includes('invoice')) return { status: 402, body: { error: { message: 'Insufficient credits' } } };
  if (user.includes('calculate') && toolResults.length === 0)
    return { tools: [{ id: 'call_1', name: 'calculator', input: { expression: '40 + 2' } }] };
  return { text: ['The ferry leaves from Dagebüll at noon.'] };
};

interface Found {
  readonly results: readonly { kind: string; id: string; title: string; text: string; sessionId: string }[];
}

/** The calculator needs an approval, and a plug-in has no file. */
const SETTINGS = `
[[agents.approvals]]
tool = "calculator"

[[plugins]]
name = "survey"
path = "missing.wasm"
`;

let world: DashboardWorld;
let client: SocketClient;
let page: Page;
let peers = 0;
beforeAll(async () => {
  world = await startDashboardWorld({ model, settings: SETTINGS });
  client = await connectClient(world.stack.wsUrl);
  page = world.page;
});
afterAll(async () => {
  await client?.close();
  await world?.stop();
});

const search = (query: string) => readApi<Found>(world, `/api/v1/search?${query}`);
const send = (content: string, agent = 'gpt') => {
  const params = { channel: 'test', account: 'e2e', peer: `search-${++peers}`, content, agent };
  return client.stream('chat.send', params);
};
const post = async (path: string, body: object): Promise<Record<string, string>> => {
  const response = await fetch(`${world.stack.gatewayUrl}${path}`, {
    ...{ method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } },
  });
  expect([path, response.status < 300]).toEqual([path, true]);
  return (await response.json()) as Record<string, string>;
};
const option = (name: RegExp) => page.getByRole('option', { name });
const openPalette = async (key: string, text: string): Promise<void> => {
  // Keys work once the page is drawn.
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.keyboard.press(key);
  await page.getByRole('combobox', { name: /^Page, agent/ }).fill(text);
};

describe('a search', () => {
  it('finds a word of a message, an answer, a task, a file and an agent, each with its reason', async () => {
    await send('When does the Hallig boat go?').done();
    await post('/api/v1/tasks', {
      title: 'Count the dikes',
      prompt: 'List every polder',
      worker: 'external',
    });
    await fetch(`${world.stack.gatewayUrl}/api/v1/workspaces/default/files/notes/wadden.md`, {
      ...{ method: 'PUT', body: JSON.stringify({ text: 'tide' }) },
      headers: { 'content-type': 'application/json' },
    });
    const kinds = async (q: string) => (await search(`q=${q}`)).results.map(({ kind }) => kind);
    expect(await kinds('hallig')).toEqual(['message']);
    expect(await kinds('dagebüll')).toEqual(['answer']);
    expect(await kinds('DAGEB')).toEqual(['answer']);
    expect(await kinds('polder')).toEqual(['task']);
    expect(await kinds('wadden')).toEqual(['file']);
    expect(await kinds('gpt')).toContain('agent');
    expect((await search('q=ferry')).results[0]).toMatchObject({
      ...{ title: 'When does the Hallig boat go?', text: 'The ferry leaves from Dagebüll at noon.' },
    });
    const cli = await runCli(world.stack, ['search', 'hallig', 'boat']);
    expect([cli.code, cli.stdout]).toEqual([0, expect.stringContaining('When does the Hallig boat go?')]);
  });

  it('is refused without a text, and pages by a cursor', async () => {
    const bad = await fetch(`${world.stack.gatewayUrl}/api/v1/search?q=%20`);
    expect(bad.status).toBe(400);
    await send('ferry again').done();
    type Paged = Found & { readonly nextCursor: string | null };
    const first = (await search('q=ferry&limit=1')) as Paged;
    const second = await search(`q=ferry&limit=10&cursor=${first.nextCursor}`);
    expect(first.results).toHaveLength(1);
    expect(second.results.map(({ id, kind }) => `${kind} ${id}`)).not.toContain(
      `${first.results[0]?.kind} ${first.results[0]?.id}`,
    );
  });

  it('never finds a deleted message', async () => {
    const chat = await post('/api/v1/workspaces/default/chats', { name: 'gone', agent: 'gpt' });
    const path = `/api/v1/workspaces/default/chats/${chat['id']}`;
    await post(path, { command: 'message', content: 'the Vogelkoje is secret' });
    const [found] = await waitForValue('the message', async () => {
      const { results } = await search('q=vogelkoje&kinds=message');
      return results.length > 0 ? results : undefined;
    });
    await waitForValue('the end of the turn', async () => {
      const ended = await readEvents(world.stack, { type: 'TurnCompleted' });
      return ended.find(({ data }) => data['turnId'] === found?.id);
    });
    const deleted = await fetch(`${world.stack.gatewayUrl}${path}/messages/${found?.id}`, {
      method: 'DELETE',
    });
    expect(deleted.status).toBeLessThan(300);
    expect((await search('q=vogelkoje')).results).toEqual([]);
  });
});

describe('the palette', () => {
  it('finds a word of an answer, and opens the conversation at the turn by keys alone', async () => {
    await page.goto('/agents');
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    await openPalette('/', 'dagebüll');
    await option(/Dagebüll at noon/)
      .first()
      .waitFor();
    await savePictures(page, 'palette');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/(?:chats|sessions)\/[^/]+\?from=\d+$/);
    await page.getByText('Dagebüll').first().waitFor();
  });

  it('opens a chat at the turn that has the word, and marks it', async () => {
    const chat = await post('/api/v1/workspaces/default/chats', { name: 'islands', agent: 'gpt' });
    const path = `/api/v1/workspaces/default/chats/${chat['id']}`;
    for (const content of ['a message before', 'is Neuwerk an island', 'a message after'])
      await post(path, { command: 'message', content });
    await openPalette('/', 'neuwerk');
    await option(/Neuwerk an island/).click();
    await page.waitForURL(`**/chats/${chat['id']}?from=*`);
    await page.locator('[data-found]').getByText('is Neuwerk an island').waitFor();
  });

  it('offers a chat with a text that it finds nowhere', async () => {
    await openPalette('/', 'zzqx nowhere');
    await page.getByText('Nothing is found.').waitFor();
    await option(/Start a chat with this text/).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/chats\/new$/);
    expect(await page.getByRole('textbox', { name: /Message/ }).inputValue()).toBe('zzqx nowhere');
    await page.getByRole('textbox', { name: /Message/ }).fill('');
  });

  it('jumps to a time, at which pages show what the API returns', async () => {
    const [first] = await readEvents(world.stack, { type: 'TurnCompleted' });
    await send('a later message').done();
    await page.goto('/events');
    const time = new Date(new Date(String(first?.recordedAt)).getTime() + 1_000).toISOString().slice(0, 19);
    await openPalette('Control+k', `@${time}Z`);
    await option(/Show everything as of/).click();
    await page.waitForURL(/at=\d+/);
    const at = Number(new URL(page.url()).searchParams.get('at'));
    const until = await readApi<{ events: { position: number }[] }>(
      ...([world, `/api/v1/events?until=${time}Z&order=desc&limit=1`] as const),
    );
    expect(at).toBe(until.events[0]?.position);
    await page.goto(`/sessions?at=${at}`);
    const { sessions } = await readApi<{ sessions: { id: string }[] }>(world, `/api/v1/sessions?at=${at}`);
    const links = page.locator('main tbody tr td:first-child a');
    await links.first().waitFor();
    const shown = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    expect(shown.map((href) => href?.split(/[/?]/)[2])).toEqual(sessions.map(({ id }) => id));
    const now = await readApi<{ sessions: unknown[] }>(world, '/api/v1/sessions');
    expect(now.sessions.length).toBeGreaterThan(sessions.length);
  });
});

/** Records the notifications of the page, which Chromium shows too, and lets the tab seem hidden. */
const WATCH = `
  const [shown, Real] = [[], Notification];
  class Recorded extends Real {
    constructor(title, options) {
      super(title, options);
      shown.push(title + ': ' + options.body);
    }
  }
  Object.assign(globalThis, { Notification: Recorded, shown, isTabHidden: false });
  Object.defineProperty(document, 'hidden', { get: () => isTabHidden });`;
const watchNotifications = async (): Promise<void> => {
  await page.context().grantPermissions(['notifications']);
  await page.addInitScript({ content: WATCH });
};
const hideTab = (isHidden: boolean) =>
  page.evaluate((value) => void Reflect.set(globalThis, 'isTabHidden', value), isHidden);
const readNotifications = () => page.evaluate(() => [...(Reflect.get(globalThis, 'shown') as string[])]);

describe('the page of attention', () => {
  it('shows an approval, a refused turn and a stuck task once each, until they are solved or put away', async () => {
    await watchNotifications();
    const { id: stuck } = await post('/api/v1/tasks', {
      ...{ title: 'Survey the reef', prompt: 'dive', capabilities: ['diving'] },
    });
    const waiting = send('please calculate');
    await waiting.waitFor('the approval', ({ event }) => event === 'approval');
    await send('pay the invoice').done();
    await send('pay the invoice again').done();
    await page.goto('/attention');
    const list = page.getByRole('list', { name: 'What needs attention' });
    const approval = list.getByText(/asks to call calculator/);
    const failure = list.getByText(/^2 × .*PROVIDER\.ERROR/);
    await approval.waitFor();
    await failure.waitFor();
    await list.getByText('The task Survey the reef has no agent').waitFor();
    await list.getByText('no agent has diving').waitFor();
    expect(await list.getByRole('listitem').count()).toBe(3);
    expect(await findViolations(page)).toEqual([]);
    await savePictures(page, 'attention');
    await page.getByRole('button', { name: 'Attention 3', exact: true }).click();
    const drawer = page.getByRole('dialog', { name: 'Attention' });
    await drawer.getByText(/asks to call calculator/).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await savePictures(page, 'attention-drawer');
    await drawer.getByRole('button', { name: /^Dismiss: 2 ×/ }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Attention 2', exact: true }).waitFor();
    await failure.waitFor({ state: 'detached' });
    await page.reload();
    await approval.waitFor();
    expect(await failure.count()).toBe(0);
    await list.getByRole('link', { name: 'Decide' }).click();
    await page.waitForURL(/\/approvals\?id=/);
    await waitForValue('the decision', async () => {
      const approve = page.getByRole('button', { name: 'Approve', exact: true });
      if ((await approve.count()) > 0) await approve.click({ timeout: 1_000 }).catch(() => undefined);
      return (await readEvents(world.stack, { type: 'ApprovalGranted' }))[0];
    });
    await waiting.done();
    await fetch(`${world.stack.gatewayUrl}/api/v1/tasks/${stuck}`, {
      ...{ method: 'PATCH', body: JSON.stringify({ action: 'cancel' }) },
      headers: { 'content-type': 'application/json' },
    });
    await page.getByRole('button', { name: 'Attention 0', exact: true }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('n');
    await page.getByText('Nothing needs you').waitFor();
  });

  it('asks about notifications after the first decision, and sends one of a cause to a hidden tab', async () => {
    await page
      .getByRole('region', { name: 'Notifications' })
      .getByRole('button', { name: 'Notify me' })
      .click();
    await send('pay the invoice once more').done();
    await page.getByRole('button', { name: 'Attention 1', exact: true }).waitFor();
    expect(await readNotifications()).toEqual([]);
    await page.getByRole('button', { name: /^Dismiss: 3 ×/ }).click();
    await hideTab(true);
    for (let count = 4; count <= 5; count++) {
      await send('pay the invoice again and again').done();
      await page.getByText(new RegExp(`^${count} × .*PROVIDER`)).waitFor();
    }
    expect(await readNotifications()).toEqual(['Antiphon: Something needs your attention.']);
    await hideTab(false);
  });
});

describe('the catalogue of tools', () => {
  interface Tool {
    readonly name: string;
    readonly calls: { readonly count: number; readonly failures: number };
    readonly agents: readonly { readonly id: string; readonly approval: object | null }[];
  }
  const region = (name: string) => page.getByRole('region', { name, exact: true });

  // @shows I8 I9
  it('shows arguments, agents, approval rules and calls of each tool, and plug-ins without a file', async () => {
    const { tools } = await readApi<{ tools: readonly Tool[] }>(world, '/api/v1/tools');
    const calculator = tools.find(({ name }) => name === 'calculator');
    const asked = calculator?.agents.filter(({ approval }) => approval !== null).map(({ id }) => id);
    expect(asked).toEqual(['gpt']);
    expect(calculator?.calls).toMatchObject({ count: 1, failures: 0 });
    await page.goto('/agents');
    await openPalette('/', 'calculator');
    await option(/^calculator .*tool$/).click();
    await page.waitForURL('**/tools?tool=calculator');
    await region('Arguments of calculator').getByText('expression', { exact: true }).waitFor();
    await region('Agents that have calculator')
      .getByText(/each call, by operator or above/)
      .waitFor();
    const row = (name: string) => page.locator(`[data-tool="${name}"]`);
    expect(await row('calculator').getByText('1', { exact: true }).count()).toBeGreaterThan(0);
    await row('echo').getByText('never called').waitFor();
    await row('send_message').getByText('native').waitFor();
    await region('Plug-ins that are not loaded').getByText('the file does not exist').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await savePictures(page, 'tools');
    const cli = await runCli(world.stack, ['tool', 'show', 'calculator']);
    expect([cli.code, cli.stdout]).toEqual([0, expect.stringMatching(/1, 0 failed[^]*gpt: approval always/)]);
  });

  it('shows the agents and calls of a position, and says what has no past', async () => {
    await page.goto('/tools?at=30');
    await page.getByText(/no event records them/).waitFor();
    await page.locator('[data-tool="calculator"]').getByText('never called').waitFor();
    await savePictures(page, 'tools-past');
    expect(await findViolations(page)).toEqual([]);
  });

  it('says to a role without the right that it lacks it, and reads nothing', async () => {
    const me = await readApi<{ permissions: string[] }>(world, '/api/v1/me');
    const reads: string[] = [];
    page.on('request', (request) => void (/v1\/tools/.test(request.url()) && reads.push(request.url())));
    const permissions = me.permissions.filter((name) => name !== 'plugins:read');
    await page.route('**/api/v1/me', (route) => route.fulfill({ json: { ...me, permissions } }));
    await page.goto('/tools');
    await page.getByText(/lacks plugins:read/).waitFor();
    expect(reads).toEqual([]);
    await page.unroute('**/api/v1/me');
  });
});

describe('the workspace menu', () => {
  it('names workspace and role, and signs in to another workspace by its key', async () => {
    const { key } = (await post('/api/v1/workspaces', { id: 'reef' })) as unknown as {
      key: { token: string };
    };
    await page.goto('/tools');
    await page.getByRole('button', { name: /default$/ }).click();
    const menu = page.getByRole('dialog', { name: 'Workspace' });
    await menu.getByText(/A key belongs to one workspace/).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await savePictures(page, 'workspace');
    await menu.getByRole('button', { name: 'Sign in to another workspace' }).click();
    const form = page.getByRole('dialog', { name: 'Sign in to another workspace' });
    await form.getByLabel('API key').fill(key.token);
    await form.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('button', { name: /reef$/ }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: /default$/ }).waitFor();
  });

  it('causes no error of the page and no request to elsewhere', () => {
    // A workspace without roles has no folder of them.
    const errors = world.errors.filter((text) => !text.startsWith('Failed to load resource'));
    expect([errors, world.leaks]).toEqual([[], []]);
  });
});
