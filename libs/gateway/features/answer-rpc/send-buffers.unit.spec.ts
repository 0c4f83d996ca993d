import { describe, expect, it } from '@jest/globals';
import { BRISK_BYTES, createSendBuffers } from './send-buffers.js';

const KIB = 1024;
const limits = { socketBytes: 400 * KIB, totalBytes: 1_000 * KIB };

describe('send buffers', () => {
  it('let a socket hold so much and no more', () => {
    const buffers = createSendBuffers(limits);
    expect(buffers.mayHold('a', 400 * KIB)).toBe(true);
    expect(buffers.mayHold('a', 400 * KIB + 1)).toBe(false);
  });

  it('count what is slow, as it is now, and forget what has gone', () => {
    const buffers = createSendBuffers(limits);
    buffers.mayHold('a', 100 * KIB);
    buffers.mayHold('a', 200 * KIB);
    buffers.mayHold('b', 300 * KIB);
    buffers.mayHold('c', BRISK_BYTES);
    expect(buffers.total()).toBe(500 * KIB);
    buffers.mayHold('a', 10);
    buffers.forget('b');
    buffers.forget('b');
    expect(buffers.total()).toBe(0);
  });

  it('part with the greediest when all together hold too much, not with whoever comes last', () => {
    const buffers = createSendBuffers(limits);
    for (const id of ['a', 'b']) buffers.mayHold(id, 390 * KIB);
    expect(buffers.mayHold('c', 230 * KIB)).toBe(true);
    expect(buffers.total()).toBeGreaterThan(limits.totalBytes);
    expect(buffers.mayHold('b', 390 * KIB)).toBe(false);
    buffers.forget('b');
    expect(buffers.mayHold('a', 390 * KIB)).toBe(true);
  });
});
