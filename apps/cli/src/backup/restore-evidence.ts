import { createHash } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { verifyRestoredLog } from '@antiphon/audit-features';
import type { BackupManifest } from '@antiphon/database';
import {
  appendRoots,
  canonicalJson,
  currentOperator,
  deleteForeignRoots,
  findNewestRoot,
  hasRootTable,
  hashPeaks,
  hashRecord,
  isSignedByAny,
  isTreeRoot,
  readRootFile,
  readStoredRoots,
  signContent,
  sortBySignature,
  storeRoot,
} from '@antiphon/event-store';
import type { SignedRoot, SignedTreeRoot, SigningKeys, TreeRoot } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import type pg from 'pg';
import { archiveFolder, rootsFile } from '../connection/stack-locations.js';
import { findPublicKeys, findSigningKeys } from '../connection/signing-keys.js';
import type { CommandContext } from '../output.js';

/** Options of a restore that concern signatures. */
export interface EvidenceOptions {
  readonly key?: string;
  readonly allowUnsigned?: boolean;
}

/** Keys and files with which a restore verifies a backup and signs its record. */
export interface RestoreEvidence {
  readonly publicKeys: readonly KeyObject[];
  readonly signing: SigningKeys | null;
  readonly rootsFile: string;
  readonly archives: string;
  readonly allowsUnsigned: boolean;
}

export const findEvidence = (context: CommandContext, options: EvidenceOptions): RestoreEvidence => ({
  publicKeys: findPublicKeys(options.key, context),
  signing: findSigningKeys(options.key, context),
  rootsFile: rootsFile(context),
  archives: archiveFolder(undefined, context),
  allowsUnsigned: options.allowUnsigned === true,
});

const describeFault = (signature: string | undefined, keys: number): string => {
  if (signature === undefined) return 'was not signed';
  return keys === 0 ? 'cannot be verified without a key' : 'was changed, or signed with another key';
};

/**
 * Throws `BACKUP.UNSIGNED` unless a trusted key signed the manifest. Without any key nothing can be
 * verified, so the operator must accept the backup with `--allow-unsigned`.
 */
export const checkManifestSignature = (
  manifest: BackupManifest<unknown>,
  { publicKeys, allowsUnsigned }: RestoreEvidence,
): void => {
  const { keyId, signature } = manifest;
  if (allowsUnsigned) return;
  if (
    keyId !== undefined &&
    signature !== undefined &&
    isSignedByAny({ ...manifest, keyId, signature }, publicKeys)
  )
    return;
  throw invalid(
    'BACKUP.UNSIGNED',
    `the manifest of the backup ${describeFault(signature, publicKeys.length)}. ` +
      'What to do: use another backup; or name the key that signed it with --key; or pass --allow-unsigned, which still verifies the log',
  );
};

/** Returns the highest epoch of the signed roots in the file; 0 without one. */
export const findSignedEpoch = async ({ rootsFile: file, publicKeys }: RestoreEvidence): Promise<number> => {
  const { trusted } = sortBySignature((await readRootFile(file)).roots, publicKeys);
  return Math.max(0, ...trusted.map(({ epoch }) => epoch));
};

/** Returns the reason of an epoch that a backup begins: it names the manifest by its SHA-256. */
export const describeBackup = (manifest: BackupManifest<unknown>): string =>
  `restore of ${createHash('sha256')
    .update(canonicalJson(manifest as unknown as JsonObject))
    .digest('hex')}`;

/** Record of a restore: the chain continues with it. Null where no key signs. */
export interface SignedRestore {
  readonly record: SignedTreeRoot | null;
  /** Position up to which a signed root covers the restored log; null without one. */
  readonly signedPosition: number | null;
}

const readKnownRoots = async (client: pg.ClientBase, old: string, file: string): Promise<SignedRoot[]> => [
  ...(await readRootFile(file)).roots,
  ...(await readStoredRoots(client, old)),
  ...(await readStoredRoots(client)),
];

const requireKey = (roots: readonly SignedRoot[], { signing, allowsUnsigned }: RestoreEvidence): void => {
  if (signing !== null || allowsUnsigned || !roots.some(isTreeRoot)) return;
  throw invalid(
    'BACKUP.KEY_MISSING',
    'this log is signed, and a restore signs the record of its new epoch. What to do: name the private key with --key or ANTIPHON_LOG_SIGNING_KEY_FILE',
  );
};

/**
 * Verifies the chains and roots of the restored log, before its epoch is raised. Returns a function
 * that signs and stores the record of the new epoch. Rejects with `BACKUP.FORGED`.
 */
export const verifyRestore = async (
  client: pg.ClientBase,
  old: string,
  evidence: RestoreEvidence,
): Promise<(epoch: number, reason: string, at: string) => Promise<SignedRestore>> => {
  const roots = await readKnownRoots(client, old, evidence.rootsFile);
  requireKey(roots, evidence);
  const trusted = sortBySignature(roots, evidence.publicKeys).trusted;
  const newest = findNewestRoot(trusted);
  const log = await verifyRestoredLog(client, {
    trusted: { publicKeys: evidence.publicKeys, roots: trusted },
    ...{ archives: evidence.archives, base: newest?.base ?? null },
  });
  if (log.first)
    throw invalid(
      'BACKUP.FORGED',
      `the backup is not the log that was signed: ${log.first.check}: ${log.first.message} (${log.first.streamId ?? 'position'} ${log.first.streamVersion ?? log.first.position ?? ''})`,
    );
  return async (epoch, reason, at) => {
    const signedPosition = log.signed?.position ?? null;
    if (evidence.signing === null) return { record: null, signedPosition };
    const root: TreeRoot = {
      ...log.tree,
      ...{
        format: 2,
        kind: 'epoch',
        number: (newest?.number ?? 0) + 1,
        epoch,
        root: hashPeaks(log.tree.peaks),
      },
      ...{
        previous: newest && hashRecord(newest),
        at,
        continues: log.epoch,
        reason,
        actor: currentOperator(),
      },
    };
    const record = signContent(root, evidence.signing.privateKey);
    // A backup of an older version has no table yet: the process that signs next stores the record.
    const hasTable = await hasRootTable(client);
    if (hasTable && evidence.allowsUnsigned) await deleteForeignRoots(client, evidence.publicKeys);
    const stored = hasTable ? [...trusted.filter(isTreeRoot), record] : [];
    for (const one of stored) await storeRoot(client, one);
    return { record, signedPosition };
  };
};

/** Appends the record of a restore to the file of roots, unless it is there. */
export const appendRestoreRecord = async (file: string, record: SignedTreeRoot | null): Promise<void> => {
  if (record === null) return;
  const { roots } = await readRootFile(file);
  if (!roots.some((root) => hashRecord(root) === hashRecord(record))) await appendRoots(file, [record]);
};
