import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { checkFigure, measureContention, percentile, report } from '@antiphon/testing/load';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { giveTimeToFail, letTimePass, until } from '@antiphon/testing/waits';
import pg from 'pg';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from './chromium.js';
import { DISTANCE_TO_END, SCROLL_TOP, SELECT_IN_VIEW } from './dashboard-scroll.js';
import { readEvents, startQuickStack, twoVendorConfig, waitForValue } from './stack-under-test.js';

jest.setTimeout(900_000);

const LOG_EVENTS = Number(process.env['ANTIPHON_LOG_EVENTS'] ?? 1_000_000);
const TURNS = Number(process.env['ANTIPHON_DASHBOARD_TURNS'] ?? 10_000);
/** A slow machine may raise a bound of time by at most this factor. */
const CAP = 3;

const TOKENS = Number(process.env['ANTIPHON_DASHBOARD_TOKENS'] ?? 20_000);
const row = (index: number): string =>
  index % 400 === 399
    ? '\n\n```ts\nconst a = 1;\n```\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n'
    : index % 60 === 59
      ? '\n\n'
      : `word${index} `;
/** Streams 200 tokens a second when it is asked to. */
const script: MockScript = ({ user }) => {
  if (!user.includes('stream')) return { text: ['short answer'] };
  let startedAt = 0;
  return {
    reply: { text: Array.from({ length: TOKENS }, (_, index) => row(index)) },
    before: async (_, index) => {
      if (index === 0) startedAt = performance.now();
      const wait = startedAt + index * 5 - performance.now();
      if (wait > 0) await letTimePass(wait);
    },
  };
};

/** Copies the first turn of a session, so that it has many turns with the events of real ones. */
const COPY_TURNS_SQL = `with turn as (
    select *, row_number() over (order by stream_version) as step, count(*) over () as steps
    from events where stream_id = $1 and stream_version > 1
  ), copies as (select n, gen_random_uuid()::text as turn_id from generate_series(1, $2::int) n)
  insert into events (position, workspace, category, stream_id, stream_version, event_id, type, schema_version, data,
    metadata, recorded_at, hash)
  select $3::bigint + (n - 1) * steps + step, workspace, category, stream_id, 1 + n * steps + step, gen_random_uuid(), type,
    schema_version, jsonb_set(data, '{turnId}', to_jsonb(turn_id)), metadata, recorded_at, sha256((n * 100 + step)::text::bytea)
  from turn, copies order by n, step`;
