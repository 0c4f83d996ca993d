import { inTransaction } from '@antiphon/database';
import {
  appendRoots,
  findFirstUse,
  findNewestRoot,
  isTreeRoot,
  readLogState,
  readRootFile,
  readStoredRoots,
  sortBySignature,
  storeRoot,
  verifyRecordChain,
} from '@antiphon/event-store';
import type { SignedRoot, SignedTreeRoot, SigningKeys } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';

export interface RootHistoryOptions {
  readonly pool: pg.Pool;
  readonly keys: SigningKeys;
  readonly rootsFile: string;
  readonly logger: Logger;
}

/** Signed history that a new root continues. */
export interface RootHistory {
  readonly newest: SignedTreeRoot | null;
  /** Record before the newest one. */
  readonly before: SignedTreeRoot | null;
  /** Newest root of format 1, which covers no tree. */
  readonly old: SignedRoot | null;
  readonly stored: readonly SignedTreeRoot[];
}

/** Reason for which no root may be signed. */
export interface RootRefusal {
  readonly reason: string;
  readonly position: number;
}

const REMEDY =
  'put your copy of the file back, or run `antiphon roots adopt` (in a container `node start.mjs adopt-roots`)';

/**
 * Returns the reason for which a signer without a file of roots must not sign. The owner of the
 * database can remove the newest rows of the table.
 */
const refuseWithoutFile = async (
  { pool, rootsFile }: RootHistoryOptions,
  newest: SignedTreeRoot | null,
): Promise<RootRefusal | null> => {
  const early = await inTransaction(pool, async (client) => {
    const { base, position } = await readLogState(client);
    return base > 0 ? { position: base } : findFirstUse(client, position);
  });
  if (early === null) return null;
  const reason =
    newest === null
      ? `the log has events since position ${early.position}, and no signed root covers them: ${REMEDY}`
      : `${rootsFile} has no root, and the table log_roots alone does not prove which record is the newest: ${REMEDY}`;
  return { reason, position: early.position };
};

const completeBoth = async (
  { pool, rootsFile }: RootHistoryOptions,
  newest: SignedTreeRoot,
  file: readonly SignedRoot[],
  rows: readonly SignedRoot[],
): Promise<void> => {
  const known = findNewestRoot(file)?.number ?? 0;
  await appendRoots(
    rootsFile,
    rows.filter(isTreeRoot).filter(({ number }) => number > known),
  );
  await storeRoot(pool, newest);
};

/**
 * Reads the records of the file and the table, and completes each from the other. Returns the
 * reason where they cannot be continued.
 */
export const loadRootHistory = async (options: RootHistoryOptions): Promise<RootHistory | RootRefusal> => {
  const { pool, rootsFile, keys, logger } = options;
  const [file, rows] = [await readRootFile(rootsFile), await readStoredRoots(pool)];
  if (file.badLines.length > 0)
    logger.error({ file: rootsFile, lines: file.badLines.slice(0, 10) }, 'log root lines damaged');
  const { trusted, forged } = sortBySignature([...file.roots, ...rows], keys.publicKeys);
  if (forged.length > 0) logger.error({ roots: forged.length }, 'log roots with foreign signatures');
  if (forged.some(isTreeRoot) && !trusted.some(isTreeRoot))
    return {
      reason:
        'no signed root is of a trusted key: append its public key to the key file, or run `antiphon restore --adopt --allow-unsigned`',
      position: 0,
    };
  const [broken] = verifyRecordChain(trusted);
  if (broken) return { reason: broken.reason, position: broken.root.position };
  const newest = findNewestRoot(trusted);
  const own = sortBySignature(file.roots, keys.publicKeys).trusted;
  const refusal = own.length === 0 ? await refuseWithoutFile(options, newest) : null;
  if (refusal) return refusal;
  if (newest) await completeBoth(options, newest, file.roots, rows);
  const stored = trusted.filter(isTreeRoot);
  return {
    newest,
    before:
      stored.find(({ number, epoch }) => number + 1 === newest?.number && epoch === newest.epoch) ?? null,
    old: trusted.filter((root) => !isTreeRoot(root)).at(-1) ?? null,
    stored: stored.filter(({ epoch }) => epoch === newest?.epoch),
  };
};
