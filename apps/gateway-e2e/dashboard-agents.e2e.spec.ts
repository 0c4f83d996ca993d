import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { AGENTS, AgentsOnPage, AskedModel } from './agents-on-page.js';
import {
  findViolations,
  readApi,
  savePictures,
  startDashboardWorld,
  type DashboardWorld,
} from './dashboard-world.js';
import { waitForValue } from './stack-under-test.js';

jest.setTimeout(90_000);

const model = new AskedModel();
let world: DashboardWorld;
const agents = new AgentsOnPage(() => world);
beforeAll(async () => {
  world = await startDashboardWorld({ model: model.script });
  const [first, ...others] = AGENTS;
  if (first) await agents.spawnByDialog(first);
  for (const spec of others) await agents.spawn(spec);
}, 120_000);
afterAll(async () => {
  model.endSpeech();
  await world?.stop();
});

const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });

describe('the cards of agents', () => {
  it('show what three spawned agents are, and that none has a sample yet', async () => {
    const { page } = world;
    await page.goto('/');
    expect(await agents.read('Researcher')).toMatchObject({
      ...{ role: 'research', provider: 'openai', model: 'gpt-4o', project: 'harbour' },
      ...{ tools: ['calculator', 'echo'], capabilities: ['research', 'english', 'tides', 'maps'] },
      budget: { tokens: 50_000, microUsd: null },
    });
    for (const { name, model } of AGENTS) {
      await agents.card(name).getByText(model, { exact: true }).waitFor();
      await agents.card(name).getByText('idle', { exact: true }).waitFor();
    }
    expect((await agents.card('Researcher').getByRole('list').innerText()).split('\n')).toEqual([
      ...['research', 'english', 'tides', '+1'],
    ]);
    await agents.card('Critic').getByText('no capabilities').waitFor();
    await agents.card('Writer').getByText('no sample yet').waitFor();
  });

  it('follow each state and phase live: speaking from the first text, waiting for an approval', async () => {
    const { page } = world;
    await agents.say('Researcher', 'please speak');
    await agents.card('Researcher').getByText('working: speaking').waitFor();
    expect(await agents.read('Researcher')).toMatchObject({ state: 'working', phase: 'speaking' });
    await agents.say('Writer', 'please calculate');
    await agents.card('Writer').getByText('waits for approval').waitFor();
    // The frame of the card may be earlier than the fold of the list.
    const approval = await waitForValue(
      'the approval',
      async () => (await agents.read('Writer')).current?.approvalId ?? undefined,
    );
    expect(await agents.card('Writer').getByRole('link', { name: 'Decide' }).getAttribute('href')).toBe(
      `/approvals?id=${approval}`,
    );
    // Those that need a person come first, then those that work.
    const first = await page
      .locator('[data-agent]')
      .evaluateAll((cards) => cards.slice(0, 2).map((one) => one.getAttribute('data-agent')));
    expect(first).toEqual([agents.idOf('Writer'), agents.idOf('Researcher')]);
    await agents.card('Critic').getByRole('button', { name: 'Pause' }).click();
    await agents.card('Critic').getByText('paused', { exact: true }).waitFor();
    expect(await agents.read('Critic')).toMatchObject({ state: 'paused' });
    await agents.card('Critic').getByRole('button', { name: 'Resume' }).click();
    await agents.card('Critic').getByRole('button', { name: 'Pause' }).waitFor();
    model.endSpeech();
    await agents.card('Researcher').getByText('idle', { exact: true }).waitFor();
    expect(world.errors).toEqual([]);
  });

  it('are filtered by state, capability, model and text, in the address', async () => {
    const { page } = world;
    await page.goto('/agents');
    const names = async () => (await page.locator('[data-agent] header a').allInnerTexts()).sort();
    const shows = (expected: readonly string[]) =>
      waitForValue(`the cards ${expected}`, async () =>
        JSON.stringify(await names()) === JSON.stringify(expected) ? true : undefined,
      );
    await shows(['Claude', 'Critic', 'Gpt', 'Researcher', 'Writer']);
    await page.getByLabel('Capability').selectOption('tides');
    await shows(['Researcher']);
    await page.goto('/agents?model=gpt-4o-mini');
    await shows(['Critic']);
    await page.goto('/agents?q=wri');
    await shows(['Writer']);
    await page.goto('/agents?state=working');
    await shows(['Writer']);
    await button('Table').click();
    await page
      .getByRole('row', { name: /^Writer/ })
      .getByText('waits for approval')
      .waitFor();
    expect(new URL(page.url()).search).toBe('?state=working&view=table');
  });
});

