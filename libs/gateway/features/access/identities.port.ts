import type { Principal } from '@antiphon/contracts/identity';

/** API keys, as the gateway's guards need them. */
export interface Identities {
  /**
   * Returns the principal of an API key; null for an unknown, revoked or expired key. Rejects with
   * a transient error while the keys cannot be read.
   */
  authenticate(secret: string): Promise<Principal | null>;
  /**
   * Returns the principal of a session or a one-time link of the dashboard. Null for any other
   * credential, and after the end of the key or token that signed in.
   */
  authenticateSession(secret: string, kind: 'session' | 'link'): Promise<Principal | null>;
  /** Returns true for the principal of a session. */
  isSession(principal: Principal): boolean;
  /** Returns the end of the credential that signed in, ms; null for one without an end. */
  signerEndOf(session: Principal): number | null;
  /** Returns the version of the secret that signed in or was presented; 0 for none. */
  versionOf(principal: Principal): number;
  /**
   * Calls `onEnd` once within a second after the principal's key is revoked, is rotated without an
   * overlap, or expires. Returns a function that ends the watch.
   */
  watch(principal: Principal, onEnd: () => void): () => void;
  /** Adds a listener for keys that change, also in another gateway. Returns its removal. */
  onRevoked(listener: (keyId: string) => void): () => void;
}

/** Identities of an installation without API keys. */
export const NO_IDENTITIES: Identities = {
  authenticate: () => Promise.resolve(null),
  authenticateSession: () => Promise.resolve(null),
  isSession: () => false,
  signerEndOf: () => null,
  versionOf: () => 0,
  watch: () => () => undefined,
  onRevoked: () => () => undefined,
};
