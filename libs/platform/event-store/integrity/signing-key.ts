import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { invalid } from '@antiphon/kernel';

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
    // Said below, without what the file holds.
  }
  throw invalid('LOG.BAD_SIGNING_KEY', `${file} must hold an Ed25519 private key as PEM (PKCS 8)`);
};

/** Written beside its place and linked there: of two processes that make one at once, the first one's stays. */
const makeKey = (file: string): void => {
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

/** The key that signs the log's roots, made when there is none. Throws `LOG.BAD_SIGNING_KEY` for a file that holds something else. */
export const loadSigningKey = (file: string): KeyObject => {
  const known = readKey(file);
  if (known) return known;
  makeKey(file);
  return readKey(file) as KeyObject;
};
