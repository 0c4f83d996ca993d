import { describe, expect, it } from '@jest/globals';
import { createWorkLanes } from './work-lanes.js';

const gate = () => {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
};

describe('work lanes', () => {
  it('runs one lane in order and other lanes beside it', async () => {
    const lanes = createWorkLanes(10);
    const first = gate();
    const order: string[] = [];
    const note = (name: string) => () => Promise.resolve(void order.push(name));
    lanes.run('a', () => first.opened.then(note('a1')));
    lanes.run('a', note('a2'));
    lanes.run('b', note('b1'));
    lanes.run(undefined, note('free'));
    first.open();
    await lanes.idle();
    expect(order).toEqual(['b1', 'free', 'a1', 'a2']);
  });

  it('has room again when something ends', async () => {
    const lanes = createWorkLanes(1);
    const busy = gate();
    lanes.run(undefined, () => busy.opened);
    let hadRoom = false;
    const room = lanes.room().then(() => (hadRoom = true));
    await Promise.resolve();
    expect(hadRoom).toBe(false);
    busy.open();
    await room;
    expect(lanes.size).toBe(0);
  });
});
