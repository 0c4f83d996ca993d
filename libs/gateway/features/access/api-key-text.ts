import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Text of an API key: `ak_<keyId>_<secret>`. */
const TEXT = /^ak_([a-z2-7]{16})_([A-Za-z0-9_-]{43})$/;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const ID_BYTES = 10;
const SECRET_BYTES = 32;

export interface ApiKeyText {
  readonly keyId: string;
  readonly secret: string;
}

/** Returns true for the text of an API key, as opposed to the configured token. */
export const isApiKey = (token: string): boolean => token.startsWith('ak_');

/** Parses the text of an API key, or returns null if it is malformed. */
export const parseApiKey = (token: string): ApiKeyText | null => {
  const [, keyId, secret] = TEXT.exec(token) ?? [];
  return keyId === undefined || secret === undefined ? null : { keyId, secret };
};

export const formatApiKey = ({ keyId, secret }: ApiKeyText): string => `ak_${keyId}_${secret}`;

/** Encodes 10 bytes as 16 characters of base 32. */
const encodeId = (bytes: Uint8Array): string => {
  let bits = BigInt(`0x${Buffer.from(bytes.subarray(0, ID_BYTES)).toString('hex')}`);
  let text = '';
  for (let i = 0; i < 16; i++) {
    text = (BASE32[Number(bits & 31n)] ?? '') + text;
    bits >>= 5n;
  }
  return text;
};

export const createKeyId = (): string => encodeId(randomBytes(ID_BYTES));

/** Returns the id of the key that a caller's idempotency key creates. */
export const keyIdForRequest = (...parts: readonly string[]): string =>
  encodeId(createHash('sha256').update(parts.join('\n')).digest());

export const createSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url');

/** Returns the stored form of a secret. It is random, so it needs no slow hash. */
export const hashSecret = (secret: string): Buffer => createHash('sha256').update(secret).digest();

/** Compares in constant time. */
export const isSameHash = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && timingSafeEqual(one, other);
