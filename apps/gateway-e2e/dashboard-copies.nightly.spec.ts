import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, runCli, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

let world: DashboardWorld;
let sessionId: string;
let runId: string;
let workflowId: string;
let approvalId: string;
let memoryId: string;

const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });
const post = async (path: string, body: object): Promise<Record<string, string>> => {
  const headers = { 'content-type': 'application/json' };
  const sent = { method: 'POST', headers, body: JSON.stringify(body) };
  return (await (await fetch(world.stack.gatewayUrl + path, sent)).json()) as Record<string, string>;
};

beforeAll(async () => {
  world = await startDashboardWorld();
  const { page, stack } = world;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto('/agents/gpt');
  await page.getByLabel('Message to Gpt').fill('please calculate it');
  await button('Start a conversation').click();
  await button('Approve').waitFor();
  const [asked] = await readEvents(stack, { type: 'ApprovalRequested' });
  approvalId = String(asked?.data['approvalId']);
  sessionId = asked?.streamId.slice('session-'.length) ?? '';
  const definition = { name: 'one step', nodes: [{ id: 'only', agent: 'claude', prompt: 'hello' }] };
  ({ id: workflowId = '' } = await post('/api/v1/workflows', { definition: JSON.stringify(definition) }));
  ({ id: runId = '' } = await post(`/api/v1/workflows/${workflowId}/start`, {}));
  await page.goto('/agents/claude');
  await page.getByLabel('Message to Claude').fill('My name is Ada');
  await button('Start a conversation').click();
  memoryId = await waitForValue('a learned fact', async () => {
    const { entries } = await readApi<{ entries: { memoryId: string }[] }>(
      world,
      '/api/v1/memory?agent=claude',
    );
    return entries[0]?.memoryId;
  });
  await waitForValue('the end of the run', async () =>
    (await readEvents(stack, { type: 'WorkflowRunEnded' })).length > 0 ? true : undefined,
  );
});
afterAll(() => world?.stop());

/** Returns a path with a position. */
const withAt = (path: string, at: number | null): string =>
  at === null ? path : `${path}${path.includes('?') ? '&' : '?'}at=${at}`;

/** Copies a form of the record of the page, and returns the text of the clipboard. */
const copy = async (noun: string, form: 'link' | 'JSON' | 'command'): Promise<string> => {
  const { page } = world;
  const box = page.getByRole('group', { name: `Copy the ${noun}` });
  if (!(await box.isVisible())) await button(`Copy the ${noun}`).click();
  await box.getByRole('button', { name: `Copy ${form}` }).click();
  await box.getByText(`The ${form} is copied.`).waitFor();
  return page.evaluate('navigator.clipboard.readText()');
};

/** Runs a copied command with `--json`, as a person would in a shell. */
const runCopied = async (command: string): Promise<unknown> => {
  const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  expect(words[0]).toBe('antiphon');
  const { code, stdout, stderr } = await runCli(world.stack, [...words.slice(1), '--json']);
  expect([command, code, stderr]).toEqual([command, 0, '']);
  return JSON.parse(stdout);
};

/** Removes what changes from one read to the next: the head, and how long ago a heartbeat was. */
const lasting = (value: unknown): unknown => {
  const passing = new Set(['head', 'position', 'atPosition', 'lastSeenAt']);
  return Object.fromEntries(Object.entries(value as object).filter(([name]) => !passing.has(name)));
};

