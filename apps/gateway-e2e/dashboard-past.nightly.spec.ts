import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Page } from 'playwright-core';
import { connectClient } from '@antiphon/testing/client';
import { checkFigure, percentile } from '@antiphon/testing/load';
import { readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { waitForValue } from './stack-under-test.js';

jest.setTimeout(1_500_000);

/** Number of random positions at which every page is compared with the API. */
const POSITIONS = Number(process.env['ANTIPHON_PAST_PAGES'] ?? 200);
const TURNS = 24;

type Json = Record<string, unknown>;

let world: DashboardWorld;
let head = 0;
const ids = { session: '', turn: '', run: '' };

const change = async (method: string, path: string, body: unknown): Promise<Json> => {
  const response = await fetch(`${world.stack.gatewayUrl}/api/v1${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Json;
};

const WORKSPACE = '/workspaces/default';

/** Makes a file, a plan, a chat with a turn, tasks that end and wait, and a message. */
const addWork = async (turn: number): Promise<void> => {
  const write = (path: string, text: string) => change('PUT', `${WORKSPACE}/files/${path}`, { text });
  await write(`file-${turn}.md`, 'text');
  await write('changed.md', `version of turn ${turn}`);
  await write(`tides-${turn}.plan.md`, `# Tides\n\n- [${turn % 8 === 1 ? 'x' : ' '}] Add the heights\n`);
  const chat = await change('POST', `${WORKSPACE}/chats`, { name: `chat ${turn}`, agent: 'claude' });
  await change('POST', `${WORKSPACE}/chats/${String(chat['id'])}`, { command: 'message', content: 'hello' });
  await change('POST', '/tasks', { title: `task ${turn}`, prompt: 'hello', agent: 'claude' });
  await change('POST', '/tasks', { title: `waits ${turn}`, prompt: 'hello', capabilities: ['none-has-it'] });
  const content = { text: `message ${turn}` };
  await change('POST', '/messages', { to: { agent: 'gpt' }, type: 'AgentSpoke', content });
};

/** Makes sessions, agents, tasks, runs and limits, so that each page has a past. */
const makePast = async (): Promise<void> => {
  const client = await connectClient(world.stack.wsUrl);
  const node = (id: string, needs: string[]) => ({ id, agent: 'claude', prompt: 'hello', needs });
  const workflow = { name: 'two', nodes: [node('one', []), node('two', ['one'])] };
  const { id: workflowId } = await change('POST', '/workflows', workflow);
  for (let turn = 0; turn < TURNS; turn++) {
    const address = { channel: 'past', account: 'web', peer: `p${turn % 3}`, agent: 'claude' };
    const frames = await client.stream('chat.send', { ...address, content: `turn ${turn}` }).done();
    const accepted = frames.find(({ event }) => event === 'accepted')?.data as Record<
      'sessionId' | 'turnId',
      string
    >;
    if (turn === 0) [ids.session, ids.turn] = [accepted.sessionId, accepted.turnId];
    if (turn % 8 === 3) ids.run = String((await change('POST', `/workflows/${workflowId}/start`, {}))['id']);
    if (turn % 5 === 2) await change('POST', '/agents', { base: 'claude', name: `helper ${turn}` });
    if (turn % 4 === 1) await addWork(turn);
    if (turn % 6 === 4)
      await change('PUT', '/budgets/day', { limitTokens: 1_000_000 + turn, limitMicroUsd: null });
  }
  await client.close();
  head = await waitForValue('a log at rest', async () => {
    const state = await readApi<{ head: number; projections: { lag: number }[] }>(
      world,
      '/api/v1/projections',
    );
    const { runs } = await readApi<{ runs: { status: string }[] }>(world, '/api/v1/runs');
    const { tasks } = await readApi<{ tasks: { title: string; state: string }[] }>(world, '/api/v1/tasks');
    const isAtRest = state.projections.every(({ lag }) => lag === 0);
    const isDone = tasks.every(({ title, state: now }) => title.startsWith('waits') || now === 'completed');
    return isAtRest && isDone && runs.every(({ status }) => status !== 'running') ? state.head : undefined;
  });
};

beforeAll(async () => {
  world = await startDashboardWorld({ settings: '' });
  await makePast();
  await world.page.goto('/');
  await world.page.getByText('Connected', { exact: true }).waitFor();
});
afterAll(() => world?.stop());

const withPosition = (path: string, at: number): string => `${path}${path.includes('?') ? '&' : '?'}at=${at}`;

/** Reads a path as of a position. A fold of the past that is not ready is asked for again. */
const readAt = (path: string, at: number): Promise<Json | null> =>
  waitForValue(`${path} at ${at}`, async () => {
    // An `at` of files is a version.
    const address = withPosition(path, at).replace(/(\/files\?.*)at=/, '$1position=');
    const response = await fetch(world.stack.gatewayUrl + address);
    if (response.status === 503) return undefined;
    return response.status === 200 ? { ...((await response.json()) as Json) } : { isMissing: true };
  });

const listOf = (reply: Json | null, name: string): Json[] => (reply?.[name] ?? []) as Json[];
const texts = (locator: string): Promise<string[]> => world.page.locator(locator).allInnerTexts();
const values = (locator: string, name: string): Promise<(string | null)[]> =>
  world.page
    .locator(locator)
    .evaluateAll((found, field) => found.map((one) => one.getAttribute(field)), name);
const withoutAt = (links: readonly (string | null)[]): string[] => [
  ...new Set(links.map((link) => decodeURIComponent(link?.split(/[/?]/).at(2) ?? ''))),
];

interface View {
  readonly path: () => string;
  readonly api: () => string;
  /** Returns values of the page. */
  readonly shown: () => Promise<unknown>;
  /** Returns the same values of a reply. */
  readonly expected: (reply: Json | null) => unknown;
}

const VIEWS: Readonly<Record<string, View>> = {
  events: {
    path: () => '/events',
    api: () => '/api/v1/events?order=desc&limit=10',
    shown: async () =>
      (await texts('[role=rowgroup] [role=cell]:first-child'))
        .slice(0, 10)
        .map((text) => Number(text.replaceAll(',', ''))),
    expected: (reply) => listOf(reply, 'events').map(({ position }) => position),
  },
  sessions: {
    path: () => '/sessions',
    api: () => '/api/v1/sessions?limit=100',
    shown: async () => withoutAt(await values('main tbody a[href^="/sessions/"]', 'href')),
    expected: (reply) => listOf(reply, 'sessions').map(({ id }) => id),
  },
  session: {
    path: () => `/sessions/${ids.session}`,
    api: () => `/api/v1/sessions/${ids.session}/turns?limit=40`,
    shown: () => values('[data-turn]', 'data-turn'),
    expected: (reply) =>
      listOf(reply, 'turns')
        .map(({ turnId }) => turnId)
        .reverse(),
  },
  runs: {
    path: () => '/runs',
    api: () => '/api/v1/runs',
    shown: async () => withoutAt(await values('main tbody a[href^="/runs/"]', 'href')),
    expected: (reply) => listOf(reply, 'runs').map(({ id }) => id),
  },
  run: {
    path: () => `/runs/${ids.run}`,
    api: () => `/api/v1/runs/${ids.run}`,
    shown: () => texts('main tbody tr td:nth-child(2)'),
    expected: (reply) => listOf(reply, 'tasks').map(({ status }) => status),
  },
  agents: {
    path: () => '/agents?view=table',
    api: () => '/api/v1/agents',
    shown: async () => withoutAt(await values('main tbody a[href^="/agents/"]', 'href')).sort(),
    expected: (reply) =>
      listOf(reply, 'agents')
        .map(({ id }) => id)
        .sort(),
  },
  cards: {
    path: () => '/agents',
    api: () => '/api/v1/agents',
    shown: async () => withoutAt(await values('main article a[href^="/agents/"]', 'href')).sort(),
    expected: (reply) =>
      listOf(reply, 'agents')
        .map(({ id }) => id)
        .sort(),
  },
  files: {
    path: () => '/files',
    api: () => '/api/v1/workspaces/default/files?path=&limit=100&foldersFirst=true',
    shown: () => texts('[role=treeitem] [data-name]'),
    expected: (reply) => listOf(reply, 'entries').map(({ path }) => path),
  },
  chats: {
    path: () => '/chats',
    api: () => '/api/v1/sessions?limit=100&channel=chat',
    shown: async () =>
      withoutAt(await values('main a[href^="/chats/"]', 'href')).filter((id) => id !== 'new'),
    expected: (reply) => listOf(reply, 'sessions').flatMap(({ chat }) => (chat as Json | null)?.['id'] ?? []),
  },
  tasks: {
    path: () => '/tasks',
    api: () => '/api/v1/tasks?kind=task&limit=100',
    shown: async () => withoutAt(await values('main tbody a[href^="/tasks/"]', 'href')),
    expected: (reply) => listOf(reply, 'tasks').map(({ id }) => id),
  },
  plans: {
    path: () => '/plans',
    api: () => '/api/v1/plans/list?limit=50',
    shown: () => texts('main tbody td:first-child'),
    expected: (reply) => listOf(reply, 'plans').map(({ path }) => path),
  },
  messages: {
    path: () => '/messages',
    api: () => '/api/v1/messages?limit=100',
    shown: () => values('[data-message]', 'data-message'),
    expected: (reply) => listOf(reply, 'messages').map(({ messageId }) => messageId),
  },
};
/** Pages of which only the address of their reads is compared. */
const OTHERS = ['/', '/approvals', '/workflows', '/money', '/memory', '/audit', '/attention', '/performance'];
/** Pages that read little or nothing as of a position: they mark what is current. */
const OF_NOW: ReadonlySet<string> = new Set(['/audit', '/attention', '/performance']);

/** The part of a page in which nothing is being read. */
const IDLE = 'main:not([aria-busy=true]):not(:has(p[aria-busy=true]))';

/** Moves the page to a position, as Back does, and waits until nothing of another one is shown. */
const move = async (path: string, at: number): Promise<void> => {
  await world.page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(withPosition(path, at))}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await world.page.locator(IDLE).waitFor();
};

describe('every page at a position of the log', () => {
  const durations: number[] = [];
  const positions = Array.from({ length: POSITIONS }, () => Math.random());

  it.each(Object.entries(VIEWS))('shows for %s what the API returns there', async (_, view) => {
    for (const part of positions) {
      const at = 1 + Math.floor(part * (head - 1));
      const expected = view.expected(await readAt(view.api(), at));
      const startedAt = performance.now();
      await move(view.path(), at);
      let shown: unknown;
      const isEqual = async (): Promise<boolean> =>
        JSON.stringify((shown = await view.shown())) === JSON.stringify(expected);
      for (const until = performance.now() + 5_000; !(await isEqual()) && performance.now() < until;)
        await world.page.waitForTimeout(20);
      durations.push(performance.now() - startedAt);
      expect({ at, shown }).toEqual({ at, shown: expected });
    }
  });

  it.each(OTHERS)('reads all of %s as of the position', async (path) => {
    const wrong: string[] = [];
    let reads = 0;
    let at = 0;
    const note = (request: { url(): string }): void => {
      const url = new URL(request.url());
      const takesPosition =
        /^\/api\/v1\/(sessions|agents|runs|tasks|approvals|budgets|usage|memory|workflows)/;
      // The number of waiting approvals in the navigation is of the present.
      const isOfNow = url.searchParams.get('status') === 'pending' && !url.searchParams.has('at');
      if (!takesPosition.test(url.pathname) || isOfNow) return;
      reads++;
      if (url.searchParams.get('at') !== String(at)) wrong.push(url.pathname + url.search);
    };
    at = head;
    await move(path, head);
    await world.page.waitForTimeout(500);
    world.page.on('request', note);
    for (const part of positions.slice(0, 20)) {
      at = 1 + Math.floor(part * (head - 1));
      await move(path, at);
      await world.page.waitForTimeout(150);
    }
    world.page.off('request', note);
    expect(wrong).toEqual([]);
    expect(OF_NOW.has(path) || reads > 0).toBe(true);
  });

  /** Pages whose whole text is compared. */
  const PAGES: readonly (() => string)[] = [
    ...Object.values(VIEWS).map(({ path }) => path),
    // Charts of the present move with the clock.
    ...OTHERS.filter((path) => path !== '/performance').map((path) => () => path),
    () => '/agents/claude',
    () => `/sessions/${ids.session}/why/${ids.turn}`,
  ];
  it('shows on every page the same text after a move as when it is opened there', async () => {
    const opened = await world.browser.newPage({
      viewport: world.page.viewportSize(),
      baseURL: new URL(world.page.url()).origin,
    });
    // How long ago something was continues while the pages are compared.
    const mainText = async (page: Page): Promise<string> =>
      (await page.locator('main').innerText()).replaceAll(/\d+ (s|min|h) ago|just now|\bnow\b/g, 'then');
    for (const path of PAGES)
      for (const part of positions.slice(0, Math.max(4, POSITIONS / 10))) {
        const at = 1 + Math.floor(part * (head - 1));
        await move(path(), at);
        await opened.goto(withPosition(path(), at));
        await opened.locator(IDLE).waitFor();
        const differs = async (): Promise<boolean> =>
          (await mainText(world.page)) !== (await mainText(opened));
        for (const until = performance.now() + 5_000; (await differs()) && performance.now() < until;)
          await world.page.waitForTimeout(50);
        expect({ path: path(), at, text: await mainText(world.page) }).toEqual({
          ...{ path: path(), at, text: await mainText(opened) },
        });
      }
    await opened.close();
  });

  it('shows a position soon', () =>
    checkFigure({
      what: `dashboard: a page at one of ${durations.length} positions (p95)`,
      value: percentile(durations, 0.95),
      unit: 'ms',
      atMost: 3_000,
    }));
});
