import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Locator } from 'playwright-core';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const TOKEN = 'the-token-of-the-keyboard-has-over-32-characters';
const MAX_TABS = 150;

let world: DashboardWorld;
const call = createApiCaller(() => world.stack.gatewayUrl);
beforeAll(async () => {
  world = await startDashboardWorld({ gateway: `token = "${TOKEN}"` });
});
afterAll(() => world?.stop());

const keyboard = () => world.page.keyboard;
const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });
const link = (name: string) => world.page.getByRole('link', { name, exact: true });
const heading = (name: string | RegExp) => world.page.getByRole('heading', { level: 1, name });
const graph = () => world.page.getByRole('application', { name: /^Graph of the/ });
const hasFocus = async (target: Locator): Promise<boolean> =>
  (await target.and(world.page.locator(':focus')).count()) > 0;

/** Presses Tab until the element has the focus: only what a person can reach by keys is reached. */
const tabTo = async (target: Locator, key = 'Tab'): Promise<void> => {
  await target.first().waitFor();
  for (let pressed = 0; pressed < MAX_TABS; pressed++) {
    if (await hasFocus(target)) return;
    await keyboard().press(key);
  }
  throw new Error(`${MAX_TABS} × ${key} did not reach ${String(target)}`);
};
const press = async (target: Locator, key = 'Enter'): Promise<void> => {
  await tabTo(target);
  await keyboard().press(key);
};
const goTo = async (words: string): Promise<void> => {
  await keyboard().press('Control+k');
  await world.page
    .getByRole('combobox', { name: /Page, agent/ })
    .and(world.page.locator(':focus'))
    .waitFor();
  await keyboard().type(words);
  await keyboard().press('Enter');
};
const sessionIdOf = (): string => new URL(world.page.url()).pathname.split('/').at(-1) ?? '';

