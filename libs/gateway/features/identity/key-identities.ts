import type { Principal } from '@antiphon/contracts/identity';
import { createBoundedMap, type Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { Identities } from '../access/identities.port.js';
import { parseApiKey, type ApiKeyText } from '../access/api-key-text.js';
import { isActive, verifyKey, type FindKeys, type FoundKey } from './key-lookup.js';
import { KeyWatches } from './key-watches.js';
import { parseSessionKeyName, sessionPrincipal, type SessionKind, type SignedInBy } from './session-keys.js';

/** Age up to which a read row authenticates, ms: a revoked key is refused within a second. */
const MAX_AGE_MS = 900;
const MAX_CACHED = 10_000;

interface CachedRow {
  /** Time before the read began. */
  readonly readAt: number;
  /** Null if there is no key with this id. */
  readonly key: Promise<FoundKey | null>;
}

const endOf = (key: FoundKey | null): number | null => key?.expires_at?.getTime() ?? null;

export interface KeyIdentitiesOptions {
  readonly find: FindKeys;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Version of the configured token; null without one. */
  readonly tokenVersion?: number | null;
}

/**
 * Identities from the table of API keys, with a cache. Concurrent requests of one key share one
 * read. A cached row authenticates for less than a second, so that a lost notification of a
 * revocation delays it no longer than that.
 */
export class KeyIdentities implements Identities {
  readonly #rows = createBoundedMap<CachedRow>(MAX_CACHED);
  readonly #versions = new WeakMap<Principal, number>();
  /** Credentials that signed in, by the principals of their sessions. */
  readonly #signers = new WeakMap<Principal, SignedInBy & { readonly expiresAt: number | null }>();
  readonly #listeners = new Set<(keyId: string) => void>();
  readonly #watches: KeyWatches;

  constructor(private readonly options: KeyIdentitiesOptions) {
    const { find, clock, logger } = options;
    this.#watches = new KeyWatches(find, clock, logger);
  }

  async authenticate(token: string): Promise<Principal | null> {
    const text = parseApiKey(token);
    if (text === null) return null;
    const principal = await this.#verify(text);
    // A session is valid in its cookie only, and a link only once.
    return principal && parseSessionKeyName(principal.name) === null ? principal : null;
  }

  async authenticateSession(token: string, kind: SessionKind): Promise<Principal | null> {
    const text = parseApiKey(token);
    const own = text && (await this.#verify(text));
    const by = own && parseSessionKeyName(own.name);
    if (!own || by?.kind !== kind) return null;
    const signer = by.keyId === null ? null : await this.#read(by.keyId);
    if (by.keyId === null && by.version !== this.options.tokenVersion) return null;
    if (by.keyId !== null && !(signer && this.#isValid(signer, by.version))) return null;
    const principal = sessionPrincipal(own, by, signer?.name ?? null);
    this.#versions.set(principal, 1);
    this.#signers.set(principal, { ...by, expiresAt: endOf(signer) });
    return principal;
  }

  isSession(principal: Principal): boolean {
    return this.#signers.has(principal);
  }

  signerEndOf(session: Principal): number | null {
    return this.#signers.get(session)?.expiresAt ?? null;
  }

  versionOf(principal: Principal): number {
    const own = this.#signers.get(principal)?.version ?? this.#versions.get(principal);
    return own ?? (principal.caller === 'token' ? this.options.tokenVersion : null) ?? 0;
  }

  watch(principal: Principal, onEnd: () => void): () => void {
    const unwatch = this.#watches.add(principal, this.#versions.get(principal) ?? null, onEnd);
    const signer = this.#signers.get(principal);
    if (!signer || signer.keyId === null) return unwatch;
    const { keyId, version } = signer;
    const unwatchSigner = this.#watches.add({ ...principal, keyId, expiresAt: null }, version, onEnd);
    return () => {
      unwatch();
      unwatchSigner();
    };
  }

  async #verify(text: ApiKeyText): Promise<Principal | null> {
    const key = await this.#read(text.keyId);
    const proof = key && verifyKey(key, text, this.options.clock.now());
    if (proof === null) return null;
    this.#versions.set(proof.principal, proof.version);
    return proof.principal;
  }

  /** Returns true while a secret of this version is valid. */
  #isValid(key: FoundKey, version: number): boolean {
    const now = this.options.clock.now();
    const hasOverlap = (key.previous_until?.getTime() ?? 0) > now;
    return isActive(key, now) && version >= key.version - (hasOverlap ? 1 : 0);
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
