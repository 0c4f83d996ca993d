import { v7 } from 'uuid';
import type { Clock, Ids } from '@antiphon/kernel';

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now() };

/** UUIDv7: random, and ordered by time, so that rows that arrive together lie together in their indexes. */
export const uuidIds: Ids = { next: () => v7() };