describe('the dashboard by keyboard alone', () => {
  it('signs in with a pasted key', async () => {
    const { page } = world;
    await page.goto('/');
    await tabTo(page.getByLabel('API key'));
    await keyboard().insertText(TOKEN);
    await keyboard().press('Enter');
    await heading('Overview').waitFor();
    expect(await page.evaluate('document.cookie')).toBe('');
  });

  it('spawns an agent, and the focus goes to its page', async () => {
    const { page } = world;
    await goTo('spawn');
    await page.getByRole('dialog', { name: 'Spawn an agent' }).waitFor();
    await tabTo(page.getByLabel('Name'));
    await keyboard().type('Keys');
    await keyboard().press('Tab');
    await keyboard().type('gpt');
    await press(button('Spawn'));
    await heading('Keys').and(page.locator(':focus')).waitFor();
    const { body } = await call<{ name: string }>(
      TOKEN,
      'GET',
      `/agents/${decodeURIComponent(sessionIdOf())}`,
    );
    expect(body.name).toBe('Keys');
  });

  it('chats, and approves a tool call in place', async () => {
    const { page } = world;
    await tabTo(page.getByLabel('Message to Keys'));
    await keyboard().type('please calculate it');
    await press(button('Start a conversation'));
    await page.getByRole('region', { name: 'All arguments of calculator' }).waitFor();
    await page.getByRole('button', { name: 'Approve', disabled: false }).waitFor();
    await press(button('Approve'));
    await page.locator('[data-turn]').getByText('It is 42.').waitFor();
    const turns = await call<{ turns: { items: { kind: string }[] }[] }>(
      TOKEN,
      'GET',
      `/sessions/${sessionIdOf()}/turns`,
    );
    expect(turns.body.turns[0]?.items.map(({ kind }) => kind)).toEqual(['text', 'tool', 'text']);
  });

  it('forks the session after its turn, and compares the two', async () => {
    const { page } = world;
    const origin = sessionIdOf();
    await press(button('Fork here'));
    await press(page.getByRole('dialog').getByRole('button', { name: 'Fork', exact: true }));
    await page.waitForURL((url) => !url.pathname.endsWith(origin) && url.pathname.startsWith('/sessions/'));
    await tabTo(page.getByLabel('Message', { exact: true }));
    await keyboard().type('another way');
    await keyboard().press('Enter');
    await page.getByRole('heading', { name: 'Answer' }).waitFor();
    await press(link('Compare with its origin'));
    await page.getByText(/They part at turn 2/).waitFor();
    await press(page.getByRole('link', { name: /^Left:/ }));
    await page.waitForURL((url) => url.pathname.endsWith(origin));
  });

  it('moves the page through the past, in which Send is off, and back', async () => {
    const { page } = world;
    const slider = page.getByRole('slider', { name: 'Position of the log' });
    await tabTo(slider, 'Shift+Tab');
    const before = Number(await slider.inputValue());
    for (let pressed = 0; pressed < 3; pressed++) await keyboard().press('ArrowLeft');
    await page.waitForURL((url) => Number(url.searchParams.get('at')) === before - 3);
    expect(await slider.getAttribute('aria-valuetext')).toMatch(new RegExp(`^event ${before - 3} of`));
    expect(await button('Send').isDisabled()).toBe(true);
    await keyboard().press('End');
    await page.waitForURL((url) => !url.searchParams.has('at'));
  });

  it('draws four nodes, saves and runs them, and opens an output', async () => {
    const { page } = world;
    await goTo('draw a workflow');
    await button('+ Gpt').waitFor();
    await tabTo(graph());
    for (const prompt of ['one', 'two', 'three', 'four']) {
      await keyboard().press('a');
      await keyboard().press('Enter');
      await page.locator('aside input:focus').waitFor();
      await keyboard().press('Tab');
      await keyboard().press('Tab');
      await page.locator('aside textarea:focus').waitFor();
      await keyboard().type(prompt);
      await tabTo(graph(), 'Shift+Tab');
    }
    await press(button('Save as version 1'));
    await page.waitForURL(/workflows\/[0-9a-f-]{36}\/edit/);
    await press(button('Run'));
    await press(button('Start the run'));
    await page.getByText('4 of 4 nodes completed').waitFor({ timeout: 30_000 });
    const runId = new URL(page.url()).searchParams.get('run') ?? '';
    const { body } = await call<{ tasks: { status: string }[] }>(TOKEN, 'GET', `/runs/${runId}`);
    expect(body.tasks.map(({ status }) => status)).toEqual(Array(4).fill('completed'));
    await goTo(runId);
    await page.waitForURL((url) => url.pathname === `/runs/${runId}`);
    await press(
      page
        .getByRole('region', { name: 'Nodes of the run' })
        .getByRole('button', { name: 'step-4', exact: true }),
    );
    await page.getByRole('heading', { name: 'Result of step-4' }).waitFor();
  });

  it('sets the budget of an agent, after which the focus returns', async () => {
    const { page } = world;
    await goTo('money');
    await heading('Money').waitFor();
    const set = page
      .getByRole('region', { name: 'Usage by agent' })
      .getByRole('button', { name: 'Set budget' });
    await press(set.first());
    const title = await page.getByRole('dialog').getByRole('heading').innerText();
    const agent = title.replace('Set the budget of ', '');
    await tabTo(page.getByRole('dialog').getByLabel('Tokens', { exact: true }));
    await keyboard().type('1');
    await keyboard().press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await hasFocus(set)).toBe(true);
    await waitForValue('the limit', async () => {
      const { body } = await call<{ scopes: { key: string; limitTokens: number | null }[] }>(
        TOKEN,
        'GET',
        `/budgets?agent=${encodeURIComponent(agent)}`,
      );
      return body.scopes.find(({ key }) => key === `agent/${agent}`)?.limitTokens === 1 || undefined;
    });
  });

  it('is trapped on no page: Tab visits every control and comes back', async () => {
    const { page } = world;
    for (const path of [
      '/',
      '/agents',
      '/sessions',
      '/events?open=1',
      '/workflows/new',
      '/money',
      '/audit',
      '/settings',
    ]) {
      await page.goto(path);
      await heading(/./).waitFor();
      await page
        .locator('main p[aria-busy=true]')
        .filter({ hasNotText: 'a sample' })
        .first()
        .waitFor({ state: 'detached' });
      await page.evaluate('document.activeElement.blur(), window.visited = new Set(), window.returned = 0');
      const count = Number(
        await page.evaluate(
          `[...document.querySelectorAll('a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex="0"]')].filter((element) => element.tabIndex >= 0 && element.checkVisibility()).length`,
        ),
      );
      for (let pressed = 0; pressed < count * 2 + 20; pressed++) {
        await keyboard().press('Tab');
        await page.evaluate(
          'window.visited.has(document.activeElement) ? window.returned++ : window.visited.add(document.activeElement)',
        );
      }
      const [visited, returned] = (await page.evaluate('[window.visited.size, window.returned]')) as [
        number,
        number,
      ];
      expect([path, visited >= count * 0.8, returned > 0]).toEqual([path, true, true]);
    }
  });

  it('goes from difference to difference of two sessions by n and p, but not in a field', async () => {
    const { page } = world;
    // The agent of the test before has a budget of one token.
    const spawned = await call<{ id: string }>(TOKEN, 'POST', '/agents', { name: 'Twice', base: 'claude' });
    const agent = spawned.body.id;
    const converse = async (name: string, messages: readonly string[]): Promise<string> => {
      const chats = '/workspaces/default/chats';
      const made = await call<{ id: string; sessionId: string }>(TOKEN, 'POST', chats, {
        name,
        agent,
      });
      const { id, sessionId } = made.body;
      for (const [index, content] of messages.entries()) {
        await call(TOKEN, 'POST', `${chats}/${id}`, { command: 'message', content });
        await waitForValue('the end of the turn', async () => {
          const path = `/sessions/${sessionId}/turns?order=asc`;
          const { body } = await call<{ turns: { status: string }[] }>(TOKEN, 'GET', path);
          return body.turns[index]?.status === 'completed' || undefined;
        });
      }
      return sessionId;
    };
    const a = await converse('left', ['one', 'the same', 'three']);
    const b = await converse('right', ['uno', 'the same', 'tre']);
    await page.goto(`/compare?a=${a}&b=${b}`);
    await page.getByText(/They part at turn 1/).waitFor();
    const focused = () => page.evaluate('document.activeElement.ariaLabel');
    const visited: unknown[] = [];
    for (const key of ['n', 'n', 'n', 'p', 'p']) {
      await keyboard().press(key);
      visited.push(await focused());
    }
    expect(visited).toEqual(['Turn 1', 'Turn 3', 'Turn 1', 'Turn 3', 'Turn 1']);
    const right = page.getByRole('combobox', { name: 'Right' });
    await tabTo(right, 'Shift+Tab');
    await keyboard().press('n');
    expect(await hasFocus(right)).toBe(true);
    await page.goto(`/sessions/${a}`);
    await page.getByLabel('Message', { exact: true }).waitFor();
  });
});

