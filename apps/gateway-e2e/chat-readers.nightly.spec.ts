import { readdirSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  checkFigure,
  countEnds,
  measureContention,
  percentile,
  report,
  startLoad,
} from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { ChatStream, parseEvent, type ChatEvent } from './chat-stream.js';
import { watchMemory } from './slow-readers.js';
import { CANARY_KEY, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(1_800_000);

const SESSIONS = Number(process.env['ANTIPHON_CHAT_SESSIONS'] ?? 1_000);
const READERS = Number(process.env['ANTIPHON_DEAF_READERS'] ?? 1_000);
const LANES = 16;
const MIB = 1024 * 1024;
const PIECES = Array.from({ length: 4 }, (_, nth) => `${nth} lorem ipsum `.repeat(2_300));
/** Events are streamed until all deaf readers are cut, at most for this time. */
const STREAM_MS = 60_000;
/** Pause between two long turns, so that the stream itself leaves the gateway time for others. */
const PAUSE_MS = 250;
/** Time of a block without deaf readers. */
const QUIET_MS = 20_000;
/**
 * Promised, compared with quiet readers: memory of the gateway for all deaf readers, and p99 of the
 * turns of others.
 */
const PROMISED = { memoryMib: 64, slowdown: 2 };
/** Other programs slow the machine by this factor at most: above it the figures show nothing. */
const MAX_CONTENTION = 3;
/** Cut readers that resume, and compare what they got with a reader of all events. */
const RESUMED = 20;

/** Makes the gateway release memory that it does not use, so that its peak shows what it needs. */
const SMALL_HEAP = {
  ANTIPHON_NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=8',
  MALLOC_ARENA_MAX: '2',
};

let mock: MockModel;
let stack: TestStack;
beforeAll(async () => {
  mock = await startMockModel(({ user }) => {
    if (user === 'long') return { text: PIECES };
    return { text: Array.from({ length: 1 + (user.length % 7) }, (_, nth) => `${nth} of ${user} `) };
  });
  const env = { E2E_PROVIDER_KEY: CANARY_KEY, ...SMALL_HEAP };
  stack = await startStack({ config: twoVendorConfig(mock.url), env, scale: { gateway: 2 } });
}, 120_000);
afterAll(async () => {
  await stack?.stop();
  await mock?.close();
});

const urlOf = (path: string, gateway = 0): string =>
  `${stack.wsUrls()[gateway]?.replace('ws:', 'http:').replace(/\/ws$/, '') ?? ''}/api/v1/workspaces/default/chats${path}`;
const post = async <T>(path: string, body: object, gateway = 0): Promise<T> => {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(urlOf(path, gateway), { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text) as T;
};
const create = async (name: string): Promise<string> =>
  (await post<{ id: string }>('', { name, agent: 'gpt' })).id;

/** Returns the events in order, without their ids: deltas that follow one another are one. */
const mergeDeltas = (events: readonly ChatEvent[]): string[] => {
  const merged: { event: string; text: string }[] = [];
  for (const { id, event, data } of events) {
    if (id === undefined || event === 'ready') continue;
    const isDelta = event === 'text' || event === 'thought';
    const last = merged.at(-1);
    if (isDelta && last?.event === event) last.text += String(data['text']);
    else merged.push({ event, text: isDelta ? String(data['text']) : JSON.stringify(data) });
  }
  return merged.map(({ event, text }) => `${event}: ${text}`);
};

describe(`${SESSIONS} chats that are followed live`, () => {
  // @shows chats-C4
  it('show a reader that comes late, at another gateway, the same events in the same order', async () => {
    const counts = { differences: 0, notOnce: 0, frames: 0 };
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let nth = next++; nth < SESSIONS; nth = next++) {
        const chat = await create(`live-${nth}`);
        const live = await ChatStream.open(urlOf(`/${chat}/events`));
        await post(`/${chat}`, { command: 'message', content: `message ${'x'.repeat(nth % 50)}` });
        await live.done();
        live.close();
        const late = await ChatStream.open(urlOf(`/${chat}/events`, 1));
        await late.done();
        late.close();
        const [seen, caughtUp] = [mergeDeltas(live.events), mergeDeltas(late.events)];
        counts.frames += live.events.length;
        if (JSON.stringify(seen) !== JSON.stringify(caughtUp)) counts.differences++;
        if (live.events.filter(({ event }) => event === 'done').length !== 1) counts.notOnce++;
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    report(`chats followed live: ${SESSIONS} sessions, ${counts.frames} events`);
    checkFigure({ what: 'chats: catch-up differs from live', value: counts.differences, atMost: 0 });
    checkFigure({ what: 'chats: done not exactly once', value: counts.notOnce, atMost: 0 });
  });
});

/** A reader that gets the headers of its stream and then reads nothing. */
interface DeafReader {
  readonly response: IncomingMessage;
}

const openDeaf = (chat: string): Promise<DeafReader> =>
  new Promise((resolve, reject) => {
    const request = get(urlOf(`/${chat}/events`), { agent: false }, (response) => {
      response.pause();
      response.on('error', () => undefined);
      resolve({ response });
    });
    request.on('error', reject);
  });
const openAll = async (chat: string): Promise<DeafReader[]> => {
  const readers: DeafReader[] = [];
  for (let from = 0; from < READERS; from += LANES) {
    const count = Math.min(LANES, READERS - from);
    readers.push(...(await Promise.all(Array.from({ length: count }, () => openDeaf(chat)))));
  }
  return readers;
};
/** Reads what a deaf reader was sent before it was cut. */
const readRest = async ({ response }: DeafReader): Promise<ChatEvent[]> => {
  let text = '';
  try {
    for await (const chunk of response) text += String(chunk);
  } catch {
    // The gateway has given the reader up.
  }
  return text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((block) => parseEvent(block) ?? []);
};

/** Returns the number of open descriptors of the gateway: a reader that was cut has none. */
const countDescriptors = (): number =>
  readdirSync(`/proc/${stack.stackJson().services.gateway[0]?.pid}/fd`).length;

interface Block {
  readonly isDeaf: boolean;
  readonly peak: number;
  readonly took: readonly number[];
}

const blocks: Block[] = [];
/** Chat and readers of the last block with deaf readers. */
let last: { chat: string; readers: DeafReader[]; turns: number; cut: number } | null = null;

/** Streams long turns of a chat. Returns their number. */
const streamLong = async (chat: string, isOver: (startedAt: number) => boolean): Promise<number> => {
  const reader = await ChatStream.open(urlOf(`/${chat}/events`, 1));
  const startedAt = performance.now();
  let turns = 0;
  while (!isOver(performance.now() - startedAt)) {
    await post(`/${chat}`, { command: 'message', content: 'long' }, 1);
    turns++;
    await reader.waitFor(
      'the end of a long turn',
      () => reader.events.filter(({ event }) => event === 'done').length >= turns,
      60_000,
    );
    await letTimePass(PAUSE_MS);
  }
  reader.close();
  return turns;
};

/** Streams one chat, while 1,000 readers follow it and read nothing, or follow a quiet one. */
const runBlock = async (isDeaf: boolean, nth: number): Promise<void> => {
  for (const { response } of last?.readers ?? []) response.destroy();
  const [streamed, quiet] = [await create(`streamed-${nth}`), await create(`quiet-${nth}`)];
  const readers = await openAll(isDeaf ? streamed : quiet);
  const opened = countDescriptors();
  const memory = watchMemory(stack);
  const load = startLoad({
    ...{ wsUrls: stack.wsUrls().slice(0, 1), sessions: 4, agent: 'gpt', pauseMs: 50 },
  });
  const isOver = (ms: number): boolean =>
    isDeaf ? ms > STREAM_MS || countDescriptors() <= opened - READERS + 20 : ms > QUIET_MS;
  const turns = await streamLong(streamed, isOver);
  await load.stop();
  const cut = Math.max(0, opened - countDescriptors());
  expect(countEnds(load.done)).toEqual({ completed: load.done.length });
  const block = {
    ...{ isDeaf, peak: memory.stop() },
    took: load.done.map(({ askedAt, doneAt }) => doneAt - askedAt),
  };
  blocks.push(block);
  last = { chat: streamed, readers, turns, cut };
  const p50 = percentile(block.took, 0.5).toFixed(0);
  report(
    `readers ${isDeaf ? 'deaf' : 'quiet'}: ${turns} long turns, ${cut} cut, peak ${(block.peak / MIB).toFixed(0)} MiB, ` +
      `p50 ${p50} ms, p99 ${p99(block).toFixed(0)} ms of ${block.took.length} turns`,
  );
};
const p99 = (...some: readonly Block[]): number =>
  percentile(
    some.flatMap(({ took }) => took),
    0.99,
  );
const blocksOf = (isDeaf: boolean): Block[] => blocks.slice(1).filter((block) => block.isDeaf === isDeaf);
const peakOf = (isDeaf: boolean): number => Math.max(...blocksOf(isDeaf).map(({ peak }) => peak)) / MIB;

describe(`${READERS} readers of a chat that read nothing`, () => {
  // @shows chats-C5
  it('cost the gateway little memory, and do not slow the turns of others', async () => {
    const before = await measureContention();
    // The first block warms the gateway up. Kinds alternate.
    for (const [nth, isDeaf] of [true, false, true, false, true].entries()) await runBlock(isDeaf, nth);
    const contention = Math.min(MAX_CONTENTION, Math.max(before, await measureContention()));
    checkFigure({
      ...{ what: 'deaf readers: memory beyond that of quiet ones', unit: 'MiB' },
      value: Math.max(0, peakOf(true) - peakOf(false)),
      atMost: PROMISED.memoryMib,
    });
    checkFigure({
      ...{ what: 'deaf readers: p99 of other turns', unit: '×' },
      value: p99(...blocksOf(true)) / p99(...blocksOf(false)),
      atMost: PROMISED.slowdown * contention,
    });
  });

  // @shows chats-C5
  it('are cut, and resume where they stopped, without a loss', async () => {
    if (!last) throw new Error('there was no block');
    const { chat, readers, turns, cut } = last;
    expect(cut).toBeGreaterThan(READERS / 2);
    const whole = await ChatStream.open(urlOf(`/${chat}/events`, 1));
    await whole.waitFor(
      'all',
      () => whole.events.filter(({ event }) => event === 'done').length >= turns,
      60_000,
    );
    whole.close();
    const expected = mergeDeltas(whole.events);
    let lost = 0;
    for (const reader of readers.slice(0, RESUMED)) {
      const read = (await readRest(reader)).filter(({ event }) => event !== 'behind');
      const lastEventId = read.findLast(({ id }) => id !== undefined)?.id;
      const rest = await ChatStream.open(urlOf(`/${chat}/events`, 1), { lastEventId });
      const left = turns - read.filter(({ event }) => event === 'done').length;
      await rest.waitFor(
        'the rest',
        () => rest.events.filter(({ event }) => event === 'done').length >= left,
        60_000,
      );
      rest.close();
      if (JSON.stringify(mergeDeltas([...read, ...rest.events])) !== JSON.stringify(expected)) lost++;
    }
    for (const { response } of readers) response.destroy();
    checkFigure({ what: `deaf readers: of ${RESUMED} that resume, with a loss`, value: lost, atMost: 0 });
  });
});
