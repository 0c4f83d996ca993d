import { describe, expect, it } from '@jest/globals';
import { LiveReplay } from './live-replay.js';

const textOf = (offset: number): string =>
  JSON.stringify({
    event: 'text',
    data: `${offset}`,
    offset,
    prev: offset - 1,
    turnId: '0b8f6c1e-8d0e-4f6e-9a51-0b6f3a1c2d3e',
    epoch: 1,
  });

/**
 * Creates a `LIVE` whose reads end when the spec settles them, with the frames that it has by then.
 */
const liveOf = () => {
  const has: number[] = [];
  const asked: number[] = [];
  const answers: (() => void)[] = [];
  const read = async (since: number, each: (text: string) => void): Promise<void> => {
    asked.push(since);
    await new Promise<void>((resolve) => answers.push(resolve));
    ['not a frame', ...has.map(textOf)].forEach(each);
  };
  const settle = async (): Promise<void> => {
    while (answers.length === 0) await Promise.resolve();
    answers.shift()?.();
  };
  return { has, asked, settle, replay: new LiveReplay(read) };
};
const offsets = async (frames: Promise<readonly { offset: number }[]>) =>
  (await frames).map(({ offset }) => offset);

describe('LiveReplay', () => {
  it('returns to each reader the frames that it lacks, in order', async () => {
    const { has, settle, replay } = liveOf();
    has.push(3, 1, 2);
    const readers = [replay.framesAfter(1, 10), replay.framesAfter(0, 10)].map(offsets);
    await settle();
    expect(await Promise.all(readers)).toEqual([
      [2, 3],
      [1, 2, 3],
    ]);
  });

  it('reads once for all calls during a read, after it, and from the earliest time', async () => {
    const { has, asked, settle, replay } = liveOf();
    has.push(1);
    const first = offsets(replay.framesAfter(0, 50));
    while (asked.length === 0) await Promise.resolve();
    const later = [replay.framesAfter(1, 50), replay.framesAfter(0, 40), replay.framesAfter(2, 60)].map(
      offsets,
    );
    await settle();
    expect(await first).toEqual([1]);
    has.push(2, 3);
    await settle();
    expect(await Promise.all(later)).toEqual([[2, 3], [1, 2, 3], [3]]);
    expect(asked).toEqual([50, 40]);
  });

  it('reads again after a failed read', async () => {
    let fails = true;
    const replay = new LiveReplay((_since, each) => {
      if (fails) return Promise.reject(new Error('NATS is away'));
      each(textOf(1));
      return Promise.resolve();
    });
    await expect(replay.framesAfter(0, 1)).rejects.toThrow('NATS is away');
    fails = false;
    expect(await offsets(replay.framesAfter(0, 1))).toEqual([1]);
  });
});
