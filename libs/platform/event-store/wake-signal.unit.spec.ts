import { describe, expect, it } from '@jest/globals';
import { createSignal } from './wake-signal.js';

describe('a wake signal', () => {
  it('ends a wait, and remembers a call that came before it', async () => {
    const signal = createSignal();
    const waiting = signal.wait(60_000);
    signal.wake();
    await waiting;
    signal.wake();
    await signal.wait(60_000);
    // Nothing is left of either call: this one ends by its time, and a call after it is a new one.
    await signal.wait(1);
    const last = signal.wait(60_000);
    signal.wake();
    await expect(last).resolves.toBeUndefined();
  });
});
