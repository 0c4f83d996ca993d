import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assembleFrames, followSession } from '@antiphon/testing/client';
import {
  checkFigure,
  countEnds,
  noiseAllowance,
  percentile,
  report,
  startLoad,
} from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import {
  openReader,
  openStalledReader,
  slowConnectionIds,
  startStreamedSession,
  watchMemory,
  type StalledReader,
  type StreamedSession,
} from './slow-readers.js';
import { CANARY_KEY, twoVendorConfig } from './stack-under-test.js';

const READERS = 50;
const SESSIONS = 2;
/** Long turns of each session: the kernel buffers some 4 MB for each socket first. */
const TURNS = 60;
/** Long turns continue until all stalled readers are closed, at most for this time. */
const FILL_MS = 90_000;
/** About as much as one step of a turn may stream. */
const PIECES = Array.from({ length: 4 }, (_, nth) => `${nth} lorem ipsum `.repeat(2_300));
const MIB = 1024 * 1024;
/** Buffers of all slow sockets, 32 MiB together, and as much for those that are being closed. */
const BUFFERS = 2 * 32 * MIB;
/**
 * One more frame for each reader, Node's copies of it, and the differences between two runs of one
 * heap.
 */
const SLACK = READERS * 128 * 1024 + 64 * MIB;

/** Promised maximum of p99 of others' turns, over p99 without readers. */
const PROMISED_RATIO = 2;
/**
 * The ratios between the blocks without readers show the noise of the machine. The bound rises by
 * the upper end of their 95 % interval. Above this cap the machine shows nothing, and the bound
 * stays.
 */
const MAX_ALLOWANCE = 1.5;

type Kind = 'none' | 'reading' | 'stalled';
interface Block {
  readonly kind: Kind;
  /** Peak memory of the gateway, bytes. */
  readonly peak: number;
  /** Durations of turns of other sessions, ms. */
  readonly took: readonly number[];
}

/** Makes the gateway release memory that it does not use, so that its peak shows what it needs. */
const SMALL_HEAP = {
  ANTIPHON_NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=8',
  MALLOC_ARENA_MAX: '2',
};

/**
 * The first block warms the gateway up. Kinds alternate, so that slow changes of the machine affect
 * each alike.
 */
const BLOCKS = process.env['ANTIPHON_SLOW_BLOCKS'] ?? 'reading,none,stalled,none,none,stalled';

/** The gateway discards what a closed socket has not read within half a minute. */
const DISCARD_MS = 20_000;

let mock: MockModel;
let stack: TestStack;
const blocks: Block[] = [];
/** Readers and sessions of the last block. */
let stalled: StalledReader[] = [];
let sessions: StreamedSession[] = [];

beforeAll(async () => {
  mock = await startMockModel(({ user }) => ({ text: user === 'long' ? PIECES : ['You said: ', user] }));
  const env = { E2E_PROVIDER_KEY: CANARY_KEY, ...SMALL_HEAP };
  stack = await startStack({ config: twoVendorConfig(mock.url), env });
});
const closeClients = (): Promise<unknown> =>
  Promise.all([...stalled, ...sessions].map(({ client }) => client.close()));
afterAll(async () => {
  await closeClients();
  await stack?.stop();
  await mock?.close();
});

const closedReaders = (): readonly StalledReader[] => {
  const ids = slowConnectionIds(stack);
  return stalled.filter(({ connectionId }) => ids.has(connectionId));
};

const streamLongTurns = async (session: StreamedSession): Promise<void> => {
  const endsAt = performance.now() + FILL_MS;
  for (let turn = 0; turn < TURNS; turn++) await session.send('long');
  while (performance.now() < endsAt && closedReaders().length < stalled.length) await session.send('long');
};

/**
 * Lets closed readers read their buffered rest, once all are closed or the gateway would soon
 * discard it.
 */
const resumeClosedReaders = async (isOver: () => boolean): Promise<void> => {
  let firstAt = Infinity;
  while (!isOver()) {
    const closed = closedReaders();
    if (closed.length > 0) firstAt = Math.min(firstAt, performance.now());
    if (closed.length === READERS || performance.now() - firstAt > DISCARD_MS)
      for (const { client } of closed) client.socket.resume();
    await letTimePass(250);
  }
};

/** Opens the readers of a block, spread over the sessions. Returns a function that closes them. */
const openReaders = async (kind: Kind): Promise<() => void> => {
  const count = kind === 'none' ? 0 : READERS;
  const targets = Array.from({ length: count }, (_, nth) => sessions[nth % SESSIONS] as StreamedSession);
  if (kind === 'stalled') {
    stalled = await Promise.all(targets.map((session) => openStalledReader(stack.wsUrl, session)));
    return () => undefined;
  }
  const reading = await Promise.all(targets.map((session) => openReader(stack.wsUrl, session)));
  return () => reading.forEach((socket) => socket.terminate());
};

