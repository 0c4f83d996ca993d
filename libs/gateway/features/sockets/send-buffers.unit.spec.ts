import { describe, expect, it } from '@jest/globals';
import { SLOW_BYTES, createSendBuffers } from './outbox.js';

const KIB = 1024;
const limits = { socketBytes: 400 * KIB, totalBytes: 1_000 * KIB };

describe('send buffers', () => {
  it('let a socket hold its limit and no more', () => {
    const buffers = createSendBuffers(limits);
    expect(buffers.mayHold('a', 400 * KIB)).toBe(true);
    expect(buffers.mayHold('a', 400 * KIB + 1)).toBe(false);
  });

  it('count the current bytes of slow sockets, and nothing of closed ones', () => {
    const buffers = createSendBuffers(limits);
    buffers.mayHold('a', 100 * KIB);
    buffers.mayHold('a', 200 * KIB);
    buffers.mayHold('b', 300 * KIB);
    buffers.mayHold('c', SLOW_BYTES);
    expect(buffers.total()).toBe(500 * KIB);
    buffers.mayHold('a', 10);
    buffers.forget('b');
    buffers.forget('b');
    expect(buffers.total()).toBe(0);
  });

  it('refuse the socket that holds most when the total is used up, not the one that came last', () => {
    const buffers = createSendBuffers(limits);
    for (const id of ['a', 'b']) buffers.mayHold(id, 390 * KIB);
    expect(buffers.mayHold('c', 230 * KIB)).toBe(true);
    expect(buffers.total()).toBeGreaterThan(limits.totalBytes);
    expect(buffers.mayHold('b', 390 * KIB)).toBe(false);
    buffers.forget('b');
    expect(buffers.mayHold('a', 390 * KIB)).toBe(true);
  });
});
