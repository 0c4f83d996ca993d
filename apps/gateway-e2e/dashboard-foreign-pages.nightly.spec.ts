import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { HTTP_ROUTES } from '@antiphon/contracts/reference';
import type { BrowserContext, Page, Response } from 'playwright-core';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, readEvents } from './stack-under-test.js';

jest.setTimeout(120_000);

const TOKEN = 'the-token-of-the-victim-has-over-32-characters';
const HOST = 'evil.test';
const UNSAFE = HTTP_ROUTES.filter(({ method, access }) => method !== 'get' && access !== 'open').map(
  ({ method, path, example }) => ({
    method: method.toUpperCase(),
    path: path.replaceAll(/\{\w+\}/g, 'x'),
    body: JSON.stringify(example.body ?? {}),
  }),
);

let world: DashboardWorld;
let context: BrowserContext;
let other: Server;
const call = createApiCaller(() => world.stack.gatewayUrl);
const portOf = (): number => (other.address() as AddressInfo).port;
const readLog = () => readEvents(world.stack, {}, { authorization: `Bearer ${TOKEN}` });

beforeAll(async () => {
  world = await startDashboardWorld({
    gateway: `token = "${TOKEN}"`,
    args: [`--host-resolver-rules=MAP ${HOST} 127.0.0.1`],
  });
  other = createServer((_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>foreign</title><iframe name="sink"></iframe>');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  context = await world.browser.newContext();
  context.setDefaultTimeout(20_000);
  const { body: key } = await call<{ token: string }>(TOKEN, 'POST', '/keys', {
    name: 'victim',
    role: 'admin',
  });
  const page = await context.newPage();
  await page.goto(world.stack.gatewayUrl);
  await page.getByLabel('API key').fill(key.token);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.close();
});
afterAll(async () => {
  other?.close();
  await world?.stop();
});

interface Attempt {
  readonly name: string;
  readonly status: number;
  readonly hasCookie: boolean;
}

/** Records each reply of the gateway to a page, with whether the request had the cookie. */
const watch = (page: Page): Promise<Attempt>[] => {
  const attempts: Promise<Attempt>[] = [];
  page.on('response', (response: Response) => {
    const url = new URL(response.url());
    if (url.origin !== world.stack.gatewayUrl) return;
    const name = `${response.request().method()} ${url.pathname}`;
    const read = async (): Promise<Attempt> => {
      const headers = await response.request().allHeaders();
      return { name, status: response.status(), hasCookie: /antiphon_/.test(headers['cookie'] ?? '') };
    };
    attempts.push(read());
  });
  return attempts;
};

/** Tries each route by a script, with the header of the dashboard and without a preflight. */
const tryFetches = (page: Page): Promise<unknown> =>
  page.evaluate(`(async () => {
    const read = [];
    for (const { method, path, body } of ${JSON.stringify(UNSAFE)}) {
      const url = ${JSON.stringify(world.stack.gatewayUrl)} + path;
      const headers = { 'content-type': 'application/json', 'x-antiphon-csrf': '1' };
      const given = { method, body, credentials: 'include' };
      await fetch(url, { ...given, headers }).then(() => read.push(method + ' ' + path), () => undefined);
      if (method === 'POST') await fetch(url, { ...given, mode: 'no-cors' }).catch(() => undefined);
      if (method === 'POST') navigator.sendBeacon(url, body);
    }
    for (const path of ['/api/v1/me', '/api/v1/events', '/api/v1/keys'])
      await fetch(${JSON.stringify(world.stack.gatewayUrl)} + path, { credentials: 'include' }).then(() => read.push(path), () => undefined);
    return read;
  })()`);

/** Posts a form to each route, whose reply goes to a frame. */
const tryForms = async (page: Page): Promise<void> => {
  for (const { method, path, body } of UNSAFE) {
    if (method !== 'POST') continue;
    const replied = page.waitForResponse(
      (response) => new URL(response.url()).pathname === path && response.request().isNavigationRequest(),
    );
    await page.evaluate(`(() => {
      const form = document.createElement('form');
      Object.assign(form, { method: 'POST', action: ${JSON.stringify(world.stack.gatewayUrl + path)}, enctype: 'text/plain', target: 'sink' });
      const field = Object.assign(document.createElement('input'), { name: ${JSON.stringify(body)}, value: '' });
      form.append(field);
      document.body.append(form);
      form.submit();
      form.remove();
    })()`);
    await replied;
  }
};

/** Opens a WebSocket at each path of the gateway. Returns the names of the events of each. */
const trySockets = (page: Page): Promise<unknown> =>
  page.evaluate(`Promise.all(['/ws', '/ws/events', '/ws?token=x'].map((path) => new Promise((resolve) => {
    const events = [];
    const socket = new WebSocket(${JSON.stringify(world.stack.gatewayUrl.replace('http', 'ws'))} + path);
    for (const name of ['open', 'message', 'error', 'close'])
      socket.addEventListener(name, () => { events.push(name); if (name === 'close') resolve(events.join(' ')); });
  })))`);

describe.each([
  ['another port of the same host, to which the cookie is sent', () => `http://127.0.0.1:${portOf()}`, true],
  ['another name of the same machine', () => `http://localhost:${portOf()}`, false],
  ['another site', () => `http://${HOST}:${portOf()}`, false],
])('a page of %s', (_, origin, getsCookie) => {
  it('changes, reads and opens nothing with the session of the person', async () => {
    const before = await readLog();
    const page = await context.newPage();
    await page.goto(origin());
    const attempts = watch(page);
    expect(await tryFetches(page)).toEqual([]);
    await tryForms(page);
    expect(await trySockets(page)).toEqual(['error close', 'error close', 'error close']);
    const found = await Promise.all(attempts);
    expect(found.length).toBeGreaterThan(UNSAFE.length);
    expect(found.filter(({ status }) => ![401, 403].includes(status))).toEqual([]);
    expect(found.some(({ hasCookie }) => hasCookie)).toBe(getsCookie);
    await page.close();
    expect(await readLog()).toEqual(before);
  });
});

describe('the own page', () => {
  it('changes something with the same session, so that the attempts above had what they needed', async () => {
    const page = await context.newPage();
    await page.goto(world.stack.gatewayUrl);
    const status = await page.evaluate(`fetch('/api/v1/agents', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-antiphon-csrf': '1' },
      body: JSON.stringify({ name: 'Own', base: 'claude' }),
    }).then((response) => response.status)`);
    expect(status).toBe(201);
    expect((await readLog()).some(({ type }) => type === 'AgentSpawned')).toBe(true);
    await page.close();
  });
});
