import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { parseCheckpoint } from '@antiphon/audit-features';
import type { AuditCheckpoint, SignedAuditCheckpoint, TrustedRoots } from '@antiphon/audit-features';
import { parseRootLines, signContent } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { findPublicKeys, findSigningKeys } from '../connection/signing-keys.js';
import { rootsFile } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';

type Location = Pick<CommandContext, 'env' | 'cwd'>;

export interface TrustOptions {
  readonly roots?: string;
  readonly key?: string;
}

const readText = (file: string, what: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw invalid('CLI.USAGE', `${what} ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
};

/**
 * Returns the signed roots and the public keys: the named files, else those of this home, else
 * none. A line that is not a signed root is a finding of the audit.
 */
export const findTrust = (options: TrustOptions, location: Location): TrustedRoots => {
  const file = options.roots ?? rootsFile(location);
  const hasRoots = options.roots !== undefined || existsSync(file);
  const { roots, badLines } = parseRootLines(hasRoots ? readText(file, 'the roots') : '');
  return {
    publicKeys: findPublicKeys(options.key, location),
    roots,
    damaged: badLines.map((line) => `line ${line} of ${file}`),
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
  const keys = findSigningKeys(options.key, location);
  if (keys === null) throw invalid('CLI.USAGE', 'a checkpoint is signed: name the private key with --key');
  const key = keys.privateKey;
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
