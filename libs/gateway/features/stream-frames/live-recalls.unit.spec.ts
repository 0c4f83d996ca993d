import { describe, expect, it } from '@jest/globals';
import { createLiveRecalls } from './live-recalls.js';

const textOf = (offset: number): string =>
  JSON.stringify({
    event: 'text',
    data: `${offset}`,
    offset,
    prev: offset - 1,
    turnId: '0b8f6c1e-8d0e-4f6e-9a51-0b6f3a1c2d3e',
    epoch: 1,
  });

/** A `LIVE` that answers when it is told to, with what it has by then. */
const liveOf = () => {
  const has: number[] = [];
  const asked: number[] = [];
  const answers: (() => void)[] = [];
  const recall = async (since: number, each: (text: string) => void): Promise<void> => {
    asked.push(since);
    await new Promise<void>((resolve) => answers.push(resolve));
    ['not a frame', ...has.map(textOf)].forEach(each);
  };
  const settle = async (): Promise<void> => {
    while (answers.length === 0) await Promise.resolve();
    answers.shift()?.();
  };
  return { has, asked, settle, recalls: createLiveRecalls(recall) };
};
const offsets = async (frames: Promise<readonly { offset: number }[]>) =>
  (await frames).map(({ offset }) => offset);

describe('LiveRecalls', () => {
  it('gives each reader what it lacks, in order', async () => {
    const { has, settle, recalls } = liveOf();
    has.push(3, 1, 2);
    const readers = [recalls.after(1, 10), recalls.after(0, 10)].map(offsets);
    await settle();
    expect(await Promise.all(readers)).toEqual([
      [2, 3],
      [1, 2, 3],
    ]);
  });

  it('looks once for all who ask meanwhile, after the look under way, and from the earliest time', async () => {
    const { has, asked, settle, recalls } = liveOf();
    has.push(1);
    const first = offsets(recalls.after(0, 50));
    while (asked.length === 0) await Promise.resolve();
    const later = [recalls.after(1, 50), recalls.after(0, 40), recalls.after(2, 60)].map(offsets);
    await settle();
    expect(await first).toEqual([1]);
    has.push(2, 3);
    await settle();
    expect(await Promise.all(later)).toEqual([[2, 3], [1, 2, 3], [3]]);
    expect(asked).toEqual([50, 40]);
  });

  it('looks again after one that failed', async () => {
    let fails = true;
    const recalls = createLiveRecalls((_since, each) => {
      if (fails) return Promise.reject(new Error('NATS is away'));
      each(textOf(1));
      return Promise.resolve();
    });
    await expect(recalls.after(0, 1)).rejects.toThrow('NATS is away');
    fails = false;
    expect(await offsets(recalls.after(0, 1))).toEqual([1]);
  });
});