const FILL_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type, schema_version,
    data, metadata, recorded_at, hash)
  select $1::bigint + n, 'default', 'session', 'session-' || md5(((n - 1) / 20)::text)::uuid, (n - 1) % 20 + 1, gen_random_uuid(),
    case when n % 1000 = 7 then 'TurnFailed' else 'TurnRequested' end, 1,
    jsonb_build_object('turnId', md5(n::text)::uuid, 'content', 'filler ' || n), '{}',
    now() - interval '1 day', sha256(n::text::bytea)
  from generate_series($2::bigint, $3::bigint) n`;

let stack: TestStack;
let mock: MockModel;
let client: SocketClient;
let browser: Browser;
let page: Page;
let longSession = '';
let slowdown = 1;

const chat = async (peer: string, content: string): Promise<string> => {
  const frames = await client
    .stream('chat.send', { channel: 'figures', account: 'web', peer, agent: 'claude', content })
    .done();
  return (frames.find(({ event }) => event === 'accepted')?.data as { sessionId: string }).sessionId;
};

/** Fills the log while the stack is down. The read models skip what is no session of a person. */
const fillLog = async (): Promise<void> => {
  const db = new pg.Client({ connectionString: stack.databaseUrl });
  await db.connect();
  const head = async (): Promise<number> =>
    Number((await db.query<{ head: string }>('select max(position) as head from events')).rows[0]?.head);
  const from = await head();
  for (let first = 1; first <= LOG_EVENTS; first += 200_000)
    await db.query(FILL_SQL, [from, first, Math.min(LOG_EVENTS, first + 199_999)]);
  await db.query('update projection_checkpoints set position = $1', [await head()]);
  await db.query(COPY_TURNS_SQL, [`session-${longSession}`, TURNS - 1, await head()]);
  await db.query(
    `update stream_heads h set version = e.version from (select max(stream_version) as version from events where stream_id = $1) e
     where h.stream_id = $1`,
    [`session-${longSession}`],
  );
  await db.query('analyze events');
  await db.end();
};

beforeAll(async () => {
  mock = await startMockModel(script);
  stack = await startQuickStack(twoVendorConfig(mock.url));
  client = await connectClient(stack.wsUrl);
  longSession = await chat('long', 'the first of many');
  await client.close();
  stack = await stack.restart(fillLog);
  slowdown = Math.min(CAP, await measureContention());
  report(`slowdown of the machine: ${slowdown.toFixed(2)}`);
  client = await connectClient(stack.wsUrl);
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, baseURL: stack.gatewayUrl });
});
afterAll(async () => {
  await client?.close();
  await browser?.close();
  await stack?.stop();
  await mock?.close();
});

const timeOf = async (work: () => Promise<unknown>): Promise<number> => {
  const from = performance.now();
  await work();
  return performance.now() - from;
};
const median = async (runs: number, work: () => Promise<unknown>): Promise<number> => {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) times.push(await timeOf(work));
  return percentile(times, 0.5);
};
const check = (what: string, value: number, atMost: number): void =>
  checkFigure({ what: `dashboard: ${what}`, value, unit: 'ms', atMost: atMost * slowdown });

describe('figures of the dashboard', () => {
  it('a session of 10,000 turns opens at its end, with few rows, and goes to any turn', async () => {
    await page.goto('/');
    await page.getByText('Connected', { exact: true }).waitFor();
    const open = async (): Promise<void> => {
      await page.goto(`/sessions/${longSession}`, { waitUntil: 'commit' });
      await page.locator('[data-turn]').nth(39).waitFor();
    };
    await open();
    check(`a session of ${TURNS} turns opens`, await median(5, open), 1_000);
    await page.getByText(`of ${TURNS.toLocaleString('en-US')}`).waitFor();
    checkFigure({
      what: 'dashboard: turns of a long session in the page',
      value: await page.locator('[data-turn]').count(),
      unit: '',
      atMost: 300,
    });
    await page.getByLabel(/^Number of a turn/).fill('17');
    check(
      'turn 17 of a long session',
      await timeOf(async () => {
        await page.getByRole('button', { name: 'Go to turn' }).click();
        await page.getByRole('button', { name: 'Go to the end of the session' }).waitFor();
        await page.locator('[data-turn]').first().waitFor();
      }),
      1_000,
    );
    const turns = await (
      await fetch(`${stack.gatewayUrl}/api/v1/sessions/${longSession}/turns?order=asc&offset=16&limit=1`)
    ).json();
    const shown = await page.locator('[data-turn]').first().getAttribute('data-turn');
    expect(shown).toBe((turns as { turns: { turnId: string }[] }).turns[0]?.turnId);
  });

  it('a change of the width sends no request and builds no part again', async () => {
    await page.goto(`/sessions/${longSession}`);
    await page.locator('[data-turn]').nth(39).waitFor();
    // The count is read last, some time after the page.
    await page.getByRole('button', { name: /^Attention \d+$/ }).waitFor();
    await page.waitForLoadState('networkidle');
    await page.evaluate(
      `document.querySelector('[data-turn]').kept = 1; document.querySelector('textarea').kept = 1`,
    );
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    for (const width of [390, 1_024, 1_440]) {
      await page.setViewportSize({ width, height: 900 });
      await giveTimeToFail(300);
    }
    page.removeAllListeners('request');
    expect(requests).toEqual([]);
    expect(
      await page.evaluate(
        `[document.querySelector('[data-turn]').kept, document.querySelector('textarea').kept]`,
      ),
    ).toEqual([1, 1]);
  });

  it('scrubs at 30 positions a second in a session of 10,000 events', async () => {
    const events = await readEvents(stack, {
      stream: `session-${longSession}`,
      order: 'desc',
      limit: '1000',
    }).then((found) => found.slice(0, 10_000));
    const last = events[0]?.position ?? 0;
    // A turn has four events. There are turns before the position, also in a small sample.
    const start = last - Math.min(9_000, 4 * TURNS - 400);
    await page.goto(`/sessions/${longSession}?at=${start}`);
    await page.locator('[data-turn]').nth(39).waitFor();
    await page.waitForLoadState('networkidle');
    const requests: string[] = [];
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    // Each frame drags the slider on, and counts the different last turns that were shown.
    const dragged = (await page.evaluate(`new Promise((resolve) => {
      const slider = document.querySelector('input[type=range]');
      const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
      const seen = new Set(), from = performance.now();
      let position = ${start}, frames = 0;
      const step = () => {
        frames++;
        seen.add([...document.querySelectorAll('[data-turn]')].at(-1)?.dataset.turn);
        position += 40;
        set.call(slider, String(position));
        slider.dispatchEvent(new Event('input', { bubbles: true }));
        if (performance.now() - from < 3000) requestAnimationFrame(step);
        else resolve({ seen: seen.size / 3, frames: frames / 3 });
      };
      requestAnimationFrame(step);
    })`)) as { seen: number; frames: number };
    page.removeAllListeners('request');
    report(`frames a second while scrubbing: ${dragged.frames.toFixed(1)}, requests: ${requests.length}`);
    expect(requests.length).toBeLessThan(10);
    checkFigure({
      what: 'dashboard: positions a second while scrubbing',
      value: dragged.seen,
      unit: '/s',
      atLeast: 30,
    });
    // At rest the page is that of the position.
    await page.locator('[data-turn]').nth(39).waitFor();
    const rested = new URL(page.url()).searchParams.get('at');
    const reply = await fetch(
      `${stack.gatewayUrl}/api/v1/sessions/${longSession}/turns?limit=1&at=${rested}`,
    );
    const { turns } = (await reply.json()) as { turns: { turnId: string }[] };
    expect(await page.locator('[data-turn]').last().getAttribute('data-turn')).toBe(turns[0]?.turnId);
  });

  it('a log of 1,000,000 events opens, filters and jumps', async () => {
    const rows = page.getByRole('table', { name: /^Events/ }).locator('[role=row]');
    const open = async (path: string): Promise<void> => {
      await page.goto(path, { waitUntil: 'commit' });
      await rows.nth(10).waitFor();
    };
    await open('/events');
    check(`a log of ${LOG_EVENTS} events opens`, await median(5, () => open('/events')), 1_000);
    check('a type of a log is filtered', await median(3, () => open('/events?type=TurnFailed')), 1_000);
    check(
      'a position in the middle of a log',
      await median(3, () => open(`/events?at=${LOG_EVENTS / 2}`)),
      1_000,
    );
    checkFigure({
      what: 'dashboard: rows of a log in the page',
      value: await rows.count(),
      unit: '',
      atMost: 300,
    });
  });

  it('an event is on the screen soon after its commit', async () => {
    await page.goto('/events');
    await page.getByText('Connected', { exact: true }).waitFor();
    await page.getByRole('table', { name: /^Events/ }).waitFor();
    await page.evaluate(`window.seenAt = {}; new MutationObserver(() => {
      for (const cell of document.querySelectorAll('[role=row] [role=cell]:first-child'))
        window.seenAt[cell.textContent.replaceAll(',', '')] ??= Date.now();
    }).observe(document.querySelector('main'), { childList: true, subtree: true, characterData: true })`);
    const [before] = await readEvents(stack, { order: 'desc', limit: '1' }).then((found) =>
      found.slice(0, 1),
    );
    for (let turn = 0; turn < 25; turn++) await chat('latency', `turn ${turn}`);
    const reply = await fetch(`${stack.gatewayUrl}/api/v1/events?after=${before?.position}&limit=1000`);
    const { events } = (await reply.json()) as { events: { position: number; recordedAt: string }[] };
    const readSeen = () => page.evaluate('window.seenAt') as Promise<Record<string, number>>;
    const last = events.at(-1)?.position ?? 0;
    await until(async () => (await readSeen())[last] !== undefined);
    const seen = await readSeen();
    const delays = events.flatMap(({ position, recordedAt }) => {
      const at = seen[position];
      return at === undefined ? [] : [at - Date.parse(recordedAt)];
    });
    expect(delays.length).toBeGreaterThan(events.length * 0.9);
    report(
      `event to screen: p50 ${percentile(delays, 0.5)} ms, p99 ${percentile(delays, 0.99)} ms, n = ${delays.length}`,
    );
    check('an event is on the screen (p95)', percentile(delays, 0.95), 250);
  });

  it('streams 200 tokens a second without long tasks, and typing stays quick', async () => {
    const id = await chat('stream', 'begin');
    await page.goto(`/sessions/${id}`);
    await page.locator('[data-turn]').waitFor();
    await page.evaluate(`window.tasks = []; window.keys = [];
      window.observer = new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration)));
      window.observer.observe({ type: 'longtask' });
      document.querySelector('textarea').addEventListener('keydown', () => { const from = performance.now(); requestAnimationFrame(() => setTimeout(() => window.keys.push(performance.now() - from))); })`);
    const params = {
      channel: 'figures',
      account: 'web',
      peer: 'stream',
      agent: 'claude',
      content: 'stream it',
    };
    client.stream('chat.send', params);
    await page.locator('[data-turn]').nth(1).waitFor();
    const first = page.locator('[data-turn]').nth(1).getByText('word0 ', { exact: false }).last();
    await first.evaluate((element) => void Object.assign(element, { isKept: true }));
    const box = page.getByLabel('Message', { exact: true });
    const typeFor = async (presses: number): Promise<void> => {
      for (let key = 0; key < presses; key++) {
        await box.press('a');
        await letTimePass(100);
      }
    };
    await typeFor(100);
    // At the end of the page the answer is followed, until the reader scrolls up.
    const distance = async (): Promise<number> => Number(await page.evaluate(DISTANCE_TO_END));
    expect(await distance()).toBeLessThan(200);
    await page.mouse.move(700, 400);
    await page.mouse.wheel(0, -1_500);
    await waitForValue('the scroll', async () => ((await distance()) > 1_000 ? true : undefined));
    const selected = await page.evaluate(SELECT_IN_VIEW);
    const top = await page.evaluate(SCROLL_TOP);
    // The typing continues without moving the page: the composer is in view.
    await typeFor(100);
    expect([await page.evaluate('getSelection().toString()'), await page.evaluate(SCROLL_TOP)]).toEqual([
      selected,
      top,
    ]);
    await page
      .locator('[data-turn][aria-busy=false]')
      .nth(1)
      .waitFor({ timeout: TOKENS * 30 });
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))');
    expect([await page.evaluate('getSelection().toString()'), await page.evaluate(SCROLL_TOP)]).toEqual([
      selected,
      top,
    ]);
    const [tasks, keys] = (await page.evaluate(
      '[[...window.tasks, ...window.observer.takeRecords().map(({ duration }) => duration)], window.keys]',
    )) as [number[], number[]];
    // The end of an answer builds no element of its text again, and all of it is there.
    expect(await first.evaluate((element) => 'isKept' in element)).toBe(true);
    const shown = (await page.locator('[data-turn]').nth(1).innerText()).match(/word\d+/g) ?? [];
    const sent = Array.from({ length: TOKENS }, (_, index) => row(index))
      .join('')
      .match(/word\d+/g);
    expect(shown).toEqual(sent);
    report(`long tasks of an answer of ${TOKENS} tokens, ms: ${tasks.map(Math.round).join(' ') || 'none'}`);
    check(`the longest task while ${TOKENS} tokens stream and end`, Math.max(0, ...tasks), 150);
    checkFigure({
      what: `dashboard: long tasks over 50 ms while ${TOKENS} tokens stream`,
      value: tasks.filter((task) => task > 50 * slowdown).length,
      unit: '',
      atMost: 3,
    });
    check('a key in the composer to paint while it streams (p95)', percentile(keys, 0.95), 50);
  });
});
