import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { Frame, FrameEvent, LiveFrame } from '@antiphon/contracts/agent';
import type { FramePage } from './frame-log.js';
import { FrameReader } from './frame-reader.js';

const TURN = '0b8f6c1e-8d0e-4f6e-9a51-0b6f3a1c2d3e';
const OTHER = '9a1c2d3e-8d0e-4f6e-9a51-0b6f3a1c2d3e';
const BASE = 2 ** 20;

const chain = (events: FrameEvent[], turnId = TURN, from = BASE, prev = 0): LiveFrame[] =>
  events.map((event, i) => ({
    event,
    data: `${event}-${i}`,
    offset: from + i,
    prev: i === 0 ? prev : from + i - 1,
    turnId,
    epoch: 1,
  }));

const whole = chain([
  'accepted',
  'text',
  'text',
  'tool_use',
  'usage',
  'tool_result',
  'text',
  'usage',
  'done',
]);

interface Setup {
  after?: number | null;
  committed?: Frame[];
  live?: LiveFrame[];
}
/** Yields the frames in pages, as the log does. */
async function* pagesOf(frames: readonly Frame[]): AsyncGenerator<FramePage> {
  for (const frame of frames) yield { frames: [frame], openSince: frame.event === 'done' ? null : 1 };
  yield { frames: [], openSince: (frames.at(-1)?.event ?? 'done') === 'done' ? null : 1 };
}
const readerOf = ({ after = 0, committed = [], live = [] }: Setup) => {
  const seen: Frame[] = [];
  const reader = new FrameReader({
    after,
    turnId: TURN,
    committed: (from) => pagesOf(committed.filter((frame) => frame.offset > from)),
    live: (from) => Promise.resolve(live.filter((frame) => frame.offset > from)),
    deliver: (frame) => seen.push(frame),
    onError: (error) => {
      throw error;
    },
  });
  return { seen, reader, offsets: () => seen.map((frame) => frame.offset) };
};
const all = whole.map((frame) => frame.offset);

describe('FrameReader', () => {
  it('delivers an unbroken chain at once, without reading the log', () => {
    const { reader, offsets } = readerOf({});
    whole.forEach((frame) => reader.push(frame));
    expect(offsets()).toEqual(all);
    expect(reader.hasSeenDone(TURN)).toBe(true);
  });

  it('drops frames that it has, and frames of a driver without its lease', () => {
    const { reader, offsets } = readerOf({});
    const [first, second, third] = whole as [LiveFrame, LiveFrame, LiveFrame];
    [first, first, { ...second, epoch: 2 }, { ...third, epoch: 1 }].forEach((frame) => reader.push(frame));
    expect(offsets()).toEqual([first.offset, second.offset]);
  });

  it('fills a gap from the log before it delivers later frames', async () => {
    const { reader, offsets } = readerOf({ committed: whole.slice(0, 6) });
    whole.filter((_, i) => i !== 2).forEach((frame) => reader.push(frame));
    await reader.catchUp();
    expect(offsets()).toEqual(all);
  });

  it('fills text of a running attempt from LIVE', async () => {
    const { reader, offsets } = readerOf({ committed: whole.slice(0, 1), live: whole.slice(0, 3) });
    await reader.catchUp();
    expect(offsets()).toEqual(all.slice(0, 3));
  });

  it('continues at a restart although the voided text is missing', () => {
    const { reader, offsets } = readerOf({ after: BASE });
    const restart = chain(['restart', 'text'], TURN, 2 * BASE, BASE);
    [whole[1] as LiveFrame, whole[2] as LiveFrame, ...restart].forEach((frame) => reader.push(frame));
    expect(offsets()).toEqual([BASE + 1, BASE + 2, 2 * BASE, 2 * BASE + 1]);
  });

  it("starts a queued turn's stream without reading the session's past", () => {
    const looked: number[] = [];
    const seen: number[] = [];
    const reader = new FrameReader({
      after: null,
      turnId: TURN,
      committed: (from) => (looked.push(from), pagesOf([])),
      live: () => Promise.resolve([]),
      deliver: (frame) => seen.push(frame.offset),
      onError: (error) => {
        throw error;
      },
    });
    chain(['text', 'done'], OTHER, 5 * BASE + 7, 5 * BASE + 6).forEach((frame) => reader.push(frame));
    chain(['accepted', 'text'], TURN, 6 * BASE, 5 * BASE + 8).forEach((frame) => reader.push(frame));
    expect(looked).toEqual([]);
    expect(seen).toEqual([5 * BASE + 7, 5 * BASE + 8, 6 * BASE, 6 * BASE + 1]);
  });

  it('delivers every frame once and in order, if frames are lost, repeated or late', async () => {
    const indexes = fc.array(fc.nat({ max: whole.length - 1 }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(indexes, fc.nat({ max: whole.length }), async (arrivals, known) => {
        const { reader, offsets } = readerOf({ after: known === 0 ? 0 : BASE + known - 1, committed: whole });
        arrivals.forEach((i) => reader.push(whole[i] as LiveFrame));
        await reader.catchUp();
        await reader.catchUp();
        expect(offsets()).toEqual(all.slice(known));
      }),
    );
  });
});

describe('a client that reads nothing', () => {
  it('holds its page of the log for 1 s at most, and gets each frame once when it reads on', async () => {
    jest.useFakeTimers();
    let [reads, open] = [0, 0];
    let settle: () => void = () => undefined;
    let room: Promise<void> | undefined;
    const seen: number[] = [];
    const reader = new FrameReader({
      after: 0,
      turnId: TURN,
      committed: async function* (from) {
        reads++;
        open++;
        try {
          yield* pagesOf(whole.filter((frame) => frame.offset > from));
        } finally {
          open--;
        }
      },
      live: () => Promise.resolve([]),
      deliver: ({ offset }) => {
        seen.push(offset);
        if (seen.length === 3) room = new Promise((resolve) => (settle = resolve));
      },
      waitForRoom: () => room,
      onError: (error) => expect(error).toBeUndefined(),
    });
    const done = reader.catchUp();
    await jest.advanceTimersByTimeAsync(900);
    expect([open, seen.length]).toEqual([1, 3]);
    await jest.advanceTimersByTimeAsync(200);
    expect([open, reads]).toEqual([0, 1]);
    room = undefined;
    settle();
    await done;
    expect(seen).toEqual(whole.map(({ offset }) => offset));
    expect([open, reads]).toEqual([0, 2]);
    jest.useRealTimers();
  });
});
