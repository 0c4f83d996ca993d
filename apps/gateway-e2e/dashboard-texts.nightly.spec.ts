import { createServer } from 'node:http';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { MockScript } from '@antiphon/testing/providers';
import type { Page } from 'playwright-core';
import { DIAGRAMS, FETCHES, HIDDEN, SCHEMES, SCRIPTS } from './dashboard-corpus.js';
import { namesLookedUp } from './dashboard-net-log.js';
import { readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(240_000);

const POLLUTION = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"text":"x"}';
// In the order in which the log keeps the fields.
const LONG_INPUT = { note: 'y'.repeat(6_000), expression: `1 + 1${' '.repeat(3_000)}/* ${HIDDEN} */` };
const ROWS = [...SCRIPTS, ...FETCHES, ...DIAGRAMS];
const LINKS = SCHEMES.map((address, index) => `[link ${index}](${address})`).join('\n\n');

/** Says the row of the corpus that the message names, fails with it, or calls a tool with it. */
const script: MockScript = ({ user, toolResults }) => {
  const [kind = '', index = ''] = user.split(' ');
  const row = ROWS[Number(index)] ?? '';
  if (kind === 'fail') return { status: 400, body: { error: { message: `refused: ${row}` } } };
  if (kind === 'links') return { text: [LINKS] };
  if (kind === 'بلغ') return { text: ['# عنوان\n\nשלום, world\n\nplain text\n\n- بند\n- آخر\n'] };
  if (toolResults.length > 0) return { text: ['done'] };
  if (kind === 'ask') return { tools: [{ id: `call_${index}`, name: 'calculator', input: LONG_INPUT }] };
  if (kind === 'echo')
    return {
      tools: [{ id: 'call_1', name: 'echo', input: { text: row, more: JSON.parse(POLLUTION) as object } }],
    };
  return { text: [kind === 'say' ? row : 'well'] };
};

const folder = mkdtempSync(join(tmpdir(), 'antiphon-attacks-'));
const NET_LOG = join(folder, 'net-log.json');
const SETTINGS = '\n[[agents.approvals]]\ntool = "calculator"\n';

