import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(300_000);

/** Texts of the bytes that are erased. */
const CANARIES = ['ERASED-FIRST-VERSION', 'ERASED-SECOND-VERSION'] as const;
const NOTE = '[the content of this file was erased]';
const PATH = 'person.md';
const FILES = '/workspaces/default/files';

let world: DashboardWorld;
let chatId: string;
let sessionId: string;
let turnId: string;
let head: number;
/** Calls of the model before the erasure. */
let callsBefore = 0;
/** Replies that the browser got since the erasure, with their addresses. */
const replies: Promise<string>[] = [];
const call = createApiCaller(() => world.stack.gatewayUrl);

const write = async (text: string): Promise<number> => {
  const { status, body } = await call<{ version: number }>('', 'PUT', `${FILES}/${PATH}`, { text });
  expect(status).toBeLessThan(300);
  return body.version;
};
const chat = (body: object) =>
  call<{ turnId: string }>('', 'POST', `/workspaces/default/chats/${chatId}`, body);
const waitForTurn = (session: string, count: number): Promise<true> =>
  waitForValue(`the end of turn ${count}`, async () => {
    const events = await readEvents(world.stack, { stream: `session-${session}` });
    return events.filter(({ type }) => type === 'TurnCompleted').length >= count ? true : undefined;
  });
const say = async (content: string, count: number): Promise<string> => {
  const { body } = await chat({ command: 'message', content });
  await waitForTurn(sessionId, count);
  return body.turnId;
};
const bodiesSince = (from: number): string =>
  JSON.stringify(world.mock.calls.slice(from).map(({ seen }) => seen.body));
const read = async (path: string): Promise<{ status: number; text: string }> => {
  const response = await fetch(`${world.stack.gatewayUrl}/api/v1${path}`);
  return { status: response.status, text: await response.text() };
};
const found = (text: string): string[] => CANARIES.filter((canary) => text.includes(canary));

beforeAll(async () => {
  world = await startDashboardWorld({ model: () => ({ text: ['well'] }), settings: '' });
  const body = { name: 'about a person', agent: 'claude' };
  const created = await call<{ id: string; sessionId: string }>(
    '',
    'POST',
    '/workspaces/default/chats',
    body,
  );
  chatId = created.body.id;
  sessionId = created.body.sessionId;
  for (const text of CANARIES) {
    await write(`# Person\n\n${text}\n`);
    await chat({ command: 'attach', path: PATH });
    turnId = await say(`what do you know, ${text.length}?`, CANARIES.indexOf(text) + 1);
    // The prompt had the bytes, so that there is something to erase.
    expect(found(bodiesSince(callsBefore))).toEqual([text]);
    callsBefore = world.mock.calls.length;
  }
  const erased = await call<{ erased: string[] }>('', 'POST', '/workspaces/default/file-erasures', {
    path: PATH,
    reason: 'personal data',
  });
  expect([erased.status, erased.body.erased]).toEqual([200, [expect.any(String), expect.any(String)]]);
  head = (await readEvents(world.stack)).at(-1)?.position ?? 0;
  world.page.on('response', (response) => {
    if (!response.url().includes('/api/')) return;
    replies.push(
      response.text().then(
        (text) => `${response.url()} ${text}`,
        () => '',
      ),
    );
  });
}, 240_000);
afterAll(() => world?.stop());

