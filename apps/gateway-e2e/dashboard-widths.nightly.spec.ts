import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { FIND_CUT_TEXTS, FIND_OVERLAPS } from './dashboard-layout.js';
import { addContent } from './dashboard-content.js';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(300_000);

const WIDTHS = [360, 390, 768, 1_024, 1_440, 1_920];
/** Names as long as the API takes them, without a place to break and with many. */
const UNBROKEN = `long-${'abcdefghij'.repeat(19)}`;
const WORDS = 'a name with many words '.repeat(8).trim();

interface Names {
  readonly agent: string;
  readonly workflow: string;
  readonly node: string;
  readonly project: string;
  readonly message: string;
  readonly key: string;
}
const NAMES: Readonly<Record<'short' | 'long', Names>> = {
  short: {
    ...{ agent: 'Helper', workflow: 'two steps', node: 'first', project: 'home' },
    ...{ message: 'please calculate it', key: 'laptop' },
  },
  long: {
    ...{ agent: WORDS.slice(0, 100), workflow: UNBROKEN.slice(0, 190), node: `n${'x'.repeat(60)}` },
    ...{
      project: UNBROKEN.slice(0, 100),
      message: `calculate ${UNBROKEN}${UNBROKEN}`,
      key: UNBROKEN.slice(0, 100),
    },
  },
};

let world: DashboardWorld;
const call = createApiCaller(() => world.stack.gatewayUrl);
const post = async <T extends object>(path: string, body: object): Promise<T> => {
  const reply = await call<T>('', 'POST', path, body);
  expect([path, reply.status < 300, reply.body]).toEqual([path, true, expect.anything()]);
  return reply.body;
};

/** Makes an agent, a session that waits, a run, a key and a fact with the names; returns its pages. */
const fill = async (names: Names): Promise<readonly string[]> => {
  const agent = await post<{ id: string }>('/agents', {
    name: names.agent,
    base: 'gpt',
    project: names.project,
  });
  const { page, stack } = world;
  await page.goto('/agents/gpt');
  await page.getByLabel('Message to Gpt').fill(names.message);
  await page.getByRole('button', { name: 'Start a conversation' }).click();
  await page.getByRole('button', { name: 'Approve' }).first().waitFor();
  const turn = (await readEvents(stack, { type: 'TurnRequested' })).at(-1);
  const id = turn?.streamId.slice('session-'.length) ?? '';
  const nodes = [
    { id: names.node, agent: 'claude', prompt: names.message.replace('calculate', 'say') },
    { id: `${names.node}2`, agent: 'claude', prompt: 'again', needs: [names.node] },
  ];
  const workflow = await post<{ id: string }>('/workflows', { definition: { name: names.workflow, nodes } });
  const run = await post<{ id: string }>(`/workflows/${workflow.id}/start`, {});
  await waitForValue('the end of the run', async () => {
    const { body } = await call<{ status: string }>('', 'GET', `/runs/${run.id}`);
    return body.status === 'running' ? undefined : true;
  });
  await post('/keys', { name: names.key, role: 'viewer' });
  const fork = await post<{ sessionId: string }>(`/sessions/${id}/fork`, {
    atVersion: 1,
    whatIf: { turns: 1 },
  });
  const position = turn?.position ?? 0;
  const content = await addContent(world, {
    names: { chat: names.workflow.slice(0, 100), folder: names.project, task: names.message.slice(0, 200) },
  });
  return [
    ...[
      '/',
      '/agents',
      `/agents/${agent.id}`,
      '/agents/gpt',
      '/sessions',
      '/approvals',
      '/workflows',
      '/runs',
    ],
    ...[`/sessions/${id}`, `/sessions/${id}?at=${position}`, `/sessions/${id}?at=${position}&replay=1`],
    ...[`/sessions/${id}/why/${String(turn?.data['turnId'])}`, `/compare?a=${id}&b=${fork.sessionId}`],
    ...[`/runs/${run.id}`, `/runs/${run.id}?node=${names.node}`, `/workflows/${workflow.id}/edit`],
    ...[`/workflows/${workflow.id}/edit?view=table`, `/workflows/${workflow.id}/edit?run=${run.id}`],
    ...[
      '/workflows/new',
      '/events',
      `/events?open=${position}`,
      '/money',
      '/money?by=model',
      '/memory',
      '/tools?tool=calculator',
      '/files',
      '/tasks',
      '/plans',
      '/messages',
      ...Object.values(content),
    ],
    ...[
      '/performance',
      '/audit',
      '/settings',
      '/settings/providers',
      '/attention',
      '/chats',
      '/chats/new',
      '/compare',
      '/no-such-page',
      '/dev/states',
      '/dev/states?at=10',
    ],
  ];
};