const runBlock = async (kind: Kind, nth: number): Promise<Block> => {
  await closeClients();
  const peers = Array.from({ length: SESSIONS }, (_, peer) => `${nth}-${peer}`);
  stalled = [];
  sessions = await Promise.all(peers.map((peer) => startStreamedSession(stack.wsUrl, peer)));
  const closeReaders = await openReaders(kind);
  const memory = watchMemory(stack);
  const load = startLoad({ wsUrls: [stack.wsUrl], sessions: 4, agent: 'gpt', pauseMs: 50 });
  let isStreamed = false;
  const streaming = Promise.all(sessions.map(streamLongTurns)).finally(() => (isStreamed = true));
  await Promise.all([resumeClosedReaders(() => isStreamed), streaming]);
  for (const { client } of stalled) client.socket.resume();
  await load.stop();
  closeReaders();
  expect(countEnds(load.done)).toEqual({ completed: load.done.length });
  return { kind, peak: memory.stop(), took: load.done.map(({ askedAt, doneAt }) => doneAt - askedAt) };
};

const blocksOf = (kind: Kind): Block[] => blocks.filter((block) => block.kind === kind);
const p99 = (...some: readonly Block[]): number =>
  percentile(
    some.flatMap(({ took }) => took),
    0.99,
  );
const peakOf = (kind: Kind): number => Math.max(...blocksOf(kind).map(({ peak }) => peak));

type End = { readonly code: 1013 | 1006 | 'never'; readonly reason: string };
/** Returns how the gateway closed the reader, or `never` when the reader received everything. */
const endOf = ({ stream, session, ended }: StalledReader): Promise<End> => {
  const everything = stream.waitFor('everything', ({ offset }) => offset >= session.lastOffset());
  return Promise.race([
    ended as Promise<End>,
    everything.then(
      () => ({ code: 'never' as const, reason: '' }),
      () => ended as Promise<End>,
    ),
  ]);
};

const follow = (session: StreamedSession, after: number) =>
  followSession({ sessionId: session.sessionId, nextUrl: () => stack.wsUrl, nextCut: () => null, after });

/**
 * Resumes after the last frame of a closed reader, and compares all of its frames with those of
 * another reader.
 */
const checkReader = async (reader: StalledReader, all: string): Promise<End['code']> => {
  const { session, stream } = reader;
  const { code, reason } = await endOf(reader);
  const received = stream.frames;
  const after = received.at(-1)?.offset ?? session.begins;
  if (code === 1013) expect(reason).toBe(`too slow: resume session ${session.sessionId} after ${after}`);
  const rest = follow(session, after);
  await rest.waitForOffset(session.lastOffset());
  await rest.stop();
  expect(assembleFrames([...received, ...rest.frames]) === all).toBe(true);
  return code;
};

describe(`${READERS} clients that do not read, while their sessions stream`, () => {
  it('cost the gateway no more memory than their buffers', async () => {
    for (const [nth, kind] of (BLOCKS.split(',') as Kind[]).entries()) {
      const block = await runBlock(kind, nth);
      blocks.push(block);
      const peak = (block.peak / MIB).toFixed(0);
      report(
        `readers ${kind}: peak ${peak} MiB, p99 ${p99(block).toFixed(0)} ms of ${block.took.length} turns`,
      );
    }
    checkFigure({
      ...{ what: 'stalled readers: memory of the gateway', value: peakOf('stalled') / MIB, unit: 'MiB' },
      atMost: (peakOf('reading') + BUFFERS + SLACK) / MIB,
    });
  });

  it('do not slow the turns of others', () => {
    const free = blocksOf('none');
    const controls = free.flatMap((one, nth) => free.slice(nth + 1).map((other) => p99(one) / p99(other)));
    const allowance = noiseAllowance(controls, MAX_ALLOWANCE);
    report(`noise between blocks without readers: ${allowance.toFixed(2)}`);
    checkFigure({
      ...{ what: 'stalled readers: p99 of other turns', unit: '×' },
      value: p99(...blocksOf('stalled')) / p99(...free),
      atMost: PROMISED_RATIO * allowance,
    });
  });

  it('are closed with 1013 and where to resume, and then receive all frames, byte for byte', async () => {
    const ends = { 1013: 0, 1006: 0, never: 0 };
    for (const session of sessions) {
      const whole = follow(session, session.begins);
      await whole.waitForOffset(session.lastOffset());
      const all = assembleFrames(whole.frames);
      await whole.stop();
      for (const reader of stalled.filter((one) => one.session === session))
        ends[await checkReader(reader, all)]++;
    }
    report(`ends of ${READERS} stalled readers: ${JSON.stringify(ends)}`);
    // A socket that is closed and still not read is reset after half a minute, without a code.
    expect(ends[1013]).toBeGreaterThanOrEqual(READERS / 2);
  });
});
