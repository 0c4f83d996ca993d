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

type Environment = Readonly<Record<string, string | undefined>>;

export interface TrustOptions {
  readonly roots?: string;
  readonly key?: string;
}

/** The newest roots of a file that are held against the log; each more costs the audit a little time. */
const MAX_ROOTS = 64;

const readOr = (file: string, what: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw invalid('CLI.USAGE', `${what} ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
};

const keyFileOf = ({ key }: TrustOptions, env: Environment, cwd: string): string =>
  key ??
  (env['ANTIPHON_LOG_SIGNING_KEY_FILE'] || undefined) ??
  join(homeOf(env, cwd), 'credentials', 'log-signing.key');

const toKey = <T>(file: string, make: (pem: string) => T): T => {
  const pem = readOr(file, 'the key');
  try {
    return make(pem);
  } catch {
    throw invalid('CLI.USAGE', `the key ${file} is not an Ed25519 key in PEM`);
  }
};

const rootsIn = (file: string): SignedLogRoot[] => {
  const lines = readOr(file, 'the roots').split('\n').filter(Boolean).slice(-MAX_ROOTS);
  try {
    return lines.map((line) => JSON.parse(line) as SignedLogRoot);
  } catch (cause) {
    throw invalid('CLI.USAGE', `${file} is not a file of signed roots: ${(cause as Error).message}`, {
      cause,
    });
  }
};

/**
 * Signed roots and the key to trust: those that were named, else those of this home; none where there are none.
 * Read before the audit begins, so that no root is newer than what it reads.
 */
export const findTrust = (options: TrustOptions, env: Environment, cwd: string): TrustedRoots => {
  const file =
    options.roots ??
    (env['ANTIPHON_LOG_ROOTS_FILE'] || undefined) ??
    join(homeOf(env, cwd), 'log-roots.jsonl');
  const keyFile = keyFileOf(options, env, cwd);
  const isNamed = options.roots !== undefined || options.key !== undefined;
  return {
    publicKey: isNamed || existsSync(keyFile) ? toKey(keyFile, (pem) => createPublicKey(pem)) : null,
    roots: options.roots !== undefined || existsSync(file) ? rootsIn(file) : [],
  };
};

/** A file that audits go on from, and leave where they ended. */
export interface CheckpointFile {
  /** Null when there is none yet. */
  readonly since: SignedAuditCheckpoint | null;
  write(checkpoint: AuditCheckpoint): void;
}

/** Needs the private key. Throws `AUDIT.BAD_CHECKPOINT` for a file that does not hold what this key signed. */
export const openCheckpoint = (
  file: string,
  options: TrustOptions,
  env: Environment,
  cwd: string,
): CheckpointFile => {
  const key: KeyObject = toKey(keyFileOf(options, env, cwd), (pem) => createPrivateKey(pem));
  const since = existsSync(file)
    ? parseCheckpoint(readOr(file, 'the checkpoint'), createPublicKey(key))
    : null;
  return {
    since,
    write: (checkpoint) => {
      // Whole or not at all: a checkpoint that was cut would only be refused.
      writeFileSync(`${file}.new`, `${JSON.stringify(signContent(checkpoint, key))}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
  };
};
