import type { Principal } from '@antiphon/contracts/identity';
import { createBoundedMap, type Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { Identities } from '../access/identities.port.js';
import { parseApiKey } from './api-key-text.js';
import { verifyKey, type FindKeys, type FoundKey } from './key-lookup.js';
import { KeyWatches } from './key-watches.js';

/** Age up to which a read row authenticates, ms: a revoked key is refused within a second. */
const MAX_AGE_MS = 900;
const MAX_CACHED = 10_000;

interface CachedRow {
  /** Time before the read began. */
  readonly readAt: number;
  /** Null if there is no key with this id. */
  readonly key: Promise<FoundKey | null>;
}

export interface KeyIdentitiesOptions {
  readonly find: FindKeys;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Identities from the table of API keys, with a cache. Concurrent requests of one key share one
 * read. A cached row authenticates for less than a second, so that a lost notification of a
 * revocation delays it no longer than that.
 */
export class KeyIdentities implements Identities {
  readonly #rows = createBoundedMap<CachedRow>(MAX_CACHED);
  readonly #versions = new WeakMap<Principal, number>();
  readonly #listeners = new Set<(keyId: string) => void>();
  readonly #watches: KeyWatches;

  constructor(private readonly options: KeyIdentitiesOptions) {
    const { find, clock, logger } = options;
    this.#watches = new KeyWatches(find, clock, logger);
  }

  async authenticate(token: string): Promise<Principal | null> {
    const text = parseApiKey(token);
    if (text === null) return null;
    const key = await this.#read(text.keyId);
    const proof = key && verifyKey(key, text, this.options.clock.now());
    if (proof === null) return null;
    this.#versions.set(proof.principal, proof.version);
    return proof.principal;
  }

  watch(principal: Principal, onEnd: () => void): () => void {
    return this.#watches.add(principal, this.#versions.get(principal) ?? null, onEnd);
  }

  onRevoked(listener: (keyId: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reads a key again after a notification that it changed, and ends its watches if it ended. */
  async refresh(keyId: string): Promise<void> {
    this.#rows.delete(keyId);
    for (const listener of this.#listeners) listener(keyId);
    try {
      await this.#watches.check([keyId]);
    } catch (error) {
      // The next poll of the watches repeats it.
      this.options.logger.warn({ err: error, keyId }, 'key check failed');
    }
  }

  close(): void {
    this.#watches.close();
  }

  #read(keyId: string): Promise<FoundKey | null> {
    const now = this.options.clock.now();
    const cached = this.#rows.get(keyId);
    if (cached && now - cached.readAt < MAX_AGE_MS) return cached.key;
    const key = this.options.find([keyId]).then(([found]) => found ?? null);
    this.#rows.put(keyId, { readAt: now, key });
    // A failed read is not cached.
    key.catch(() => this.#forget(keyId, key));
    return key;
  }

  #forget(keyId: string, key: CachedRow['key']): void {
    if (this.#rows.get(keyId)?.key === key) this.#rows.delete(keyId);
  }
}
