import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { PlanView, TaskItem } from '@antiphon/contracts/agent';
import type { MockScript } from '@antiphon/testing/providers';
import type { Locator } from 'playwright-core';
import {
  findViolations,
  readApi,
  savePictures,
  startDashboardWorld,
  type DashboardWorld,
} from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(60_000);

const SETTINGS = `
[[agents]]
id = "planner"
workspace = "*"
name = "Planner"
provider = "openai"
model = "gpt-4o"
tools = ["calculator", "make_plan", "plan_step", "echo"]

[[agents.approvals]]
tool = "echo"
`;

const { promise: released, resolve: release } = Promise.withResolvers<void>();
/** Ends steps of plans with evidence, fails those that ask for it, and holds on request. */
const model: MockScript = ({ user, toolResults }) => {
  if (user.includes('make a plan') && toolResults.length === 0) {
    const input = { path: 'chat.plan.md', title: 'Chat', steps: ['Add them', 'Find it', 'Say it'] };
    return { tools: [{ id: 'make', name: 'make_plan', input }] };
  }
  const [, step = '', path = ''] = /Do step (\S+) of the plan (\S+):/.exec(user) ?? [];
  const report = (input: object) => ({
    tools: [{ id: `call_${step}_${toolResults.length}`, name: 'plan_step', input: { path, step, ...input } }],
  });
  if (user.includes('fail this')) return { status: 400, body: { error: { message: 'no such thing' } } };
  if (user.includes('ask first') && toolResults.length === 0)
    return { tools: [{ id: 'ask', name: 'echo', input: { text: 'may I' } }] };
  if (user.includes('hold')) return { reply: { text: ['released'] }, before: () => released };
  if (step === '' || toolResults.length > 1) return { text: ['High water is at **noon**.'] };
  if (user.includes('cannot'))
    return toolResults.length > 0 ? { text: ['no'] } : report({ status: 'failed', note: 'no tide table' });
  if (toolResults.length === 0)
    return { tools: [{ id: `sum_${step}`, name: 'calculator', input: { expression: '40 + 2' } }] };
  return report({ status: 'done', evidence: { tool: 'calculator' }, note: 'added' });
};

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld({ settings: SETTINGS, model });
}, 120_000);
afterAll(async () => {
  release();
  await world?.stop();
});

