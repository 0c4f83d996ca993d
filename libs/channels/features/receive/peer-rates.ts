import { createBoundedMap } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';

const WINDOW_MS = 60_000;
const MAX_PEERS = 10_000;

interface Window {
  readonly startedAt: number;
  readonly count: number;
}

/** Counts the messages of each peer in a minute, in this process. */
export class PeerRates {
  private readonly windows = createBoundedMap<Window>(MAX_PEERS);

  constructor(private readonly clock: Clock) {}

  /** Counts a message. Returns false over the limit. */
  count(key: string, perMinute: number): boolean {
    const now = this.clock.now();
    const known = this.windows.get(key);
    const isOpen = known !== undefined && now - known.startedAt < WINDOW_MS;
    const next = isOpen ? { ...known, count: known.count + 1 } : { startedAt: now, count: 1 };
    this.windows.put(key, next);
    return next.count <= perMinute;
  }
}
