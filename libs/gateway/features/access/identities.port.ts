import type { Principal } from '@antiphon/contracts/identity';

/** API keys, as the gateway's guards need them. */
export interface Identities {
  /**
   * Returns the principal of an API key; null for an unknown, revoked or expired key. Rejects with
   * a transient error while the keys cannot be read.
   */
  authenticate(secret: string): Promise<Principal | null>;
  /** Adds a listener for keys that are revoked, also by another gateway. Returns its removal. */
  onRevoked(listener: (keyId: string) => void): () => void;
}

/** Identities of an installation without API keys. */
export const NO_IDENTITIES: Identities = {
  authenticate: () => Promise.resolve(null),
  onRevoked: () => () => undefined,
};
