import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';
import type { Clock, Ids } from '@antiphon/kernel';

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now() };

const RANDOM_BYTES = 16;
// One call to the kernel is enough for 256 ids: it costs more than all the rest of an id, and a turn makes dozens.
const pool = new Uint8Array(256 * RANDOM_BYTES);
let used = pool.length;
const takeRandom = (): Uint8Array => {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool.subarray(used, (used += RANDOM_BYTES));
};

/** Random at first in each millisecond, so that processes do not meet, and counted on from there. */
const sequenceFrom = (random: Uint8Array): number =>
  new DataView(random.buffer, random.byteOffset).getUint32(6) & 0x7fffffff;

/** Its time and sequence: ids of one process are in the order in which they were made. */
const last = { msecs: -Infinity, seq: 0 };

/** UUIDv7: random, and ordered by time, so that rows that arrive together lie together in their indexes. */
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