beforeAll(async () => {
  world = await startDashboardWorld();
}, 240_000);
afterAll(() => world?.stop());

const open = async (path: string): Promise<void> => {
  const { page } = world;
  await page.goto(path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  // The page of states always shows one part that loads.
  const loading = page.locator('main p[aria-busy=true]').filter({ hasNotText: 'a sample' });
  await loading.first().waitFor({ state: 'detached' });
};
/** Returns what is wrong with the layout of the page, one line each. */
const findFaults = async (path: string, width: number): Promise<string[]> => {
  const { page } = world;
  await page.setViewportSize({ width, height: 900 });
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 50)))');
  const excess = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  const cut = (await page.evaluate(FIND_CUT_TEXTS)) as string[];
  const overlaps = (await page.evaluate(FIND_OVERLAPS)) as string[];
  const faults = [...(excess > 0 ? [`the page is ${excess} px too wide`] : []), ...cut, ...overlaps];
  return faults.map((fault) => `${path} ${width}: ${fault}`);
};

describe.each(['short', 'long'] as const)('pages with %s names', (kind) => {
  it('cut no text, are not too wide and have no controls over each other, at six widths', async () => {
    const paths = await fill(NAMES[kind]);
    const faults: string[] = [];
    for (const path of paths) {
      await world.page.setViewportSize({ width: 1_440, height: 900 });
      await open(path);
      for (const width of WIDTHS) faults.push(...(await findFaults(path, width)));
    }
    expect(faults).toEqual([]);
  });

  it('and their dialogs too', async () => {
    const { page } = world;
    const faults: string[] = [];
    const openers: readonly (readonly [string, () => Promise<void>])[] = [
      ['/agents', () => page.getByRole('button', { name: 'Spawn an agent' }).click()],
      ['/settings', () => page.getByRole('button', { name: 'Create a key' }).click()],
      ['/sessions', () => page.keyboard.press('Control+k')],
    ];
    for (const [path, press] of openers) {
      await page.setViewportSize({ width: 1_440, height: 900 });
      await open(path);
      await press();
      await page.locator('dialog[open]').waitFor();
      for (const width of WIDTHS) faults.push(...(await findFaults(`${path} (dialog)`, width)));
    }
    expect(faults).toEqual([]);
  });
});

describe('the check of the layout', () => {
  it('finds planted faults', async () => {
    const { page } = world;
    await open('/no-such-page');
    await page.evaluate(`{
      const box = document.createElement('div');
      box.style.cssText = 'position: relative; width: 200px; height: 80px';
      const cut = document.createElement('p');
      cut.style.cssText = 'width: 40px; overflow: hidden; white-space: nowrap';
      cut.textContent = 'planted text that is cut';
      box.append(cut);
      for (const left of [0, 10]) {
        const control = document.createElement('button');
        control.style.cssText = 'position: absolute; top: 30px; left: ' + left + 'px';
        control.textContent = 'planted ' + left;
        box.append(control);
      }
      document.querySelector('main').append(box);
    }`);
    const faults = await findFaults('planted', 768);
    expect(faults).toHaveLength(2);
    expect(faults[0]).toContain('cut: planted text');
    expect(faults[1]).toContain('planted 0');
  });
});
