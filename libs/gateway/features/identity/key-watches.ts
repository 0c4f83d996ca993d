import type { Principal } from '@antiphon/contracts/identity';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { isActive, type FindKeys, type FoundKey } from './key-lookup.js';

interface Watch {
  readonly expiresAt: number | null;
  /** Version of the key that authenticated. A later version has another secret. */
  readonly version: number | null;
  readonly onEnd: () => void;
}

/** Interval of the check of watched keys, ms. A notification over NATS comes sooner. */
const POLL_MS = 750;

/**
 * Watches the keys of open connections. Reads them in one statement at an interval, because a
 * notification may be lost, and at once for a key that a notification names.
 */
export class KeyWatches {
  readonly #watches = new Map<string, Set<Watch>>();
  #timer: NodeJS.Timeout | null = null;
  #isPolling = false;

  constructor(
    private readonly find: FindKeys,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Calls `onEnd` once when the principal's key ends. Returns a function that ends the watch. */
  add({ keyId, expiresAt }: Principal, version: number | null, onEnd: () => void): () => void {
    if (keyId === null) return () => undefined;
    const watch: Watch = { expiresAt, version, onEnd };
    const watches = this.#watches.get(keyId) ?? new Set();
    this.#watches.set(keyId, watches.add(watch));
    this.#timer ??= setInterval(() => void this.#poll(), POLL_MS).unref();
    return () => this.#remove(keyId, watch);
  }

  /** Reads the watched keys, or some of them, and ends the watches of those that are not valid. */
  async check(keyIds: readonly string[] = [...this.#watches.keys()]): Promise<void> {
    this.#endExpired();
    const watched = keyIds.filter((keyId) => this.#watches.has(keyId));
    if (watched.length === 0) return;
    const found = new Map((await this.find(watched)).map((key) => [key.key_id, key]));
    for (const keyId of watched) this.#endInvalid(keyId, found.get(keyId));
  }

  close(): void {
    this.#stop();
    this.#watches.clear();
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      await this.check();
    } catch (error) {
      this.logger.warn({ err: error }, 'key check failed');
    } finally {
      this.#isPolling = false;
    }
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #endExpired(): void {
    const now = this.clock.now();
    this.#endEach((watch) => watch.expiresAt !== null && watch.expiresAt <= now);
  }

  #endInvalid(keyId: string, key: FoundKey | undefined): void {
    const now = this.clock.now();
    const isValid = key !== undefined && isActive(key, now);
    const hasOverlap = (key?.previous_until?.getTime() ?? 0) > now;
    const hasEnded = ({ version }: Watch): boolean =>
      !isValid || (version !== null && version < key.version - (hasOverlap ? 1 : 0));
    this.#endEach(hasEnded, [keyId]);
  }

  #endEach(hasEnded: (watch: Watch) => boolean, keyIds: Iterable<string> = [...this.#watches.keys()]): void {
    for (const keyId of keyIds)
      for (const watch of [...(this.#watches.get(keyId) ?? [])]) {
        if (!hasEnded(watch)) continue;
        this.#remove(keyId, watch);
        watch.onEnd();
      }
  }

  #remove(keyId: string, watch: Watch): void {
    const watches = this.#watches.get(keyId);
    watches?.delete(watch);
    if (watches?.size === 0) this.#watches.delete(keyId);
    if (this.#watches.size === 0) this.#stop();
  }
}
