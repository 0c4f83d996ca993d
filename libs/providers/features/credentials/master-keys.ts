import { readFileSync } from 'node:fs';
import { invalid, isAppError, transient } from '@antiphon/kernel';
import type { Environment } from '@antiphon/service-host';
import { MASTER_KEY_BYTES, masterKeyIdOf, type MasterKey } from './credential-cipher.js';

/**
 * Reads the master keys, the newest first. It reads the file each time, so that a rotation needs no
 * restart.
 */
export type ReadMasterKeys = () => readonly MasterKey[];

const FORM = 'expected 32 random bytes as base64, the newest key first, one key a line';

const parseKey = (text: string): MasterKey => {
  const key = Buffer.from(text, /^[0-9a-f]{64}$/i.test(text) ? 'hex' : 'base64url');
  if (key.length !== MASTER_KEY_BYTES)
    throw invalid('CREDENTIAL.MASTER_KEY_INVALID', `a master key has the wrong form: ${FORM}`);
  return { id: masterKeyIdOf(key), key };
};

const parseKeys = (text: string): MasterKey[] =>
  text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(parseKey);

const readFile = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw transient('CREDENTIAL.NO_MASTER_KEY', `the master key cannot be read from ${path}`, { cause });
  }
};

/**
 * Creates the reader of `ANTIPHON_MASTER_KEY`, or else of the file that `ANTIPHON_MASTER_KEY_FILE`
 * names. Reading throws `CREDENTIAL.MASTER_KEY_INVALID`, or `CREDENTIAL.NO_MASTER_KEY` if the file
 * cannot be read.
 */
export const createMasterKeyReader =
  (env: Environment): ReadMasterKeys =>
  () => {
    const text = env['ANTIPHON_MASTER_KEY'];
    const file = env['ANTIPHON_MASTER_KEY_FILE'];
    if (text) return parseKeys(text);
    return file ? parseKeys(readFile(file)) : [];
  };

/** Returns the newest master key. Throws `CREDENTIAL.NO_MASTER_KEY`. */
export const newestOf = ([newest]: readonly MasterKey[]): MasterKey => {
  if (newest !== undefined) return newest;
  throw transient(
    'CREDENTIAL.NO_MASTER_KEY',
    'credentials cannot be stored: the agent service has no master key (ANTIPHON_MASTER_KEY_FILE)',
  );
};

/** Returns what a health report says of the master key: its id, or why credentials are unusable. */
export const describeMasterKey = (read: ReadMasterKeys): { masterKeyId: string } | { problem: string } => {
  try {
    return { masterKeyId: newestOf(read()).id };
  } catch (error) {
    return { problem: isAppError(error) ? error.code : 'CREDENTIAL.NO_MASTER_KEY' };
  }
};
