import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { CANARY_KEY, createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(240_000);

let world: DashboardWorld;
const call = createApiCaller(() => world.stack.gatewayUrl);
beforeAll(async () => {
  world = await startDashboardWorld({ model: () => ({ text: ['well'] }), settings: '' });
  await world.page.goto('/agents/gpt');
  await world.page.getByLabel('Message to Gpt').fill('hello');
  await world.page.getByRole('button', { name: 'Start a conversation' }).click();
  await world.page.locator('[data-turn]').getByText('well').waitFor();
});
afterAll(() => world?.stop());

const open = async (path: string): Promise<void> => {
  const { page } = world;
  await page.goto(path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('main p[aria-busy=true]').first().waitFor({ state: 'detached' });
};
const button = (name: string) => world.page.getByRole('button', { name, exact: true });
/** Types of facts of work: a validation records its result, and runs nothing. */
const readFacts = async (): Promise<string[]> =>
  (await readEvents(world.stack))
    .filter(({ streamId }) => /^(session|agent|run|budget|task)-/.test(streamId))
    .map(({ type }) => type);

describe('the past', () => {
  it('has no message that was deleted later, at any position', async () => {
    const { page } = world;
    const created = await call<{ id: string; sessionId: string }>('', 'POST', '/workspaces/default/chats', {
      name: 'secret',
      agent: 'claude',
    });
    const { id, sessionId } = created.body;
    const path = `/workspaces/default/chats/${id}`;
    const sent = await call<{ turnId: string }>('', 'POST', path, {
      command: 'message',
      content: 'SHREDDED-TEXT',
    });
    const ended = await waitForValue('the end of the turn', async () => {
      const events = await readEvents(world.stack, { stream: `session-${sessionId}` });
      return events.find(({ type }) => type === 'TurnCompleted');
    });
    expect((await call('', 'DELETE', `${path}/messages/${sent.body.turnId}`)).status).toBeLessThan(300);
    const events = await readEvents(world.stack, { stream: `session-${sessionId}` });
    expect(ended).toBeDefined();
    for (const { position } of events) {
      for (const at of [
        `/sessions/${sessionId}?at=${position}`,
        `/sessions/${sessionId}/why/${sent.body.turnId}?at=${position}`,
        `/sessions?at=${position}`,
      ]) {
        await open(at);
        expect([at, (await page.locator('body').innerText()).includes('SHREDDED-TEXT')]).toEqual([at, false]);
      }
      const turns = await fetch(
        `${world.stack.gatewayUrl}/api/v1/sessions/${sessionId}/turns?at=${position}`,
      );
      expect(await turns.text()).not.toContain('SHREDDED-TEXT');
    }
  });

  it('is closed to a key that was revoked since, and to one that lost the right', async () => {
    const { stack } = world;
    const { body: key } = await call<{ id: string; token: string }>('', 'POST', '/keys', {
      name: 'past',
      role: 'member',
    });
    const scoped = { name: 'scoped', role: 'member', scopes: ['events:read'] };
    const { body: narrow } = await call<{ token: string }>('', 'POST', '/keys', scoped);
    const [turn] = await readEvents(stack, { type: 'TurnRequested' });
    const id = turn?.streamId.slice('session-'.length);
    const at = `at=${turn?.position}`;
    const paths = [
      `/sessions/${id}/turns?${at}`,
      `/sessions/${id}?${at}`,
      `/sessions?${at}`,
      `/agents?${at}`,
      `/budgets?${at}`,
    ];
    const read = async (token: string): Promise<number[]> => {
      const replies = await Promise.all(paths.map((path) => call(token, 'GET', path)));
      return replies.map(({ status }) => status);
    };
    expect(await read(key.token)).toEqual(paths.map(() => 200));
    expect(await read(narrow.token)).toEqual(paths.map(() => 403));
    expect((await call('', 'DELETE', `/keys/${key.id}`)).status).toBeLessThan(300);
    await world.page.waitForTimeout(1_100);
    expect(await read(key.token)).toEqual(paths.map(() => 401));
  });
});

describe('a request', () => {
  it('that validates, previews or repeats needs the right and runs nothing', async () => {
    const { body: viewer } = await call<{ token: string }>('', 'POST', '/keys', {
      name: 'viewer',
      role: 'viewer',
    });
    const nodes = [{ id: 'one', agent: 'gpt', prompt: 'x', needs: [] }];
    const { body: workflow } = await call<{ id: string }>('', 'POST', '/workflows', {
      definition: { name: 'w', nodes },
    });
    const [turn] = await readEvents(world.stack, { type: 'TurnCompleted' });
    const sessionId = turn?.streamId.slice('session-'.length);
    const before = [await readFacts(), world.mock.calls.length];
    const what = { atVersion: 1, whatIf: { turns: 1 } };
    const refused = [
      await call(viewer.token, 'POST', `/sessions/${sessionId}/fork`, what),
      await call(viewer.token, 'POST', `/workflows/${workflow.id}/start`, {}),
      await call(viewer.token, 'POST', '/sessions/x/files/rewind', { at: 1, dryRun: true }),
      await call('ak_wrong', 'POST', `/workflows/${workflow.id}/validate`, {}),
    ];
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 401]);
    const valid = await call('', 'POST', `/workflows/${workflow.id}/validate`, {});
    expect(valid.status).toBe(200);
    expect([await readFacts(), world.mock.calls.length]).toEqual(before);
  });

  it('names no destination and no credential of another owner, and secrets are only written', async () => {
    const { page } = world;
    const [turn] = await readEvents(world.stack, { type: 'TurnCompleted' });
    const sessionId = turn?.streamId.slice('session-'.length);
    const foreign = {
      baseUrl: 'http://127.0.0.1:9',
      base_url: 'http://127.0.0.1:9',
      credential: 'other',
      apiKeyEnv: 'HOME',
    };
    for (const [name, value] of Object.entries(foreign)) {
      const fork = await call('', 'POST', `/sessions/${sessionId}/fork`, { atVersion: 1, [name]: value });
      const agent = await call('', 'POST', '/agents', { name: 'x', base: 'claude', [name]: value });
      expect([name, fork.status, agent.status]).toEqual([name, 400, 400]);
    }
    expect(
      (await call('', 'POST', `/sessions/${sessionId}/fork`, { atVersion: 1, provider: 'other', model: 'm' }))
        .status,
    ).toBe(404);
    await open('/settings');
    await button('Create a key').click();
    await page.getByLabel('Name').fill('shown once');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'The key, shown once' });
    const secret = await dialog.locator('code').innerText();
    expect(secret).toMatch(/^ak_/);
    await dialog.getByRole('button', { name: 'Done' }).click();
    const stored = String(
      await page.evaluate(
        'JSON.stringify([{...localStorage}, {...sessionStorage}, location.href, history.state])',
      ),
    );
    for (const path of ['/settings', '/events', '/']) {
      await open(path);
      const text = (await page.content()) + stored;
      expect([path, text.includes(secret.slice(-20)), text.includes(CANARY_KEY)]).toEqual([
        path,
        false,
        false,
      ]);
    }
  });
});

