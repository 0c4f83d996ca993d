import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Locator } from 'playwright-core';
import { addContent, type ContentPages } from './dashboard-content.js';
import { findViolations, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents } from './stack-under-test.js';

jest.setTimeout(120_000);

/** Accessibility trees under review. `ANTIPHON_UPDATE_VIEWS=1` writes them again. */
const GOLDEN = fileURLToPath(new URL('./dashboard-views/', import.meta.url));

let world: DashboardWorld;
let session: string;
let content: ContentPages;
const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });
const open = async (path: string): Promise<void> => {
  await world.page.goto(path);
  await world.page.getByRole('heading', { level: 1 }).waitFor();
  const loading = world.page.locator('main p[aria-busy=true]').filter({ hasNotText: 'a sample' });
  await loading.first().waitFor({ state: 'detached' });
};

beforeAll(async () => {
  world = await startDashboardWorld();
  await open('/agents/gpt');
  await world.page.getByLabel('Message to Gpt').fill('please calculate it');
  await button('Start a conversation').click();
  await button('Approve').waitFor();
  const [turn] = await readEvents(world.stack, { type: 'TurnRequested' });
  content = await addContent(world);
  session = `/sessions/${turn?.streamId.slice('session-'.length)}`;
});
afterAll(() => world?.stop());

