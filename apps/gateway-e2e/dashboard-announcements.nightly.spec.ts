import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { waitForValue } from './stack-under-test.js';
import { letTimePass } from '@antiphon/testing/waits';

jest.setTimeout(120_000);

const FAST = Array.from({ length: 40 }, (_, index) => `Sentence ${index + 1} of them all. `);
const SLOW = [
  'The first is whole. The second lasts for some words, and',
  ' it ends.\n\n```js\nlet a = 1. + b;\n',
  '```\n\nAnd *no* point',
];
const SECOND = 'The second lasts for some words, and it ends.';
/** Time between two sentences of the fast answer, ms. */
const PACE_MS = 60;

let world: DashboardWorld;
let release: (() => void)[];
beforeAll(async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  release = gates.map(({ resolve }) => resolve);
  world = await startDashboardWorld({
    settings: '',
    model: ({ user }) => {
      if (user.includes('fast'))
        return {
          reply: { text: FAST },
          before: (piece) => (piece.includes('Sentence') ? letTimePass(PACE_MS) : undefined),
        };
      if (!user.includes('slow')) return { text: ['Well. And good.'] };
      const before = (piece: string) =>
        piece.includes('it ends')
          ? gates[0]?.promise
          : piece.includes('no* point')
            ? gates[1]?.promise
            : undefined;
      return { reply: { text: SLOW }, before };
    },
  });
  const { page } = world;
  await page.goto('/agents/gpt');
  await page.getByLabel('Message to Gpt').fill('hello');
  await page.getByRole('button', { name: 'Start a conversation' }).click();
  await answer('Well. And good.').waitFor();
  await page.locator('[data-turn][aria-busy=false]').waitFor();
  // The end of this answer may be announced late. A page that is opened later says nothing of it.
  await page.reload();
  await answer('Well. And good.').waitFor();
});
afterAll(() => world?.stop());

const answer = (text: string) => world.page.locator('[data-turn]').getByText(text);
const region = () => world.page.getByRole('log', { name: 'Answer in whole sentences' });
const say = async (text: string): Promise<void> => {
  await world.page.getByLabel('Message', { exact: true }).fill(text);
  await world.page.keyboard.press('Enter');
};
/** Begins to record what is added to the region, which is what a screen reader says. */
const record = async (): Promise<void> => {
  await region().waitFor({ state: 'attached' });
  await world.page.evaluate(`window.said = [];
    new MutationObserver((records) => records.forEach(({ addedNodes }) => addedNodes.forEach(
      (node) => window.said.push({ at: performance.now(), text: node.textContent }),
    ))).observe(document.querySelector('[role=log][aria-live=polite]'), { childList: true, subtree: true, characterData: true })`);
};
const readSaid = async () => (await world.page.evaluate('window.said')) as { at: number; text: string }[];
const waitForSaid = (count: number) =>
  waitForValue(`${count} messages`, async () => {
    const said = await readSaid();
    return said.length >= count ? said.map(({ text }) => text) : undefined;
  });

describe('an answer that streams', () => {
  it('is announced in whole sentences, code by its length, and its end with the rest', async () => {
    await record();
    await say('slow');
    expect(await waitForSaid(1)).toEqual(['The first is whole.']);
    await answer('The second lasts').waitFor();
    release[0]?.();
    await world.page.getByRole('region', { name: 'Code in js' }).waitFor();
    expect(await waitForSaid(2)).toEqual(['The first is whole.', SECOND]);
    release[1]?.();
    expect(await waitForSaid(3)).toEqual([
      ...['The first is whole.', SECOND],
      'Code in js, 1 line. And no point The answer has ended: completed.',
    ]);
  });

  it('makes at most one message a second, and leaves no sentence out', async () => {
    await world.page.evaluate('window.said = []');
    await say('fast');
    const said = await waitForValue('the end of the answer', async () => {
      const all = await readSaid();
      return all.at(-1)?.text.includes('has ended') ? all : undefined;
    });
    const words = said.map(({ text }) => text).join(' ');
    expect(words).toBe(`${FAST.join('').trim()} The answer has ended: completed.`);
    expect(said.length).toBeGreaterThan(2);
    const gaps = said.slice(1).map(({ at }, index) => at - (said[index]?.at ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThan(900);
  });

  it('is not announced again when the page is opened later, nor in the past', async () => {
    const { page } = world;
    await page.reload();
    await answer('Well. And good.').waitFor();
    await record();
    expect(await region().innerText()).toBe('');
    await page
      .getByRole('button', { name: /^As of event/ })
      .first()
      .click();
    await page.waitForURL(/at=/);
    await region().waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Back to live', exact: true }).click();
    await region().waitFor({ state: 'attached' });
    expect(await region().innerText()).toBe('');
  });

  it('is not announced while the setting is off', async () => {
    const { page } = world;
    const session = page.url();
    const box = page.getByRole('checkbox', { name: /^Announce answers/ });
    await page.goto('/settings');
    expect(await box.isChecked()).toBe(true);
    await box.press('Space');
    await page.goto(session);
    await say('once more');
    await page.locator('[data-turn]').nth(3).getByText('Well. And good.').waitFor();
    expect(await region().count()).toBe(0);
    expect(await page.locator('[aria-live=polite]:not([aria-label=Failures])').count()).toBe(0);
    await page.goto('/settings');
    expect(await box.isChecked()).toBe(false);
    await box.press('Space');
    await page.goto(session);
    await region().waitFor({ state: 'attached' });
  });
});
