import { describe, expect, it } from '@jest/globals';
import { ExtensionPause } from './append-flush.js';

describe('a pause of extensions', () => {
  it('is over before the first timeout, and doubles up to 8 s while timeouts follow each other', () => {
    let time = 0;
    const pause = new ExtensionPause(() => time);
    expect(pause.isOver()).toBe(true);
    const lengths = Array.from({ length: 6 }, () => {
      pause.begin();
      const begun = time;
      while (!pause.isOver()) time += 100;
      return time - begun;
    });
    expect(lengths).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000]);
  });

  it('is short again after a second without timeouts', () => {
    let time = 0;
    const pause = new ExtensionPause(() => time);
    pause.begin();
    time += 500;
    pause.begin();
    time += 2_000;
    pause.begin();
    time += 499;
    expect(pause.isOver()).toBe(false);
    time += 1;
    expect(pause.isOver()).toBe(true);
  });
});