describe('the agents that agents spawn', () => {
  it('are below their parents in a tree, which folds', async () => {
    const { page } = world;
    const child = { name: 'Diver', role: 'research', model: 'gpt-4o', capabilities: '' };
    await agents.spawn(child, { parent: agents.idOf('Researcher') });
    await page.goto('/agents');
    await button('Tree').click();
    const below = page.getByRole('list', { name: 'Agents below Researcher' });
    await below.getByRole('link', { name: 'Diver' }).waitFor();
    expect(await agents.read('Diver')).toMatchObject({ parentId: agents.idOf('Researcher') });
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'agent-tree');
    await page.getByRole('button', { name: 'Agents below Researcher' }).click();
    await below.waitFor({ state: 'detached' });
    await page.getByText('1 agent below').waitFor();
  });

  it('take the settings of a role file, whose text is their prompt', async () => {
    const { page } = world;
    const text = '---\nname: Mapper\nmodel: gpt-4o-mini\ntools: [echo]\n---\n\nDraw maps.\n';
    const path = '/workspaces/default/files/system/agents/mapper.md';
    expect((await agents.call('', 'PUT', path, { text })).status).toBeLessThan(300);
    await page.goto('/agents?spawn=1');
    const dialog = page.getByRole('dialog', { name: 'Spawn an agent' });
    await dialog.getByLabel('Role file').selectOption('mapper');
    await dialog.getByText('Its text is the prompt.').waitFor();
    await waitForValue('the name of the file', async () =>
      (await dialog.getByLabel('Name').inputValue()) === 'Mapper' ? true : undefined,
    );
    await dialog.getByLabel('Base').selectOption('gpt');
    await dialog.getByRole('button', { name: 'Spawn', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Mapper' }).waitFor();
    const id = new URL(page.url()).pathname.split('/')[2];
    expect(await readApi(world, `/api/v1/agents/${id}`)).toMatchObject({
      ...{ role: 'mapper', model: 'gpt-4o-mini', tools: ['echo'] },
    });
  });
});

describe('a failed task of the queue', () => {
  it('is told by a toast', async () => {
    const { page } = world;
    await page.goto('/agents');
    // The tab follows the log once it knows its head.
    await page.getByText(/Live event [\d,]+/).waitFor();
    const task = { prompt: 'fail again', agent: 'claude', retry: { strikes: 1 } };
    const created = await agents.call<{ id: string }>('', 'POST', '/tasks', task);
    expect([created.status, created.body]).toEqual([201, expect.anything()]);
    await page.getByRole('log', { name: 'Failures' }).getByText('task ended').waitFor();
  });
});

describe('the messages of two agents', () => {
  const keyOf = async (name: string): Promise<string> => {
    const request = { name, role: 'member', agentId: agents.idOf(name) };
    return (await agents.call<{ token: string }>('', 'POST', '/keys', request)).body.token;
  };
  /** Sends a message of one agent to another one. Returns its id. */
  const send = async (from: string, to: string, message: object): Promise<string> => {
    const body = { to: { agent: agents.idOf(to) }, ...message };
    const sent = await agents.call<{ messageId: string }>(await keyOf(from), 'POST', '/messages', body);
    expect([sent.status, sent.body]).toEqual([201, expect.anything()]);
    return sent.body.messageId;
  };

  it('are a thread of request and reply with read marks, live and in the past', async () => {
    const { page } = world;
    await page.goto('/messages');
    await page.getByText(/Live event [\d,]+/).waitFor();
    const line = (id: string) => page.locator(`[data-message="${id}"]`);
    const request = await send('Researcher', 'Claude', { type: 'Request', content: { text: 'Is it good?' } });
    await line(request).getByText('not read').waitFor();
    await send('Writer', 'Researcher', { type: 'AgentSpoke', content: { text: 'Another thread.' } });
    await agents.say('Claude', 'look at your messages');
    await line(request).getByText('read', { exact: true }).waitFor();
    const reply = await send('Claude', 'Researcher', {
      ...{ type: 'Reply', cause: request },
      content: { text: 'It is.', to: request },
    });
    await line(reply).getByText('not read').waitFor();
    const shown = await page
      .locator('[data-message]')
      .evaluateAll((lines) => lines.map((one) => one.getAttribute('data-message')));
    expect(shown.slice(0, 2)).toEqual([request, reply]);
    const { messages } = await readApi<{ messages: { messageId: string; logPosition: number }[] }>(
      world,
      '/api/v1/messages',
    );
    expect(messages.map(({ messageId }) => messageId).sort()).toEqual([...shown].sort());
    expect(await findViolations(page)).toEqual([]);
    const at = messages.find(({ messageId }) => messageId === request)?.logPosition;
    await page.goto(`/messages?at=${at}`);
    await line(request).getByText('not read').waitFor();
    expect(await page.locator('[data-message]').count()).toBe(1);
  });

  it('are written to an agent, and answered, from the page', async () => {
    const { page } = world;
    await page.goto('/messages?type=AgentSpoke');
    await button('Write a message').click();
    const dialog = page.getByRole('dialog', { name: 'Write a message' });
    await dialog.getByLabel('Agent', { exact: true }).selectOption(agents.idOf('Writer'));
    await dialog.getByLabel('Text').fill('Please begin.');
    await dialog.getByRole('button', { name: 'Send' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.locator('[data-message]').getByText('Please begin.').waitFor();
    expect(await readApi(world, `/api/v1/agents/${agents.idOf('Writer')}/messages`)).toMatchObject({
      messages: [{ content: { text: 'Please begin.' }, type: 'AgentSpoke' }],
    });
  });
});

describe('the page of an agent', () => {
  it('has its work, memory, money and history as parts', async () => {
    const { page } = world;
    const parts = page.getByRole('navigation', { name: 'Parts of the agent' });
    await page.goto(`/agents/${agents.idOf('Critic')}`);
    for (const name of ['Chats', 'Tasks', 'Messages', 'Memory', 'Money', 'Definition', 'History', 'Now']) {
      await parts.getByRole('link', { name, exact: true }).click();
      await parts.locator('[aria-current=page]').getByText(name, { exact: true }).waitFor();
      await page.locator('main p[aria-busy=true]').first().waitFor({ state: 'detached' });
      expect([name, await page.locator('main [role=alert]').count()]).toEqual([name, 0]);
    }
  });
});
