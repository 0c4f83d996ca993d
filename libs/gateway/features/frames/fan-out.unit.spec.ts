import { setImmediate as yieldToEvents } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { LiveFrame } from '@antiphon/contracts/agent';
import { until } from '@antiphon/testing';
import { FanOut, type FrameTarget } from './fan-out.js';

const frameOf = (offset: number): LiveFrame => ({
  ...{ event: 'text', data: `text ${offset}`, turnId: 'turn', offset, prev: offset - 1, epoch: 1 },
});

const targetOf = (got: number[]): FrameTarget => ({
  reader: { push: ({ offset }) => void got.push(offset) },
});

const startWorld = (count: number) => {
  const got = Array.from({ length: count }, (): number[] => []);
  const targets = new Set(got.map(targetOf));
  return { got, targets, fanOut: new FanOut(targets) };
};

describe('the fan-out of live frames', () => {
  it('reaches a few readers at once', () => {
    const { got, fanOut } = startWorld(32);
    fanOut.send(frameOf(1));
    expect(fanOut.isBusy).toBe(false);
    expect(got.every(([offset]) => offset === 1)).toBe(true);
  });

  // @shows chats-C5
  it('lets other work run before many readers have a frame, and keeps the order for each', async () => {
    const { got, fanOut } = startWorld(1_000);
    for (let offset = 1; offset <= 10; offset++) fanOut.send(frameOf(offset));
    await yieldToEvents();
    const reached = got.filter(({ length }) => length > 0).length;
    expect([reached > 0, reached < 200, fanOut.isBusy]).toEqual([true, true, true]);
    await until(() => !fanOut.isBusy);
    const expected = Array.from({ length: 10 }, (_, nth) => nth + 1);
    for (const offsets of got) expect(offsets).toEqual(expected);
  });

  it('reaches readers that came since, and holds a bounded number of frames', async () => {
    const { got, targets, fanOut } = startWorld(100);
    fanOut.send(frameOf(1));
    const late: number[] = [];
    targets.add(targetOf(late));
    for (let offset = 2; offset <= 1_000; offset++) fanOut.send(frameOf(offset));
    await until(() => !fanOut.isBusy);
    expect(late).toEqual(Array.from({ length: 256 }, (_, nth) => nth + 2));
    expect(got[0]).toEqual([1, ...late]);
  });
});