/** Replaces what differs from one installation to the next: ids, times and amounts. */
const withoutValues = (tree: string): string =>
  tree
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{64}\b|\b[0-9a-f]{8}\b/g, 'ID')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]\S*/g, 'TIME')
    // A port that was taken.
    .replaceAll(/ \(taken: \d+ serves this page\)/g, '')
    .replaceAll(/^( *- )'(.*)'(:?)$/gm, '$1$2$3')
    // An agent that is configured may have been seen, or not yet.
    .replaceAll(/\bnow\b|\bnone yet\b|\b\d+ (?:s|min|h) ago\b|\bin \d+ (?:s|min|h|d)\b/g, 'AGE')
    .replaceAll(/dashboard:web:[0-9a-f]+/g, 'dashboard:web:PEER')
    .replaceAll(/\b(?=\w*\d)[0-9a-z]{12,}\b/g, 'ID')
    // A key may have an id without a digit.
    .replaceAll(/\bbootstrap [a-z2-7]{16}\b/g, 'bootstrap ID')
    .replaceAll(/\d[\d,.]*/g, 'N')
    // The last column of the table of agents: a first heartbeat may have come, or not yet.
    .replaceAll(/ root (?:none|AGE)":$/gm, ' root AGE":')
    .replaceAll(/- cell "(?:none|AGE)"(?::\n *- time: AGE)?(?=\n *- row|\n*$)/g, '- cell "AGE"');

describe('the accessibility tree', () => {
  it.each([
    ['agents', () => '/agents?view=table'],
    ['agent', () => '/agents/claude'],
    ['session-that-waits', () => session],
    ['session-in-the-past', () => `${session}?at=10`],
    ['approvals', () => '/approvals'],
    ['runs', () => '/runs'],
    ['editor', () => '/workflows/new'],
    ['money', () => '/money'],
    ['memory', () => '/memory'],
    ['settings', () => '/settings'],
    ['attention', () => '/attention'],
    ['chat', () => content.chat],
    ['file', () => content.file],
    ['tasks', () => '/tasks'],
    ['task', () => content.task],
    ['plans', () => '/plans'],
    ['plan', () => content.plan],
    ['messages', () => '/messages'],
    ['providers', () => '/settings/providers'],
    ['missing-page', () => '/no-such-page'],
  ])('of the view %s is the one under review', async (name, path) => {
    await open(path());
    await world.page.waitForTimeout(800);
    const tree = `${withoutValues(await world.page.locator('main').ariaSnapshot())}\n`;
    const file = `${GOLDEN}${name}.txt`;
    if (process.env['ANTIPHON_UPDATE_VIEWS']) {
      mkdirSync(GOLDEN, { recursive: true });
      writeFileSync(file, tree);
    }
    expect(tree).toBe(readFileSync(file, 'utf8'));
  });
});

const tip = () => world.page.getByRole('tooltip');
const describedBy = (target: Locator): Promise<string> =>
  target.evaluate((element: { getAttribute(name: string): string | null }) =>
    String(element.getAttribute('aria-describedby')),
  );

describe('a tip', () => {
  it('stays while the pointer is on it, and Escape closes it', async () => {
    const { page } = world;
    await open('/sessions');
    await page.locator('main time').first().hover();
    await tip().waitFor();
    expect(await tip().innerText()).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+$/);
    await tip().hover();
    await page.waitForTimeout(1_000);
    expect(await tip().isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    await tip().waitFor({ state: 'detached' });
  });

  it('opens with the focus, and its Escape closes nothing else', async () => {
    const { page } = world;
    await open('/agents');
    await button('Spawn an agent').click();
    await page.keyboard.press('Shift+Tab');
    await tip().getByText('Close').waitFor();
    await page.keyboard.press('Escape');
    await tip().waitFor({ state: 'detached' });
    expect(await page.getByRole('dialog').isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('of a dialog that took the focus by itself is not shown, so that one Escape closes the dialog', async () => {
    const { page } = world;
    await open('/agents');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.waitForTimeout(500);
    expect(await tip().count()).toBe(0);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('says why a control is off, which keeps the focus and does nothing', async () => {
    const { page } = world;
    await open('/agents?at=5');
    const spawn = button('Spawn an agent');
    expect(await spawn.isDisabled()).toBe(true);
    for (let pressed = 0; pressed < 60; pressed++) {
      if ((await spawn.and(page.locator(':focus')).count()) > 0) break;
      await page.keyboard.press('Tab');
    }
    await tip().getByText('Not in the past: go back to live first').waitFor();
    expect(await page.locator(`[id="${await describedBy(spawn)}"]`).textContent()).toContain(
      'Not in the past',
    );
    await page.keyboard.press('Enter');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  it('is not the only place of a value: a setting shows exact times and whole ids', async () => {
    const { page } = world;
    await open('/settings');
    await page.getByRole('checkbox', { name: 'Exact times and whole ids in lists' }).check();
    await open('/sessions');
    expect(await page.locator('main time').first().innerText()).toMatch(/^\d{4}-\d\d-\d\d/);
    await page.evaluate('localStorage.clear()');
  });
});

describe('the keys of a session', () => {
  it('go from turn to turn in the position bar, and fork the turn that has the focus', async () => {
    const { page } = world;
    await open('/agents/claude');
    await page.getByLabel('Message to Claude').fill('Hello');
    await button('Start a conversation').click();
    await button('Fork here').waitFor();
    await page.getByLabel('Message', { exact: true }).fill('Hello again');
    await page.keyboard.press('Enter');
    await button('Fork here').nth(1).waitFor();
    const stream = `session-${new URL(page.url()).pathname.split('/').at(-1)}`;
    const turns = await readEvents(world.stack, { stream, type: 'TurnRequested' });
    const slider = page.getByRole('slider', { name: 'Position of the log' });
    for (const turn of turns.toReversed()) {
      await slider.press('Shift+ArrowLeft');
      await page.waitForURL((url) => url.searchParams.get('at') === String(turn.position));
    }
    await slider.press('Shift+ArrowRight');
    await page.waitForURL((url) => url.searchParams.get('at') === String(turns[1]?.position));
    await slider.press('Shift+ArrowRight');
    await page.waitForURL((url) => !url.searchParams.has('at'));
    await button('Fork here').first().focus();
    await page.keyboard.press('f');
    await page.getByRole('dialog', { name: 'Fork after this turn' }).waitFor();
    await page.keyboard.press('Escape');
  });
});

describe('an error of a form', () => {
  const expectError = async (field: Locator, error: string): Promise<void> => {
    await field.and(world.page.locator('[aria-invalid=true]')).and(world.page.locator(':focus')).waitFor();
    const ids = (await describedBy(field)).split(' ').map((id) => `[id="${id}"]`);
    expect(await world.page.locator(ids[0] ?? '').innerText()).toBe(error);
  };

  it('is tied to its field, which gets the focus, and the values stay', async () => {
    const { page } = world;
    await open('/agents?spawn=1');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Project').fill('website');
    await dialog.getByLabel('Budget in tokens').fill('0');
    await dialog.getByRole('button', { name: 'Spawn', exact: true }).click();
    await expectError(dialog.getByLabel('Name', { exact: true }), 'Enter the name.');
    await dialog.getByLabel('Name', { exact: true }).fill('   ');
    await page.keyboard.press('Enter');
    await expectError(dialog.getByLabel('Name', { exact: true }), 'Enter the name.');
    await dialog.getByLabel('Name', { exact: true }).fill('Ada');
    await page.keyboard.press('Enter');
    await expectError(dialog.getByLabel('Budget in tokens'), 'Enter 1 or more.');
    expect(await dialog.getByLabel('Project').inputValue()).toBe('website');
    expect(await findViolations(page)).toEqual([]);
    expect(await readEvents(world.stack, { type: 'AgentSpawned', agent: 'Ada' })).toEqual([]);
  });

  it.each([
    ['/money', 'Set limit of each day', 'Tokens', '-1', 'Enter 0 or more.'],
    ['/settings', 'Create a key', 'Name', '', 'Enter the name.'],
  ])('of %s, “%s”, is tied to %s', async (path, opener, label, value, error) => {
    await open(path);
    await button(opener).click();
    const dialog = world.page.getByRole('dialog');
    await dialog.getByLabel(label, { exact: true }).fill(value);
    await dialog.getByLabel(label, { exact: true }).press('Enter');
    await expectError(dialog.getByLabel(label, { exact: true }), error);
  });
});

describe('with forced colours', () => {
  it.each(['light', 'dark'] as const)(
    'the focus, the current page, states and amounts stay visible, %s',
    async (colorScheme) => {
      const { page } = world;
      await page.emulateMedia({ forcedColors: 'active', colorScheme });
      await open('/dev/states');
      const styleOf = (selector: string, name: string) =>
        page.evaluate(`getComputedStyle(document.querySelector('${selector}')).${name}`);
      expect(await styleOf('main [data-state]', 'borderStyle')).toBe('solid');
      expect(await styleOf('[role=meter] i', 'backgroundColor')).not.toBe(
        await styleOf('body', 'backgroundColor'),
      );
      await open('/agents');
      expect(await styleOf('nav [aria-current=page]', 'outlineStyle')).toBe('solid');
      for (let pressed = 0; pressed < 12; pressed++) {
        await page.keyboard.press('Tab');
        expect(await styleOf(':focus', 'outlineStyle')).toBe('solid');
      }
      expect(await findViolations(page)).toEqual([]);
      await page.emulateMedia({ forcedColors: null, colorScheme: null });
    },
  );
});

describe('a figure', () => {
  it('that is drawn is also in words, in a table or as the text of a meter', async () => {
    const { page } = world;
    for (const path of ['/money', '/money?by=day', '/dev/states']) {
      await open(path);
      const silent = await page.evaluate(
        `[...document.querySelectorAll('[role=meter]')].filter((meter) => !meter.ariaLabel || !meter.ariaValueText).length`,
      );
      expect([path, silent]).toEqual([path, 0]);
    }
    await open('/money');
    const shares = page.getByRole('table').last().getByRole('row').nth(1).getByRole('cell').nth(5);
    expect(await shares.innerText()).toMatch(/^\d+ %$/);
  });
});