describe('an address of the dashboard', () => {
  it('has no parameter, fragment or stored entry that changes where requests go', async () => {
    const { page, stack } = world;
    let hits = 0;
    const other = createServer((_, response) => {
      hits++;
      response.end();
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const port = (other.address() as AddressInfo).port;
    const targets = [
      `http://127.0.0.1:${port}/`,
      `//127.0.0.1:${port}`,
      `ws://127.0.0.1:${port}/ws`,
      'javascript:window.hacked=1',
      '{"__proto__":1}',
      'null',
    ];
    const own = [
      'at',
      'open',
      'replay',
      'from',
      'a',
      'b',
      'node',
      'run',
      'view',
      'by',
      'status',
      'type',
      'session',
      'spawn',
      'turn',
    ];
    const known = [
      'baseUrl',
      'base_url',
      'gatewayUrl',
      'gateway',
      'url',
      'api',
      'apiUrl',
      'endpoint',
      'host',
      'server',
      'ws',
      'wsUrl',
      'socket',
      'origin',
    ];
    const redirects = [
      'redirect',
      'redirect_uri',
      'next',
      'return',
      'returnTo',
      'callback',
      'target',
      'continue',
      'sign-in',
    ];
    const names = [...own, ...known, ...redirects];
    for (const target of targets) {
      const search = new URLSearchParams(names.map((name): [string, string] => [name, target]));
      const entries = JSON.stringify(
        [...names, 'antiphon.theme', 'antiphon.single-keys', 'antiphon.reloaded', 'antiphon.places.new'].map(
          (name) => [name, target],
        ),
      );
      await page.evaluate(
        `for (const [name, value] of ${entries}) { localStorage.setItem(name, value); sessionStorage.setItem(name, value) }`,
      );
      for (const path of ['/', '/sessions', '/events', '/compare', '/workflows/new', '/runs']) {
        await page.goto(`${path}?${search}#${search}`);
        await page.getByRole('heading', { level: 1 }).first().waitFor();
        expect(new URL(page.url()).origin).toBe(stack.gatewayUrl);
      }
      await page.evaluate('localStorage.clear(), sessionStorage.clear()');
    }
    other.close();
    expect(hits).toBe(0);
    expect(await page.evaluate('window.hacked')).toBeUndefined();
  });
});

describe('all of it', () => {
  it('asked no other origin', () => {
    expect(world.leaks).toEqual([]);
  });
});