describe('bytes that were erased', () => {
  it('are in no read of the API, at any position and at any version', async () => {
    const session = `/sessions/${sessionId}`;
    const answered = new Map<string, number>();
    for (let at = 1; at <= head; at++) {
      const paths = [
        ...[`${session}?`, `${session}/turns?`, `${session}/turns/${turnId}/context?`, `/turns/${turnId}?`],
        ...['/sessions?', '/memory?', '/events?limit=1000&', '/approvals?', '/agents?'],
        `/workspaces/default/chats/${chatId}?`,
      ];
      for (const path of paths) {
        const { status, text } = await read(`${path}at=${at}`);
        answered.set(path, (answered.get(path) ?? 0) + (status === 200 ? 1 : 0));
        expect([path, at, found(text)]).toEqual([path, at, []]);
      }
    }
    // An error has no bytes either: each read answered at some position.
    expect([...answered].filter(([, count]) => count === 0)).toEqual([]);
    const { text } = await read(`${session}/history?from=0&to=${head}`);
    expect(found(text)).toEqual([]);
    const versions = (await readEvents(world.stack)).filter(({ type }) => /^File/.test(type)).length + 2;
    const statuses = new Map<number, number>();
    for (let version = 0; version <= versions; version++) {
      for (const query of [`?at=${version}`, `?at=${version}&format=md`]) {
        const file = await read(`${FILES}/${PATH}${query}`);
        statuses.set(file.status, (statuses.get(file.status) ?? 0) + 1);
        expect([version, found(file.text)]).toEqual([version, []]);
      }
      expect(found((await read(`${FILES}?path=&at=${version}`)).text)).toEqual([]);
    }
    expect(statuses.get(200)).toBeUndefined();
    expect(found((await read(`/workspaces/default/file-history?path=${PATH}`)).text)).toEqual([]);
  });

  it('are on no page of a browser, at any position', async () => {
    const { page } = world;
    const events = await readEvents(world.stack, { stream: `session-${sessionId}` });
    const attached = events.find(({ type }) => type === 'ChatFileAttached')?.position ?? 0;
    const pathsAt = (at: number): string[] => [
      ...[`/sessions/${sessionId}?at=${at}`, `/sessions/${sessionId}/why/${turnId}?at=${at}`],
      ...[`/events?at=${at}&open=${at}`, `/memory?at=${at}`],
    ];
    const shown: string[] = [];
    for (let at = 1; at <= head; at++)
      for (const path of pathsAt(at)) {
        await page.goto(path);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.locator('main p[aria-busy=true]').first().waitFor({ state: 'detached' });
        for (const more of await page.getByRole('button', { name: /^Show all/ }).all()) await more.click();
        const content = await page.content();
        expect([path, found(content)]).toEqual([path, []]);
        if (at > attached && content.includes(PATH)) shown.push(path);
      }
    // The name of the file stays, as its facts do.
    expect(shown.some((path) => path.includes('/why/'))).toBe(true);
    const texts = await Promise.all(replies);
    expect(texts.length).toBeGreaterThan(head);
    expect(texts.filter((text) => found(text).length > 0)).toEqual([]);
  });

  it('are in no later prompt: of a new turn, of a fork of the past, or of a what-if', async () => {
    const { page } = world;
    await say('and now?', CANARIES.length + 1);
    const what = { atVersion: 1, whatIf: { turns: 2 } };
    const whatIf = await call<{ sessionId: string }>('', 'POST', `/sessions/${sessionId}/fork`, what);
    expect(whatIf.status).toBeLessThan(300);
    const events = await readEvents(world.stack, { stream: `session-${sessionId}` });
    const last = events.findLast(({ type, data }) => type === 'TurnCompleted' && data['turnId'] === turnId);
    const at = { atVersion: last?.streamVersion };
    const fork = await call<{ sessionId: string }>('', 'POST', `/sessions/${sessionId}/fork`, at);
    expect(fork.status).toBeLessThan(300);
    await page.goto(`/sessions/${fork.body.sessionId}`);
    await page.getByLabel('Message', { exact: true }).fill('what did the file say?');
    await page.keyboard.press('Enter');
    await waitForTurn(fork.body.sessionId, 1);
    const prompts = bodiesSince(callsBefore);
    expect([found(prompts), prompts.includes(NOTE)]).toEqual([[], true]);
    for (const session of [whatIf.body.sessionId, fork.body.sessionId]) {
      await page.goto(`/sessions/${session}`);
      await page.locator('[data-turn]').first().waitFor();
      expect(found(await page.content())).toEqual([]);
    }
  });
});