describe('a record', () => {
  it.each([
    ['session', () => `/sessions/${sessionId}`, () => `/api/v1/sessions/${sessionId}`],
    ['run', () => `/runs/${runId}`, () => `/api/v1/runs/${runId}`],
    ['agent', () => '/agents/gpt', () => '/api/v1/agents/gpt'],
    ['workflow', () => `/workflows/${workflowId}/edit`, () => `/api/v1/workflows/${workflowId}`],
    ['approval', () => '/approvals', () => `/api/v1/approvals/${approvalId}`],
    ['budgets', () => '/money', () => '/api/v1/budgets'],
    ['entry', () => `/memory?entry=${memoryId}`, () => `/api/v1/memory/${memoryId}`],
    ['task', () => `/runs/${runId}?node=only`, () => `/api/v1/tasks/${runId}%2Fonly`],
  ])(
    '%s is copied as a link, as its JSON, and as a command that prints the same',
    async (noun, path, api) => {
      const { page, stack } = world;
      const head = (await readEvents(stack)).at(-1)?.position ?? 0;
      for (const at of [null, head]) {
        await page.goto(withAt(path(), at));
        await page.getByRole('heading', { level: 1 }).waitFor();
        const link = await copy(noun, 'link');
        const json: unknown = JSON.parse(await copy(noun, 'JSON'));
        const command = await copy(noun, 'command');
        expect(lasting(json)).toEqual(lasting(await readApi(world, withAt(api(), at))));
        const printed = (await runCopied(command)) as Record<string, unknown>;
        expect(lasting(printed['session'] ?? printed)).toEqual(lasting(json));
        expect(command.endsWith(`--at ${head}`)).toBe(at !== null);
        const title = await page.title();
        await page.goto(link);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await button(`Copy the ${noun}`).waitFor();
        expect([await page.title(), new URL(link).searchParams.get('at')]).toEqual([
          title,
          at === null ? null : String(head),
        ]);
      }
    },
  );

  it('event is copied as a link, as its JSON with its hash, and as a command that prints the same', async () => {
    const { page, stack } = world;
    const [event] = await readEvents(stack, { type: 'ApprovalRequested' });
    await page.goto(`/events?open=${event?.position}&at=${event?.position}`);
    const json: unknown = JSON.parse(await copy('event', 'JSON'));
    expect(json).toEqual(event);
    expect(await runCopied(await copy('event', 'command'))).toEqual(event);
    await page.goto(await copy('event', 'link'));
    await page.getByRole('heading', { name: /ApprovalRequested/ }).waitFor();
  });
});

describe('a list', () => {
  it.each([
    ['keys', '/settings', '/api/v1/keys?limit=200'],
    ['archives', '/audit', '/api/v1/archives'],
    ['backups', '/audit', '/api/v1/backups'],
    ['audits', '/audit', '/api/v1/audits?limit=1'],
  ])('of %s is copied as its JSON, and as a command that prints the same', async (noun, path, api) => {
    await world.page.goto(path);
    const record = noun === 'audits' ? 'audit' : noun;
    const json = JSON.parse(await copy(record, 'JSON')) as Record<string, unknown>;
    expect(json[noun]).toEqual((await readApi<Record<string, unknown>>(world, api))[noun]);
    const printed = (await runCopied(await copy(record, 'command'))) as Record<string, unknown>;
    expect(printed[noun] ?? printed).toEqual(json[noun]);
    expect(new URL(await copy(record, 'link')).pathname).toBe(path);
  });
});

const saved = async (name: string): Promise<{ file: string; text: string }> => {
  const waiting = world.page.waitForEvent('download');
  await world.page.getByText(name, { exact: true }).click();
  const download = await waiting;
  return { file: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
};

describe('a saved file', () => {
  it('of filtered events has each of them once, as the API has them', async () => {
    await world.page.goto('/events?category=session&excludeType=ModelCallStarted');
    await world.page.getByRole('table', { name: /^Events/ }).waitFor();
    const { file, text } = await saved('Save as JSON lines');
    const lines = text.trimEnd().split('\n');
    const wanted = await readEvents(world.stack, { category: 'session', excludeType: 'ModelCallStarted' });
    expect(file).toBe('events.jsonl');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(wanted);
    expect(wanted.length).toBeGreaterThan(3);
  });

  it('of a session has the bytes of the API, which the command line verifies as a chain', async () => {
    await world.page.goto(`/sessions/${sessionId}`);
    const { text } = await saved('Export with hashes');
    const printed = await runCli(world.stack, ['session', 'export', sessionId]);
    expect([printed.code, printed.stdout]).toEqual([0, text]);
  });

  it.each(['agent', 'model', 'key', 'day'])(
    'of the usage by %s is CSV with the figures of the API',
    async (by) => {
      await world.page.goto(`/money?by=${by}`);
      const { file, text } = await saved('Save as CSV');
      type Cost = Record<string, number | string>;
      const usage = await readApi<{ agents: Cost[]; groups?: Cost[] }>(world, `/api/v1/usage?by=${by}`);
      const [columns = '', ...rows] = text.trimEnd().split('\r\n');
      const names = columns.split(',').slice(1);
      const wanted = (usage.groups ?? usage.agents).map((cost) =>
        [cost['name'] ?? cost['agentId'], ...names.map((name) => cost[name])].join(','),
      );
      expect([file, rows]).toEqual([`usage-by-${by}.csv`, wanted]);
      expect(names).toContain('settledMicroUsd');
    },
  );

  it('of a workflow is its definition, which the command line accepts', async () => {
    await world.page.goto(`/workflows/${workflowId}/edit?view=text`);
    const { text } = await saved('Download');
    expect(text).toContain('one step');
  });
});

describe('all of it', () => {
  it('asked no other origin and broke no policy', () => {
    expect([world.leaks, world.errors]).toEqual([[], []]);
  });
});