const send = async <T>(method: string, path: string, body: object): Promise<T> => {
  const response = await fetch(`${world.stack.gatewayUrl}/api/v1${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
};
const taskOf = (id: string) => readApi<TaskItem>(world, `/api/v1/tasks/${id}`);
const planOf = (path: string) => readApi<PlanView>(world, `/api/v1/plans?path=${path}`);
const writeFile = (path: string, text: string) => send('PUT', `/workspaces/default/files/${path}`, { text });
const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });
const dialog = () => world.page.getByRole('dialog');
const row = (name: string | RegExp) => world.page.getByRole('row', { name });

describe('the pages of tasks in Chromium', () => {
  it('say why no agent can do a task, and show it done once one has the capability', async () => {
    const { page } = world;
    await page.goto('/tasks');
    await page.getByText('No task is here').waitFor();
    await button('Create a task').click();
    await page.getByLabel('Prompt').fill('When is high water?');
    await dialog().getByLabel('Title').fill('Tide tables');
    await dialog().getByLabel('Capabilities').fill('tide-data');
    await dialog().getByText('No agent has tide-data').waitFor();
    await page.getByText('Priority, deadline, tries').click();
    await page.getByLabel('Priority').fill('2');
    await page.getByLabel('Budget in US dollars').fill('0.25');
    await savePictures(world.page, 'task-create');
    await button('Create').click();
    await page.getByRole('heading', { level: 1, name: 'Tide tables' }).waitFor();
    await page.getByText('no agent has tide-data').waitFor();
    const id = page.url().split('/').at(-1) ?? '';
    expect(await taskOf(id)).toMatchObject({ priority: 2, waiting: { missing: ['tide-data'] } });
    await page.goto('/tasks?tab=queued');
    await row(/Tide tables.*no agent has tide-data/).waitFor();
    const [queued] = await readEvents(world.stack, { type: 'TaskQueued' });
    expect(queued?.data['budget']).toEqual({ tokens: null, microUsd: 250_000 });
    await page.getByRole('button', { name: 'Needs me 1' }).click();
    await row(/Tide tables/)
      .getByRole('link', { name: 'Spawn an agent' })
      .click();
    expect(await dialog().getByLabel('Capabilities').inputValue()).toBe('tide-data');
    await dialog().getByLabel('Name').fill('Harbour');
    await dialog().getByLabel('Base').selectOption('gpt');
    await dialog().getByRole('button', { name: 'Spawn', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Harbour' }).waitFor();
    await page.goto(`/tasks/${id}`);
    await page.getByText('High water is at noon.').waitFor();
    expect((await taskOf(id)).state).toBe('completed');
    await page.getByRole('heading', { name: '1 attempt' }).waitFor();
    await page.getByRole('link', { name: 'Why' }).waitFor();
    await savePictures(world.page, 'task');
  });

  it('count by state, show the place in the queue, and cancel the chosen ones by keys', async () => {
    const { page } = world;
    const running = await send<TaskItem>('POST', '/tasks', { prompt: 'hold it', agent: 'claude' });
    await waitForValue(
      'a running task',
      async () => (await taskOf(running.id)).state === 'running' || undefined,
    );
    for (const title of ['One', 'Two', 'Three'])
      await send('POST', '/tasks', { prompt: 'later', title, agent: 'claude' });
    await page.goto('/tasks?tab=queued');
    await row(/Three.*claude busy, place 3/).waitFor();
    await page.getByRole('button', { name: 'Queued 3' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'tasks');
    // The newest is first.
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.getByText('2 tasks chosen').waitFor();
    await button('Cancel the chosen ones').click();
    await dialog().getByRole('button', { name: 'Cancel them' }).click();
    await page.getByRole('button', { name: 'Queued 1' }).waitFor();
    const { counts } = await readApi<{ counts: Record<string, number> }>(
      world,
      '/api/v1/tasks?kind=task&counts=true&limit=1',
    );
    expect(counts).toMatchObject({ queued: 1, cancelled: 2, completed: 1, running: 1 });
    release();
    await page.getByRole('button', { name: 'Queued 0' }).waitFor();
  });

  it('create a new task with the specification of another one', async () => {
    const { page } = world;
    const first = await send<TaskItem>('POST', '/tasks', {
      ...{ prompt: 'once more', title: 'Twice', priority: 7, retry: { strikes: 2 }, agent: 'gpt' },
    });
    await page.goto(`/tasks/${first.id}`);
    await page.getByText('High water is at noon.').waitFor();
    await button('Do it again').click();
    await button('Create').click();
    await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && !url.pathname.endsWith(first.id));
    const id = page.url().split('/').at(-1) ?? '';
    expect(await taskOf(id)).toMatchObject({ title: 'Twice', priority: 7, agentId: 'gpt' });
  });
});

describe('the tasks that need a person', () => {
  it('are on a tab: those that wait for a person first, and none that continues alone', async () => {
    const { page } = world;
    const create = (title: string, spec: object) => send<TaskItem>('POST', '/tasks', { title, ...spec });
    const broken = await create('Broken', { prompt: 'fail this', agent: 'claude', retry: { strikes: 1 } });
    await create('Deep', { prompt: 'listen', capabilities: ['sonar'] });
    const asking = await create('Careful', { prompt: 'ask first', agent: 'planner' });
    await waitForValue('a failure', async () => (await taskOf(broken.id)).endedAt ?? undefined);
    await waitForValue('an approval', async () => {
      const { approvals } = await readApi<{ approvals: unknown[] }>(
        world,
        '/api/v1/approvals?status=pending',
      );
      return approvals.length > 0 ? true : undefined;
    });
    await page.goto('/tasks?tab=needs');
    await page.getByRole('button', { name: 'Needs me 3' }).waitFor();
    const careful = row(/Careful.*waits for approval/);
    await careful.waitFor();
    await row(/Deep.*no agent has sonar/).waitFor();
    await row(/Broken.*no such thing/).waitFor();
    const titles = await page
      .locator('[data-task]')
      .evaluateAll((rows) => rows.map((one) => one.querySelector('a')?.textContent));
    expect(titles).toEqual(['Careful', 'Deep', 'Broken']);
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'task-needs');
    const decide = await careful.getByRole('link', { name: 'Decide' }).getAttribute('href');
    const approval = new URLSearchParams(decide?.split('?')[1]).get('id');
    await send('POST', `/approvals/${approval}/answer`, { decision: 'approve' });
    await page.getByRole('button', { name: 'Needs me 2' }).waitFor();
    await waitForValue('its end', async () => (await taskOf(asking.id)).endedAt ?? undefined);
    // A task that is tried again needs no person any more, and both tasks lead to each other.
    await page.goto(`/tasks/${broken.id}`);
    await button('Try again').click();
    await dialog().getByLabel('Prompt').fill('When is high water?');
    await button('Create').click();
    await page.waitForURL(
      (url) => /^.tasks.[0-9a-f-]{36}$/.test(url.pathname) && !url.href.endsWith(broken.id),
    );
    const again = page.url().split('/').at(-1) ?? '';
    const facts = page.getByRole('region', { name: 'Facts' });
    await facts.getByRole('link', { name: broken.id.slice(0, 8) }).click();
    await facts.getByText('Tried again as').waitFor();
    expect(await facts.locator(`a[href="/tasks/${again}"]`).count()).toBe(1);
    expect(await taskOf(again)).toMatchObject({ retryOf: broken.id, state: 'completed' });
    await page.goto('/tasks?tab=needs');
    await page.getByRole('button', { name: 'Needs me 1' }).waitFor();
    await row(/Deep.*no agent has sonar/).waitFor();
    expect(await row(/Broken/).count()).toBe(0);
  });

  it('and all others are a board of their states, equal to the counts of the API', async () => {
    const { page } = world;
    await page.goto('/tasks?view=board');
    const column = (name: string) => page.getByRole('region', { name, exact: true });
    await column('Failed').getByRole('link', { name: 'Broken' }).waitFor();
    await column('Queued').getByText('no agent has sonar').waitFor();
    const { counts } = await readApi<{ counts: Record<string, number> }>(
      world,
      '/api/v1/tasks?kind=task&counts=true&limit=1',
    );
    const ended = (counts['completed'] ?? 0) + (counts['cancelled'] ?? 0);
    for (const [name, count] of [
      ['Queued', counts['queued']],
      ['Failed', counts['failed']],
      ['Ended', ended],
    ] as const) {
      await column(name)
        .getByRole('heading', { name: `${name} ${count}` })
        .waitFor();
      expect([name, await column(name).getByRole('listitem').count()]).toEqual([name, count]);
    }
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'task-board');
  });
});

describe('the pages of plans in Chromium', () => {
  it('run the steps, link their evidence, and stop at a failing step', async () => {
    const { page } = world;
    await writeFile(
      'tides.plan.md',
      '# Tides\n\n- [ ] Add the heights\n- [ ] Find what cannot be found\n- [ ] Never done\n',
    );
    await page.goto('/plans');
    await savePictures(world.page, 'plans');
    await page.getByRole('link', { name: 'tides.plan.md' }).click();
    await page.getByRole('listitem').filter({ hasText: 'Add the heights' }).waitFor();
    await button('Run').click();
    expect(await dialog().getByRole('option', { name: 'gpt: has no tool plan_step' }).isDisabled()).toBe(
      true,
    );
    await dialog().getByRole('button', { name: 'Run' }).click();
    const failed = page.getByRole('listitem').filter({ hasText: 'Find what cannot be found' });
    await failed.getByText('failed', { exact: true }).waitFor();
    await page.getByText('step failed', { exact: false }).first().waitFor();
    const plan = await planOf('tides.plan.md');
    expect(plan.steps.map(({ status }) => status)).toEqual(['done', 'failed', 'open']);
    await page.getByText('1 of 3', { exact: true }).waitFor();
    const done = page.getByRole('listitem').filter({ hasText: 'Add the heights' });
    await done.getByText('Note: added').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'plan');
    await done.getByRole('link', { name: /^call of calculator/ }).click();
    await page.getByText('calculator').first().waitFor();
    expect(page.url()).toContain('/why/');
    await page.goto('/plans');
    await row(/tides\.plan\.md.*failed.*1 of 3.*1 failed step/).waitFor();
  });

  it('are next to the chat that made them, equal to their page and to the API', async () => {
    const { page } = world;
    const path = 'chat.plan.md';
    const say = async (text: string, answer: string): Promise<void> => {
      await page.getByRole('textbox', { name: 'Message' }).fill(text);
      await page.keyboard.press('Enter');
      await page.getByRole('feed').getByText(answer).last().waitFor();
    };
    const rowsIn = async (place: Locator): Promise<string[]> => {
      const rows = await place.getByRole('listitem').allInnerTexts();
      return rows.map((text) => text.replaceAll(/\s+/g, ' ').trim());
    };
    await page.goto('/chats/new?agent=planner');
    await say('make a plan', 'High water');
    await page.waitForURL(/\/chats\/[0-9a-f-]{36}$/);
    const chat = page.url();
    await button('Open the side panel').click();
    const panel = page.getByRole('region', { name: 'Plan of this chat' });
    await panel.getByText('0 of 3', { exact: true }).waitFor();
    await say(`Do step s1 of the plan ${path}: add`, 'High water');
    await panel.getByText('1 of 3', { exact: true }).waitFor();
    await say(`Do step s2 of the plan ${path}: it cannot be found`, 'no');
    await panel.getByText('Note: no tide table').waitFor();
    expect((await planOf(path)).status).toBe('failed');
    await writeFile(path, '# Chat\n\nNo box is left.\n');
    await panel.getByRole('region', { name: 'Conflict 1', exact: true }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'chat-plan');
    const { steps, conflicts } = await planOf(path);
    expect(conflicts).toHaveLength(1);
    expect(steps.map((step) => [step.status, step.evidence?.kind])).toEqual([
      ['done', 'tool'],
      ['failed', undefined],
      ['open', undefined],
    ]);
    const shown = await rowsIn(panel);
    for (const [index, step] of steps.entries()) {
      expect(shown[index]).toContain(`${step.stepId} ${step.text} ${step.status}`);
      if (step.note !== null) expect(shown[index]).toContain(`Note: ${step.note}`);
    }
    await panel.getByRole('link', { name: path }).click();
    await page.getByRole('region', { name: 'Conflict 1', exact: true }).waitFor();
    expect(await rowsIn(page.getByRole('region', { name: 'Steps' }))).toEqual(shown);
    const evidence = page.getByRole('link', { name: /^call of calculator/ });
    const link = await evidence.getAttribute('href');
    await page.goto(chat);
    expect(await panel.getByRole('link', { name: /^call of calculator/ }).getAttribute('href')).toBe(link);
    expect(link).toMatch(/^\/sessions\/[0-9a-f-]{36}\/why\/[0-9a-f-]{36}$/);
    await button('Close the side panel').first().click();
  });

  it('show an edit that contradicts the facts next to them, and lead to the file', async () => {
    const { page } = world;
    await writeFile('tides.plan.md', '# Tides\n\nNo box is left.\n');
    await page.goto('/plans/tides.plan.md');
    const conflict = page.getByRole('region', { name: 'Conflict 1', exact: true });
    await conflict.getByText('The file has no step').waitFor();
    expect((await planOf('tides.plan.md')).conflicts).toHaveLength(1);
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'conflict');
    await page.getByRole('link', { name: 'Edit the file' }).click();
    await page.getByRole('textbox', { name: 'Text of tides.plan.md' }).waitFor();
    await button('Cancel').click();
    await page.getByRole('link', { name: 'Open its steps' }).click();
    await page.getByRole('heading', { level: 1, name: 'tides.plan.md' }).waitFor();
    // The facts win, and the edit stays in the history of the file.
    await button('Take the facts').click();
    await conflict.waitFor({ state: 'detached' });
    await page.getByRole('listitem').filter({ hasText: 'Add the heights' }).waitFor();
    expect(await planOf('tides.plan.md')).toMatchObject({ status: 'failed', conflicts: [] });
    const file = await fetch(`${world.stack.gatewayUrl}/api/v1/workspaces/default/files/tides.plan.md`);
    expect(await file.text()).toContain('- [x] Add the heights');
  });
});
