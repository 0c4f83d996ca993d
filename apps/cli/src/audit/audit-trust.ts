import { createPrivateKey, createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseCheckpoint } from '@antiphon/audit-features';
import type { AuditCheckpoint, SignedAuditCheckpoint, TrustedRoots } from '@antiphon/audit-features';
import { signContent } from '@antiphon/event-store';
import type { SignedLogRoot } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { homeOf } from '../connection/gateway-address.js';
import { rootsFile } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';

type Location = Pick<CommandContext, 'env' | 'cwd'>;

export interface TrustOptions {
  readonly roots?: string;
  readonly key?: string;
}

/** Maximum number of roots that an audit verifies, newest first; each costs a little time. */
const MAX_ROOTS = 64;

const readText = (file: string, what: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw invalid('CLI.USAGE', `${what} ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
};

const keyFileOf = ({ key }: TrustOptions, { env, cwd }: Location): string =>
  key ??
  (env['ANTIPHON_LOG_SIGNING_KEY_FILE'] || undefined) ??
  join(homeOf(env, cwd), 'credentials', 'log-signing.key');

const readKey = <T>(file: string, parse: (pem: string) => T): T => {
  const pem = readText(file, 'the key');
  try {
    return parse(pem);
  } catch {
    throw invalid('CLI.USAGE', `the key ${file} is not an Ed25519 key in PEM`);
  }
};

const readRoots = (file: string): SignedLogRoot[] => {
  const lines = readText(file, 'the roots').split('\n').filter(Boolean).slice(-MAX_ROOTS);
  try {
    return lines.map((line) => JSON.parse(line) as SignedLogRoot);
  } catch (cause) {
    throw invalid('CLI.USAGE', `${file} is not a file of signed roots: ${(cause as Error).message}`, {
      cause,
    });
  }
};

/**
 * Returns the signed roots and the public key: the named files, else those of this home, else none.
 */
export const findTrust = (options: TrustOptions, location: Location): TrustedRoots => {
  const file = options.roots ?? rootsFile(location);
  const keyFile = keyFileOf(options, location);
  const isNamed = options.roots !== undefined || options.key !== undefined;
  return {
    publicKey: isNamed || existsSync(keyFile) ? readKey(keyFile, (pem) => createPublicKey(pem)) : null,
    roots: options.roots !== undefined || existsSync(file) ? readRoots(file) : [],
  };
};

/** Checkpoint file: each audit starts at the last one's end and replaces it. */
export interface CheckpointFile {
  /** Null when the file does not exist yet. */
  readonly since: SignedAuditCheckpoint | null;
  write(checkpoint: AuditCheckpoint): void;
}

/**
 * Opens a checkpoint file with the private key. Throws `AUDIT.BAD_CHECKPOINT` unless this key
 * signed it.
 */
export const openCheckpoint = (file: string, options: TrustOptions, location: Location): CheckpointFile => {
  const key: KeyObject = readKey(keyFileOf(options, location), (pem) => createPrivateKey(pem));
  const since = existsSync(file)
    ? parseCheckpoint(readText(file, 'the checkpoint'), createPublicKey(key))
    : null;
  return {
    since,
    write: (checkpoint) => {
      // Atomic: the next audit would refuse a truncated checkpoint.
      writeFileSync(`${file}.new`, `${JSON.stringify(signContent(checkpoint, key))}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
  };
};