let world: DashboardWorld;
let client: SocketClient;
const sockets: string[] = [];
const dialogs: string[] = [];
const call = createApiCaller(() => world.stack.gatewayUrl);
beforeAll(async () => {
  const args = [`--log-net-log=${NET_LOG}`, '--net-log-capture-mode=Everything'];
  world = await startDashboardWorld({ model: script, settings: SETTINGS, args });
  client = await connectClient(world.stack.wsUrl);
  world.page.on('websocket', (socket) => sockets.push(socket.url()));
  world.page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
});
afterAll(async () => {
  await client?.close();
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const chat = async (agent: string, peer: string, content: string): Promise<string> => {
  const frames = await client
    .stream('chat.send', { channel: 'attack', account: 'web', peer, agent, content })
    .done();
  const accepted = frames.find(({ event }) => event === 'accepted')?.data as { sessionId: string };
  return accepted.sessionId;
};
const open = async (path: string, page: Page = world.page): Promise<void> => {
  await page.goto(path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('main p[aria-busy=true]').first().waitFor({ state: 'detached' });
};
const button = (name: string) => world.page.getByRole('button', { name, exact: true });
/** Elements that only an attack can have brought into the page. */
/** Names of the stack, and those that Chromium asks for by itself. */
const OWN_NAMES = /127\.0\.0\.1|(^|[./])(google|googleapis|gstatic)\.com(:\d+)?$/;
const FOREIGN =
  'main :is(script, iframe, object, embed, video, audio, img, picture, link, meta, base, style, math, template, form[id=x])';
const expectHarmless = async (path: string): Promise<void> => {
  const { page } = world;
  const found = await page
    .locator(FOREIGN)
    .evaluateAll((elements) => elements.map(({ outerHTML }) => outerHTML));
  const hrefs = await page
    .locator('main a[href]')
    .evaluateAll((links) => links.map((link) => (link as { href?: string }).href));
  const foreign = hrefs.filter((href) => !href?.startsWith(world.stack.gatewayUrl));
  const facts = (await page.evaluate('[window.hacked, ({}).polluted, document.cookie]')) as unknown[];
  expect([path, found, foreign, facts, dialogs]).toEqual(
    [path, [], [], [undefined, undefined, ''], []].map((value) => value),
  );
};

describe('Arabic and Hebrew', () => {
  // @shows U66
  it('are written from right to left, in messages and in the blocks of an answer', async () => {
    const id = await chat('claude', 'rtl', 'بلغ عن المد');
    await open(`/sessions/${id}`);
    const directions = await world.page
      .locator('article')
      .first()
      .locator(':is(p, h4, ul, td)')
      .evaluateAll((elements) =>
        elements.map((element) => [
          element.textContent,
          (
            globalThis as unknown as { getComputedStyle(of: unknown): { direction: string } }
          ).getComputedStyle(element).direction,
        ]),
      );
    const directionOf = (start: string) => directions.find(([text]) => text?.trim().startsWith(start))?.[1];
    expect(['بلغ', 'عنوان', 'שלום', 'plain', 'بند'].map(directionOf)).toEqual([
      'rtl',
      'rtl',
      'rtl',
      'ltr',
      'rtl',
    ]);
  });
});

describe('texts of models, tools, files and people', () => {
  const sessions: string[] = [];
  let agentId = '';
  let runId = '';

  it('are shown as text in every field that they can fill', async () => {
    for (const [index, row] of ROWS.entries())
      sessions.push(await chat('claude', row.slice(0, 150), `say ${index}`));
    for (const index of [0, 6, SCRIPTS.length])
      sessions.push(await chat('claude', `echo ${index}`, `echo ${index}`));
    sessions.push(await chat('gpt', 'fail', 'fail 0'), await chat('claude', 'links', 'links'));
    sessions.push(await chat('claude', 'fact', `My name is ${SCRIPTS[0]} and I live in ${SCRIPTS[1]}`));
    const spawned = await call<{ id: string }>('', 'POST', '/agents', {
      name: SCRIPTS[0],
      base: 'claude',
      project: 'p',
    });
    expect(spawned.status).toBe(201);
    agentId = spawned.body.id;
    const nodes = ['constructor', 'hasOwnProperty', 'toString'].map((id, index, all) => ({
      ...{ id, agent: 'claude', prompt: `say ${index} ${SCRIPTS[index]}`, needs: all.slice(0, index) },
    }));
    const made = await call<{ id: string }>('', 'POST', '/workflows', {
      definition: { name: SCRIPTS[3], nodes },
    });
    expect([made.status, made.body]).toEqual([201, expect.anything()]);
    const started = await call<{ id: string; runId?: string }>(
      '',
      'POST',
      `/workflows/${made.body.id}/start`,
      {},
    );
    runId = started.body.runId ?? started.body.id;
    await waitForValue('the run', async () => {
      const { body } = await call<{ status: string }>('', 'GET', `/runs/${runId}`);
      return body.status === 'running' ? undefined : body.status;
    });
    const file = encodeURIComponent(`'onfocus=window.hacked=1 autofocus x='.md`);
    expect(
      (await call('', 'PUT', `/workspaces/default/files/${file}`, { text: SCRIPTS.join('\n') })).status,
    ).toBeLessThan(300);
    for (const [index, id] of sessions.entries()) {
      await open(`/sessions/${id}`);
      await expectHarmless(`session ${index}`);
      if (index < SCRIPTS.length) {
        const shown = (await world.page.locator('[data-turn]').first().innerText()).replaceAll(/\s+/g, ' ');
        expect([index, shown.includes('hacked') || shown.includes('clobbered')]).toEqual([index, true]);
      }
    }
    const pages = [
      '/',
      '/agents',
      `/agents/${agentId}`,
      '/sessions',
      '/workflows',
      `/workflows/${made.body.id}/edit`,
    ];
    const more = [
      `/runs/${runId}`,
      `/runs/${runId}?node=constructor`,
      '/runs',
      '/memory',
      '/files',
      '/tasks',
      '/plans',
      '/money',
      '/approvals?status=all',
    ];
    for (const path of [
      ...pages,
      ...more,
      '/events',
      '/audit',
      '/settings',
      `/compare?a=${sessions[0]}&b=${sessions[1]}`,
    ]) {
      await open(path);
      await expectHarmless(path);
    }
    const events = await readEvents(world.stack);
    for (const { position } of events
      .filter(({ data }) => /hacked|polluted/.test(JSON.stringify(data)))
      .slice(0, 40)) {
      await open(`/events?open=${position}`);
      await expectHarmless(`event ${position}`);
    }
  });

  it('of diagrams and documents stay source text', async () => {
    for (const [index, source] of DIAGRAMS.entries()) {
      await open(`/sessions/${sessions[SCRIPTS.length + FETCHES.length + index]}`);
      const text = source.split('\n').slice(1, -1).join('\n');
      expect(await world.page.locator('[data-turn] pre').first().innerText()).toBe(text);
    }
  });

  it('link only to addresses of http, https and mail, after the whole address was shown', async () => {
    const { page } = world;
    await open(`/sessions/${sessions[ROWS.length + 4]}`);
    await page.locator('[data-turn]').getByText('link 0').waitFor();
    expect(await page.locator('[data-turn] a:not(footer a)').count()).toBe(0);
    const offered = page.locator('[data-turn] [class*=link]');
    expect(await offered.count()).toBe(0);
    const index = FETCHES.findIndex((row) => row.includes('secret-data'));
    await open(`/sessions/${sessions[SCRIPTS.length + index]}`);
    await page.getByRole('button', { name: /a link with data/ }).click();
    const dialog = page.getByRole('dialog', { name: 'Open this address?' });
    await dialog.getByText('https://secret-data.link.evil.example/').waitFor();
    const link = dialog.getByRole('link');
    expect([await link.getAttribute('rel'), await link.getAttribute('href')]).toEqual([
      'noopener noreferrer',
      'https://secret-data.link.evil.example/',
    ]);
    await page.keyboard.press('Escape');
  });

  it('of 700,000 characters in a line, and of 64 levels, leave the page usable', async () => {
    const { page } = world;
    const deep = `${'> '.repeat(64)}deep\n\n${'- '.repeat(64)}list\n\n${'**a _b '.repeat(64)}`;
    const id = await chat('claude', 'large', `${'word\u202E '.repeat(80_000)}`);
    await chat('claude', 'large', deep);
    const from = performance.now();
    await open(`/sessions/${id}`);
    expect(performance.now() - from).toBeLessThan(10_000);
    await page.getByLabel('Message', { exact: true }).fill('still here');
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('still here');
  });

  it('pass through no sanitiser: no source of the dashboard makes HTML of a text', () => {
    const root = fileURLToPath(new URL('../dashboard', import.meta.url));
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.tsx?$/.test(name),
    );
    const sinks =
      /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|DOMParser|srcdoc|document\.write|\beval\(|new Function/;
    expect(files.filter((name) => sinks.test(readFileSync(join(root, 'src', name), 'utf8')))).toEqual([]);
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      dependencies: object;
    };
    expect(
      Object.keys(dependencies).filter((name) => /purify|sanitize|rehype|mermaid|katex/.test(name)),
    ).toEqual([]);
  });
});

describe('an approval', () => {
  let sessionId = '';

  beforeAll(async () => {
    const params = { channel: 'attack', account: 'web', peer: 'ask', agent: 'gpt', content: 'ask 1' };
    const stream = client.stream('chat.send', params);
    const { data } = await stream.waitFor('accepted', ({ event }) => event === 'accepted');
    sessionId = (data as { sessionId: string }).sessionId;
  });

  it('shows every argument with its hidden characters, above its buttons, and says how much there is', async () => {
    const { page } = world;
    await open(`/sessions/${sessionId}`);
    const region = page.getByRole('region', { name: 'All arguments of calculator' });
    await region.waitFor();
    const text = (await region.textContent()) ?? '';
    const visible = JSON.stringify(LONG_INPUT, null, 2).replaceAll(
      /[\u202E\u202C\u200B\u2066]/gu,
      (character) => `U+${character.codePointAt(0)?.toString(16).toUpperCase()}`,
    );
    expect(text.replaceAll('\\u001b', 'ESC')).toBe(visible.replaceAll('\\u001b', 'ESC'));
    await page.getByText('2 arguments, ').waitFor();
    const [box, answer] = [await region.boundingBox(), await button('Approve').boundingBox()];
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(answer?.y ?? 0);
    const isCut = await region.evaluate(
      ({ scrollHeight, clientHeight }: { scrollHeight: number; clientHeight: number }) =>
        scrollHeight > clientHeight + 1,
    );
    expect(isCut).toBe(false);
  });

  it('takes no click in a page of another origin, nor just after it appeared or moved', async () => {
    const { page, browser, stack } = world;
    const other = createServer((_, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(`<iframe src="${stack.gatewayUrl}/approvals" width=800 height=600></iframe>`);
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const framing = await browser.newPage();
    await framing.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    await waitForValue(
      'the refused frame',
      async () => framing.frames()[1]?.url().startsWith('chrome-error:') || undefined,
    );
    await framing.close();
    other.close();

    const asked = async () =>
      (await call<{ approvals: object[] }>('', 'GET', '/approvals?status=pending')).body.approvals.length;
    await page.goto('/approvals');
    await button('Approve').first().waitFor();
    const click = `document.querySelector('main [class*=primary]').click()`;
    await page.evaluate(click);
    expect(await asked()).toBe(1);
    await page.waitForTimeout(800);
    // An element above the card moves it, and the click follows at once.
    await page.evaluate(`document.querySelector('main header').style.marginTop = '300px'; ${click}`);
    await page.getByText('This card has just moved, so nothing was decided.').waitFor();
    expect(await asked()).toBe(1);
    await page.waitForTimeout(800);
    await button('Approve').first().focus();
    await page.reload();
    await page.keyboard.press('Enter');
    await page.waitForTimeout(700);
    expect(await asked()).toBe(1);
  });

  it('and money cannot be decided while the page shows the past', async () => {
    const { page } = world;
    const [event] = await readEvents(world.stack, { type: 'ApprovalRequested' });
    await open(`/sessions/${sessionId}?at=${event?.position}`);
    for (const name of ['Approve', 'Deny', 'Send'])
      expect([name, await button(name).isDisabled()]).toEqual([name, true]);
    await open(`/money?at=${event?.position}`);
    const acts = page.getByRole('button', { name: /Set budget|Set limit/ });
    await page.getByRole('row', { name: /^Each session/ }).waitFor();
    expect(await acts.count()).toBeGreaterThan(2);
    for (const act of await acts.all()) expect(await act.isDisabled()).toBe(true);
    const approval = String(event?.data['approvalId']);
    const given = { decision: 'approve', reason: 'shown as U+202E' + SCRIPTS[0] };
    expect((await call('', 'POST', `/approvals/${approval}/answer`, given)).status).toBe(200);
    await open('/approvals?status=all');
    await expectHarmless('answered approvals');
  });
});

describe('all of it', () => {
  const violations = async (): Promise<number> => {
    const text = await (await fetch(`${world.stack.gatewayUrl}/metrics`)).text();
    return Number(/^antiphon_dashboard_policy_violations_total\S* (\d+)/m.exec(text)?.[1] ?? 0);
  };

  it('asked no other origin, opened no other socket and broke no policy', async () => {
    expect(world.leaks).toEqual([]);
    expect([...new Set(sockets)]).toEqual([world.stack.wsUrl]);
    // The browser reports the frame of the other origin, and nothing else.
    const reports = world.stack
      .readLog('gateway-1')
      .split('\n')
      .filter((line) => line.includes('dashboard policy violated'));
    expect(reports.map((line) => (JSON.parse(line) as { directive: string }).directive)).toEqual([
      'frame-ancestors',
    ]);
    expect(await violations()).toBe(1);
    expect(dialogs).toEqual([]);
    expect(await readApi(world, '/api/v1/health')).toMatchObject({ status: 'ok' });
  });

  it('looked up no name; a planted violation and a planted look-up are found', async () => {
    const { page, browser } = world;
    await open('/');
    await page.evaluate(`try { document.body.innerHTML = '<b>x</b>' } catch {}`);
    await waitForValue('the report', async () => ((await violations()) > 1 ? true : undefined));
    const tab = await browser.newPage();
    await tab.goto('http://planted.invalid/').catch(() => undefined);
    await browser.close();
    const names = namesLookedUp(NET_LOG).filter((name) => !OWN_NAMES.test(name));
    expect(names.filter((name) => !name.includes('planted.invalid'))).toEqual([]);
    expect(names.some((name) => name.includes('planted.invalid'))).toBe(true);
  });
});