describe('scripted checks of accessibility', () => {
  const PATHS = [
    '/',
    '/agents',
    '/sessions',
    '/approvals',
    '/workflows',
    '/runs',
    '/events',
    '/money',
    '/memory',
    '/performance',
    '/audit',
    '/settings',
    '/compare',
    '/workflows/new',
  ];
  /** Pages of one thing each: an agent, a session, an answer and a run. */
  const pathsOfOne = async (): Promise<string[]> => {
    const { body } = await call<{ events: { streamId: string; data: { turnId: string } }[] }>(
      ...([TOKEN, 'GET', '/events?type=TurnRequested&limit=1'] as const),
    );
    const [turn] = body.events;
    const session = `/sessions/${turn?.streamId.slice('session-'.length)}`;
    const nodes = [{ id: 'only', agent: 'claude', prompt: 'hello' }];
    const workflow = await call<{ id: string }>(TOKEN, 'POST', '/workflows', { name: 'one', nodes });
    const run = await call<{ id: string }>(TOKEN, 'POST', `/workflows/${workflow.body.id}/start`, {});
    return ['/agents/gpt', session, `${session}/why/${turn?.data.turnId}`, `/runs/${run.body.id}`];
  };
  let all: string[] = [];
  beforeAll(async () => {
    all = [...PATHS, ...(await pathsOfOne())];
  });
  const open = async (path: string): Promise<void> => {
    await world.page.goto(path);
    await heading(/./).waitFor();
    await world.page
      .locator('main p[aria-busy=true]')
      .filter({ hasNotText: 'a sample' })
      .first()
      .waitFor({ state: 'detached' });
  };

  it('every page has its own title, one heading, landmarks, a language and a skip link that works', async () => {
    const { page } = world;
    const titles = new Set<string>();
    for (const path of all) {
      await open(path);
      titles.add(await page.title());
      const counts = (await page.evaluate(
        `['h1', 'main', 'header', 'nav[aria-label]'].map((name) => document.querySelectorAll(name).length)`,
      )) as number[];
      expect([path, counts[0], counts[1], (counts[2] ?? 0) > 0, counts[3]]).toEqual([path, 1, 1, true, 1]);
      expect(await page.evaluate('document.documentElement.lang')).toBe('en');
    }
    expect(titles.size).toBe(all.length);
    await open('/agents');
    await page.evaluate('document.activeElement.blur()');
    await keyboard().press('Tab');
    expect(await hasFocus(link('Skip to the page'))).toBe(true);
    await keyboard().press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
  });

  it('pages fit in 320 px, with text of 200 % and with wider spaces', async () => {
    const { page } = world;
    const excess = () => page.evaluate('document.documentElement.scrollWidth - innerWidth');
    for (const path of all) {
      await page.setViewportSize({ width: 320, height: 800 });
      await open(path);
      expect([path, await excess()]).toEqual([path, 0]);
      await page.setViewportSize({ width: 1_440, height: 900 });
      await page.evaluate(`document.documentElement.style.fontSize = '200%'`);
      expect([path, '200 %', await excess()]).toEqual([path, '200 %', 0]);
      await page.evaluate(
        `document.documentElement.style.fontSize = ''; document.body.style.cssText = 'letter-spacing: 0.12em; word-spacing: 0.16em; line-height: 1.5'`,
      );
      expect([path, 'spaces', await excess()]).toEqual([path, 'spaces', 0]);
    }
  });

  it('states have an icon and a word, times a date, and lists their number of rows', async () => {
    const { page } = world;
    for (const path of ['/agents', '/sessions', '/runs', '/audit', '/dev/states']) {
      await open(path);
      const bare = await page.evaluate(
        `[...document.querySelectorAll('[data-tone]')].filter((state) => !state.querySelector('svg') || state.textContent.trim() === '').length`,
      );
      const undated = await page.evaluate(
        `[...document.querySelectorAll('time')].filter((time) => Number.isNaN(Date.parse(time.dateTime))).length`,
      );
      expect([path, bare, undated]).toEqual([path, 0, 0]);
    }
    await open('/events');
    const table = page.getByRole('table', { name: /^Events/ });
    expect(Number(await table.getAttribute('aria-rowcount'))).toBeGreaterThan(20);
    expect(await table.getByRole('row').nth(1).getAttribute('aria-rowindex')).toBe('2');
    expect(await button('Pause').getAttribute('aria-pressed')).toBe('false');
  });

  it('nothing moves by itself where less motion is asked for', async () => {
    const { page } = world;
    await page.emulateMedia({ reducedMotion: 'reduce' });
    for (const path of ['/', '/workflows/new', '/dev/states']) {
      await open(path);
      expect([
        path,
        await page.evaluate(
          `document.getAnimations().filter(({ playState, effect }) => playState === 'running' && effect.getComputedTiming().duration > 10).length`,
        ),
      ]).toEqual([path, 0]);
    }
    await page.emulateMedia({ reducedMotion: null });
  });

  it('Escape closes one layer and the focus returns; single keys can be turned off', async () => {
    const { page } = world;
    await open('/agents');
    await press(button('Spawn an agent'));
    await page.getByRole('dialog').waitFor();
    await keyboard().press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await hasFocus(button('Spawn an agent'))).toBe(true);
    await keyboard().press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await keyboard().press('Escape');
    await open('/settings');
    await tabTo(page.getByRole('checkbox', { name: /Keys without Ctrl/ }));
    await keyboard().press('Space');
    await open('/agents');
    await keyboard().press('?');
    await page.waitForTimeout(300);
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.evaluate('localStorage.clear()');
  });

  it('the sign-in page is named, accepts password managers, and says what failed', async () => {
    const { browser, stack } = world;
    const page = await browser.newPage({ baseURL: stack.gatewayUrl });
    await page.goto('/');
    const field = page.getByLabel('API key');
    await field.waitFor();
    expect(await field.getAttribute('autocomplete')).toBe('current-password');
    expect(await field.getAttribute('aria-describedby')).not.toBeNull();
    await field.fill('ak_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await field.inputValue()).toBe('ak_wrong');
    expect(await page.locator('main').ariaSnapshot()).toContain('textbox "API key"');
    await page.close();
  });
});
