import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { WorkflowView } from '@antiphon/contracts/agent';
import type { Locator, Page, Route } from 'playwright-core';
import { readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld();
});
afterAll(() => world?.stop());

const graphOf = (page: Page) => page.getByRole('application', { name: /^Graph of the/ });
const card = (page: Page, id: string) => graphOf(page).locator(`#node-${id}`);
const edges = (page: Page) => graphOf(page).locator('.react-flow__edge');
const prompt = (page: Page) => page.getByRole('textbox', { name: 'Prompt' });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const readWorkflow = (id: string) => readApi<WorkflowView>(world, `/api/v1/workflows/${id}`);
const needsOf = ({ definition }: WorkflowView) => definition.nodes.map(({ id, needs }) => [id, ...needs]);
const idOf = (page: Page): string => new URL(page.url()).pathname.split('/')[2] ?? '';

/** Goes to an element by a key alone. */
const tabTo = async (page: Page, target: Locator, key = 'Tab'): Promise<void> => {
  await target.waitFor();
  for (let pressed = 0; pressed < 100; pressed++) {
    if ((await target.and(page.locator(':focus')).count()) > 0) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${target.toString()} is not reached by ${key}`);
};
const waitForEdges = (page: Page, count: number) =>
  waitForValue(`${count} edges`, async () => ((await edges(page).count()) === count ? true : undefined));
/** Returns where a node is in the graph. */
const placeOf = async (page: Page, id: string): Promise<string> => {
  const style = await graphOf(page).locator(`.react-flow__node[data-id="${id}"]`).getAttribute('style');
  return /translate\([^)]*\)/.exec(style ?? '')?.[0] ?? '';
};
const waitForPlace = (id: string, isWanted: (place: string) => boolean) =>
  waitForValue(`the place of ${id}`, async () => {
    const place = await placeOf(world.page, id);
    return isWanted(place) ? place : undefined;
  });
const waitForVersion = (id: string, version: number) =>
  waitForValue(`version ${version}`, async () => {
    const view = await readWorkflow(id);
    return view.version === version ? view : undefined;
  });

const openConnect = async (from: string, to: string): Promise<Locator> => {
  const { page } = world;
  await page.keyboard.press('c');
  const dialog = page.getByRole('dialog', { name: 'Connect two nodes' });
  await tabTo(page, dialog.getByLabel('From', { exact: true }));
  await page.keyboard.type(from);
  await page.keyboard.press('Tab');
  await page.keyboard.type(to);
  expect(await dialog.getByLabel('From', { exact: true }).inputValue()).toBe(from);
  expect(await dialog.getByLabel('To', { exact: true }).inputValue()).toBe(to);
  return dialog;
};

describe('a workflow that is drawn by keys alone', () => {
  it('has nodes that are added, connected and moved, and each step is taken back and made again', async () => {
    const { page } = world;
    const { keyboard } = page;
    await page.goto('/workflows/new');
    await button(page, '+ Gpt').waitFor();
    for (const text of ['first', 'second', 'third']) {
      await tabTo(page, graphOf(page), 'Shift+Tab');
      await keyboard.press('a');
      await keyboard.press('Enter');
      await tabTo(page, prompt(page));
      await keyboard.type(text);
    }
    await tabTo(page, graphOf(page), 'Shift+Tab');
    await waitForEdges(page, 2);
    const dialog = await openConnect('step-1', 'step-3');
    await tabTo(page, button(page, 'Connect').last());
    await keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await waitForEdges(page, 3);
    await keyboard.press('Control+z');
    await waitForEdges(page, 2);
    await keyboard.press('Control+Shift+Z');
    await waitForEdges(page, 3);

    await tabTo(page, graphOf(page));
    const before = await placeOf(page, 'step-3');
    for (let step = 0; step < 2; step++) await keyboard.press('Alt+ArrowDown');
    const moved = await waitForPlace('step-3', (place) => place !== before);
    await keyboard.press('Control+z');
    await waitForPlace('step-3', (place) => place === before);
    await keyboard.press('Control+y');
    await waitForPlace('step-3', (place) => place === moved);

    await keyboard.press('Control+s');
    await page.waitForURL(/workflows\/[0-9a-f-]{36}\/edit/);
    const view = await readWorkflow(idOf(page));
    expect(needsOf(view)).toEqual([['step-1'], ['step-2', 'step-1'], ['step-3', 'step-2', 'step-1']]);
    expect(view.definition.nodes.map((node) => node.prompt)).toEqual(['first', 'second', 'third']);
    await page.reload();
    await card(page, 'step-3').waitFor();
    expect(await placeOf(page, 'step-3')).toBe(moved);
  });

  it('gets no edge that closes a cycle: the reason is announced while the edge is chosen', async () => {
    const { page } = world;
    await page.goto(`/workflows/${idOf(page)}/edit?node=step-1`);
    await card(page, 'step-3').waitFor();
    await tabTo(page, graphOf(page));
    const dialog = await openConnect('step-3', 'step-1');
    await dialog.getByRole('alert').getByText('would close the cycle').waitFor();
    expect(await dialog.getByRole('alert').innerText()).toContain('→ step-3 → step-1');
    expect(await button(page, 'Connect').last().isDisabled()).toBe(true);
    // The reason is gone once another end is chosen.
    await dialog.getByLabel('To', { exact: true }).selectOption('');
    await dialog.getByText('would close the cycle').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await edges(page).count()).toBe(3);
    // The fields of a node do not offer it either.
    expect(await page.getByLabel('Add a node that it needs').count()).toBe(0);
    expect(await page.getByText('changes not saved').count()).toBe(0);
  });

  it('loses nodes and edges by keys, and gets them back until it is saved', async () => {
    const { page } = world;
    const { keyboard } = page;
    const id = idOf(page);
    await page.goto(`/workflows/${id}/edit?node=step-2`);
    await card(page, 'step-2').waitFor();
    await waitForEdges(page, 3);
    await tabTo(page, graphOf(page));
    await keyboard.press('Delete');
    await card(page, 'step-2').waitFor({ state: 'detached' });
    await page.getByText('“step-2” is deleted. Undo brings it back').waitFor();
    await waitForEdges(page, 1);
    await keyboard.press('Control+z');
    await card(page, 'step-2').waitFor();
    await waitForEdges(page, 3);
    await keyboard.press('Control+Shift+Z');
    await card(page, 'step-2').waitFor({ state: 'detached' });
    await page.goto(`/workflows/${id}/edit?node=step-3`);
  });

  it('asks before unsaved changes are left, and saves what is kept', async () => {
    const { page } = world;
    const { keyboard } = page;
    const id = idOf(page);
    await card(page, 'step-2').waitFor();
    await tabTo(page, button(page, 'No longer need step-1'));
    await keyboard.press('Enter');
    await waitForEdges(page, 2);
    await tabTo(page, page.getByRole('link', { name: 'Money', exact: true }));
    await keyboard.press('Enter');
    const leave = page.getByRole('dialog', { name: 'Leave without saving?' });
    await tabTo(page, leave.getByRole('button', { name: 'Save and leave' }));
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Money' }).waitFor();
    expect(needsOf(await waitForVersion(id, 2))).toEqual([
      ['step-1'],
      ['step-2', 'step-1'],
      ['step-3', 'step-2'],
    ]);
  });
});

const nodeOf = (id: string, needs: readonly string[] = []) => ({
  ...{ id, agent: 'gpt', prompt: `${id} as it was`, needs },
});
const createWorkflow = async (name: string, nodes: readonly object[]): Promise<string> => {
  const reply = await fetch(`${world.stack.gatewayUrl}/api/v1/workflows`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ definition: { name, nodes } }),
  });
  expect(reply.status).toBe(201);
  return ((await reply.json()) as WorkflowView).id;
};
const promptsOf = async (id: string) => (await readWorkflow(id)).definition.nodes.map((node) => node.prompt);
const conflictOf = (page: Page, version: number) =>
  page.getByRole('dialog', { name: `Version ${version} was saved in the meantime` });
const hasChanges = (page: Page) => page.getByText('changes not saved');
const choose = async (page: Page, name: string): Promise<void> => {
  await tabTo(page, button(page, name));
  await page.keyboard.press('Enter');
};
const openTab = async (): Promise<Page> => {
  const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
  page.setDefaultTimeout(10_000);
  return page;
};

/** Two tabs change another node each. Theirs saves version 2, and mine is asked what remains. */
const conflict = async (name: string) => {
  const id = await createWorkflow(name, [nodeOf('one'), nodeOf('two', ['one'])]);
  const [mine, theirs] = [await openTab(), await openTab()];
  await mine.goto(`/workflows/${id}/edit?node=one`);
  await theirs.goto(`/workflows/${id}/edit?node=two`);
  await prompt(mine).fill('mine');
  await prompt(theirs).fill('theirs');
  await theirs.keyboard.press('Control+s');
  await waitForVersion(id, 2);
  await mine.getByText('Version 2 was saved elsewhere').waitFor();
  await mine.keyboard.press('Control+s');
  await conflictOf(mine, 2).waitFor();
  const lines = await conflictOf(mine, 2).getByRole('listitem').allInnerTexts();
  expect(lines).toEqual(['“one” differs', '“two” differs']);
  // Nothing is written before the choice.
  expect(await promptsOf(id)).toEqual(['one as it was', 'theirs']);
  return { id, mine, theirs, close: () => Promise.all([mine.close(), theirs.close()]) };
};
const savedPrompts = async (id: string) =>
  (await readEvents(world.stack, { stream: `workflow-${id}`, type: 'WorkflowSaved' })).map(({ data }) =>
    (data['definition'] as WorkflowView['definition']).nodes.map((node) => node.prompt),
  );

describe('a workflow that two tabs saved', () => {
  it('has mine on top of theirs: both versions are in the log, and the other tab follows', async () => {
    const { id, mine, theirs, close } = await conflict('keeps mine');
    await choose(mine, 'Save mine as version 3');
    await waitForVersion(id, 3);
    await conflictOf(mine, 2).waitFor({ state: 'detached' });
    await hasChanges(mine).waitFor({ state: 'detached' });
    expect(await savedPrompts(id)).toEqual([
      ['one as it was', 'two as it was'],
      ['one as it was', 'theirs'],
      ['mine', 'two as it was'],
    ]);
    await waitForValue('the version of the other tab', async () =>
      (await prompt(theirs).inputValue()) === 'two as it was' ? true : undefined,
    );
    await close();
  });

  it('becomes two workflows, which are saved on their own from then on', async () => {
    const { id, mine, close } = await conflict('becomes two');
    await choose(mine, 'Save mine as a new workflow');
    await mine.waitForURL((url) => /^[0-9a-f-]{36}$/.test(idOf(mine)) && !url.pathname.includes(id));
    const copy = idOf(mine);
    expect(await promptsOf(copy)).toEqual(['mine', 'two as it was']);
    await prompt(mine).fill('mine again');
    await mine.keyboard.press('Control+s');
    await waitForVersion(copy, 2);
    expect(await promptsOf(copy)).toEqual(['mine again', 'two as it was']);
    expect([(await readWorkflow(id)).version, await promptsOf(id)]).toEqual([2, ['one as it was', 'theirs']]);
    await close();
  });

  it('is theirs, and mine comes back by undo and is saved as the next version', async () => {
    const { id, mine, close } = await conflict('takes theirs');
    await choose(mine, 'Take theirs; undo brings mine back');
    await conflictOf(mine, 2).waitFor({ state: 'detached' });
    await hasChanges(mine).waitFor({ state: 'detached' });
    expect(await prompt(mine).inputValue()).toBe('one as it was');
    expect((await readWorkflow(id)).version).toBe(2);
    await mine.keyboard.press('Control+z');
    await hasChanges(mine).waitFor();
    expect(await prompt(mine).inputValue()).toBe('mine');
    await mine.keyboard.press('Control+s');
    await waitForVersion(id, 3);
    expect(await promptsOf(id)).toEqual(['mine', 'two as it was']);
    await close();
  });

  it('asks again after the question is closed, and after a third version', async () => {
    const { id, mine, theirs, close } = await conflict('asks again');
    await tabTo(mine, conflictOf(mine, 2).getByRole('button', { name: 'Close' }));
    await mine.keyboard.press('Enter');
    await conflictOf(mine, 2).waitFor({ state: 'detached' });
    expect(await prompt(mine).inputValue()).toBe('mine');
    expect((await readWorkflow(id)).version).toBe(2);
    await mine.keyboard.press('Control+s');
    await conflictOf(mine, 2).waitFor();
    await prompt(theirs).fill('theirs again');
    await theirs.keyboard.press('Control+s');
    await waitForVersion(id, 3);
    await choose(mine, 'Save mine as version 3');
    await conflictOf(mine, 3).waitFor();
    expect(await promptsOf(id)).toEqual(['one as it was', 'theirs again']);
    await choose(mine, 'Save mine as version 4');
    await waitForVersion(id, 4);
    expect(await promptsOf(id)).toEqual(['mine', 'two as it was']);
    await close();
  });
});

const script = (body: string) => (route: Route) => route.fulfill({ contentType: 'text/javascript', body });
const NO_WORKER = `window.Worker = class { constructor() { throw new Error('no worker'); } };`;
const ids = ['a', 'b', 'c', 'd'];
const GRID = [
  'translate(0px, 0px)',
  'translate(288px, 0px)',
  'translate(288px, 128px)',
  'translate(576px, 0px)',
];

/** Opens a workflow that this browser has no places of, and returns the places that it shows. */
const layOutIn = async (page: Page): Promise<string[]> => {
  const nodes = [nodeOf('a'), nodeOf('b', ['a']), nodeOf('c', ['a']), nodeOf('d', ['b', 'c'])];
  const id = await createWorkflow('laid out', nodes);
  await page.goto(`/workflows/${id}/edit`);
  for (const node of ids) await card(page, node).waitFor();
  await waitForEdges(page, 4);
  await waitForValue('a layout', async () =>
    (await placeOf(page, 'd')) === 'translate(0px, 0px)' ? undefined : true,
  );
  return Promise.all(ids.map((node) => placeOf(page, node)));
};

describe('the layout of a graph', () => {
  it('comes from its worker, without a notice', async () => {
    const page = await openTab();
    expect(await layOutIn(page)).not.toEqual(GRID);
    expect(await page.getByText('are in a grid').count()).toBe(0);
    await page.close();
  });

  it.each<[string, string, (page: Page) => Promise<unknown>]>([
    ['cannot be read', 'failed', (page) => page.route(/layout\.worker/, (route) => route.abort())],
    ['throws', 'failed', (page) => page.route(/layout\.worker/, script('throw new Error("broken")'))],
    ['is refused', 'failed', (page) => page.addInitScript(NO_WORKER)],
    [
      'never replies',
      'longer than 2 s',
      (page) => page.route(/layout\.worker/, script('self.onmessage = () => {};')),
    ],
  ])('is a grid that says so if the worker %s, and the graph stays of use', async (_, words, breakIt) => {
    const page = await openTab();
    await breakIt(page);
    expect(await layOutIn(page)).toEqual(GRID);
    await page.getByRole('status').filter({ hasText: words }).getByText('are in a grid').waitFor();
    await graphOf(page).focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('a');
    await card(page, 'step-5').waitFor();
    await page.close();
  });
});

describe('all of it', () => {
  it('asked no other origin and broke no policy', () => {
    expect([world.leaks, world.errors]).toEqual([[], []]);
  });
});
