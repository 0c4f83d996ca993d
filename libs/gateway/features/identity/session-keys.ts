import { createHash } from 'node:crypto';
import type { Principal } from '@antiphon/contracts/identity';
import { SESSION_KEY_NAMES } from '@antiphon/contracts/keys';

/**
 * Sessions and one-time links of the dashboard are API keys of a short life, whose names the API
 * refuses to other keys. The name has the key that signed in, and the version of its secret.
 */
export type SessionKind = keyof typeof SESSION_KEY_NAMES;

/** Credential that signed in. */
export interface SignedInBy {
  readonly kind: SessionKind;
  /** Null for the configured token. */
  readonly keyId: string | null;
  /** Version of the key's secret, or of the token (`tokenVersionOf`). */
  readonly version: number;
}

/** Number of versions of the configured token, within the digits of a name. */
const TOKEN_VERSIONS = 1_000_000_000;

/**
 * Returns a number that changes with the configured token, so that its sessions end with it. It is
 * a part of a digest, and does not tell the token. Null without a token.
 */
export const tokenVersionOf = (token: string | null): number | null =>
  token === null
    ? null
    : createHash('sha256').update(`dashboard/${token}`).digest().readUInt32BE(0) % TOKEN_VERSIONS;

/** Returns the name of the key of a session or a link. */
export const sessionKeyName = ({ kind, keyId, version }: SignedInBy): string =>
  `${SESSION_KEY_NAMES[kind]}${keyId ?? 'token'}/${version}`;

/** Returns how the names of the sessions of a caller begin. */
export const sessionKeyPrefix = (caller: string): string =>
  `${SESSION_KEY_NAMES.session}${caller.replace(/^key\//, '')}/`;

/** Parses the name of a key; null for a key that is no session and no link. */
export const parseSessionKeyName = (name: string | null): SignedInBy | null => {
  for (const kind of ['session', 'link'] as const) {
    const prefix = SESSION_KEY_NAMES[kind];
    if (name?.startsWith(prefix) !== true) continue;
    const [, id = '', version = ''] =
      /^([a-z2-7]{16}|token)\/(\d{1,9})$/.exec(name.slice(prefix.length)) ?? [];
    return { kind, keyId: id === 'token' ? null : id, version: Number(version) };
  }
  return null;
};

/** Returns the principal of a session: facts and idempotency name the credential that signed in. */
export const sessionPrincipal = (own: Principal, { keyId }: SignedInBy, name: string | null): Principal => ({
  ...own,
  caller: keyId === null ? 'token' : `key/${keyId}`,
  name,
});
