import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { invalid } from '@antiphon/kernel';
import { canonicalJson } from './event-hash.js';

/** Returns the first 16 hex digits of SHA-256 over a public key (SPKI, DER). */
export const signingKeyId = (publicKey: KeyObject): string =>
  createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
    .slice(0, 16);

const toSignedBytes = (content: object): Buffer => Buffer.from(canonicalJson(content as never));

/** Signs a JSON object with an Ed25519 key: returns the object with `keyId` and `signature`. */
export const signContent = <T extends object>(
  content: T,
  privateKey: KeyObject,
): T & { readonly keyId: string; readonly signature: string } => {
  const keyed = { ...content, keyId: signingKeyId(createPublicKey(privateKey)) };
  return { ...keyed, signature: sign(null, toSignedBytes(keyed), privateKey).toString('base64') };
};

/**
 * True if exactly this content was signed with the key that belongs to `publicKey`. False for a
 * signature of another type or spelling.
 */
export const isSignedBy = (
  { signature, ...keyed }: { readonly keyId: string; readonly signature: string },
  publicKey: KeyObject,
): boolean => {
  if (typeof signature !== 'string' || keyed.keyId !== signingKeyId(publicKey)) return false;
  const bytes = Buffer.from(signature, 'base64');
  if (bytes.toString('base64') !== signature) return false;
  try {
    return verify(null, toSignedBytes(keyed), publicKey, bytes);
  } catch {
    // Content without an RFC 8785 text, such as a lone surrogate, was never signed.
    return false;
  }
};

/** True if one of the keys signed exactly this content. */
export const isSignedByAny = (
  content: { readonly keyId: string; readonly signature: string },
  publicKeys: readonly KeyObject[],
): boolean => publicKeys.some((key) => isSignedBy(content, key));

const PEM_BLOCK = /-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g;

/**
 * Reads the public keys of a PEM text: private keys give theirs. The file of a signing key may end
 * with the public keys of its predecessors. Throws for a text without a key or with another block.
 */
export const readPublicKeys = (pem: string): readonly KeyObject[] => {
  const keys = [...pem.matchAll(PEM_BLOCK)].map(([block]) => createPublicKey(block));
  if (keys.length === 0 || keys.some(({ asymmetricKeyType: type }) => type !== 'ed25519'))
    throw invalid('LOG.BAD_SIGNING_KEY', 'the file must hold Ed25519 keys as PEM');
  return keys;
};

/** A key that signs, and the public keys whose signatures are trusted: its own comes first. */
export interface SigningKeys {
  readonly privateKey: KeyObject;
  readonly publicKeys: readonly KeyObject[];
}

/** Returns the PEM of a variable: it may have escaped line ends, or be base64 of a PEM. */
export const decodeKeyText = (text: string): string =>
  text.includes('BEGIN') ? text.replaceAll('\\n', '\n') : Buffer.from(text, 'base64').toString('utf8');

/** Parses a private key (PEM), which public keys of earlier keys may follow. */
export const parseSigningKeys = (pem: string, name: string): SigningKeys => {
  try {
    const privateKey = createPrivateKey(pem);
    const publicKeys = readPublicKeys(pem);
    if (privateKey.asymmetricKeyType === 'ed25519') return { privateKey, publicKeys };
  } catch {
    // The error below replaces this one, which could show the file's content.
  }
  throw invalid('LOG.BAD_SIGNING_KEY', `${name} must hold an Ed25519 private key as PEM (PKCS 8)`);
};

const readKeyText = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
};

/** Reads a file with a signing key; null if it does not exist or is empty. */
export const readSigningKeys = (file: string): SigningKeys | null => {
  const pem = readKeyText(file);
  return pem === null || pem.trim() === '' ? null : parseSigningKeys(pem, file);
};

/**
 * Creates the key in a temporary file next to `file`, then links it into place. When two processes
 * create the key at the same time, the first link wins.
 */
const createKey = (file: string): void => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const { privateKey } = generateKeyPairSync('ed25519');
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
};

/**
 * Loads the key that signs the log's roots, and creates it if the file does not exist. Throws
 * `LOG.BAD_SIGNING_KEY` for a file with other content.
 */
export const loadSigningKeys = (file: string): SigningKeys => {
  const existing = readSigningKeys(file);
  if (existing) return existing;
  createKey(file);
  return parseSigningKeys(readFileSync(file, 'utf8'), file);
};
