import { describe, expect, it } from '@jest/globals';
import { CallerClocks } from './caller-clocks.js';

const MINUTE = 60_000;

/** The caller's clock is ahead of this process's by `skew` ms. */
const world = (skew: number) => {
  let time = 1_000_000;
  const clocks = new CallerClocks(() => time);
  const caller = 'agent-1';
  const theirTime = () => time + skew;
  return {
    /** Sends a message that travels for `delayMs`. */
    hear: (delayMs = 0) => {
      const at = theirTime();
      time += delayMs;
      clocks.observe({ caller, at });
    },
    /** Sends a request with a deadline of 3 s that travels for `delayMs`. */
    isLate: (delayMs: number) => {
      const notAfter = theirTime() + 3_000;
      time += delayMs;
      return clocks.isOver(caller, notAfter);
    },
    wait: (ms: number) => (time += ms),
  };
};

describe('CallerClocks', () => {
  it.each([0, 5 * MINUTE, -5 * MINUTE, 60 * MINUTE])(
    'finds only a delayed request late when clocks differ by %d ms',
    (skew) => {
      const { hear, isLate } = world(skew);
      hear(1);
      expect(isLate(2)).toBe(false);
      expect(isLate(2_900)).toBe(false);
      expect(isLate(3_100)).toBe(true);
    },
  );

  it('finds a request late that arrives with a backlog of messages after a pause', () => {
    const { hear, isLate, wait } = world(0);
    hear();
    wait(10 * MINUTE);
    hear(MINUTE);
    expect(isLate(MINUTE)).toBe(true);
  });

  it('assumes a skew of five minutes for a caller that it has not heard', () => {
    expect(world(0).isLate(4 * MINUTE)).toBe(false);
    expect(world(0).isLate(6 * MINUTE)).toBe(true);
  });

  it('measures again after clocks have drifted', () => {
    const { hear, isLate, wait } = world(0);
    hear();
    for (let window = 0; window < 3; window++) {
      wait(3 * MINUTE);
      hear(4_000);
    }
    expect(isLate(2_000)).toBe(false);
  });
});
