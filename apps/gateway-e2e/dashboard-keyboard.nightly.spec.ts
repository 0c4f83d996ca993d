import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createKeys } from './dashboard-keys.js';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { describeAccessibilityChecks } from './describe-accessibility-checks.js';
import { createApiCaller, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const TOKEN = 'the-token-of-the-keyboard-has-over-32-characters';

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
const { hasFocus, tabTo, press } = createKeys(() => world.page);
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

describeAccessibilityChecks(() => world, TOKEN);
