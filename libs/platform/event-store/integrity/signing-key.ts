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

/** True if exactly this content was signed with the key that belongs to `publicKey`. */
export const isSignedBy = (
  { signature, ...keyed }: { readonly keyId: string; readonly signature: string },
  publicKey: KeyObject,
): boolean =>
  keyed.keyId === signingKeyId(publicKey) &&
  verify(null, toSignedBytes(keyed), publicKey, Buffer.from(signature, 'base64'));

const readKey = (file: string): KeyObject | null => {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The error below replaces this one, which could show the file's content.
  }
  throw invalid('LOG.BAD_SIGNING_KEY', `${file} must hold an Ed25519 private key as PEM (PKCS 8)`);
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
export const loadSigningKey = (file: string): KeyObject => {
  const existing = readKey(file);
  if (existing) return existing;
  createKey(file);
  return readKey(file) as KeyObject;
};
