import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';
import type { Clock, Ids } from '@antiphon/kernel';

/** Clock of the machine. */
export const systemClock: Clock = { now: () => Date.now() };

const RANDOM_BYTES = 16;
// One system call for 256 ids: it costs more than the rest of an id, and a turn makes dozens.
const pool = new Uint8Array(256 * RANDOM_BYTES);
let used = pool.length;
const takeRandom = (): Uint8Array => {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool.subarray(used, (used += RANDOM_BYTES));
};

/**
 * Returns a random start for each millisecond, so that processes differ; later ids count up from
 * it.
 */
const sequenceFrom = (random: Uint8Array): number =>
  new DataView(random.buffer, random.byteOffset).getUint32(6) & 0x7fffffff;

/** Time and sequence of the last id: ids of one process are ordered. */
const last = { msecs: -Infinity, seq: 0 };

/** Generates UUIDv7: ordered by time, so that rows created together are close in their indexes. */
export const uuidIds: Ids = {
  next: () => {
    const random = takeRandom();
    const now = Date.now();
    if (now > last.msecs) {
      last.msecs = now;
      last.seq = sequenceFrom(random);
    } else {
      last.seq = (last.seq + 1) | 0;
      if (last.seq === 0) last.msecs += 1;
    }
    return v7({ random, ...last });
  },
};
