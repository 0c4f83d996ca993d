import { hostname, userInfo } from 'node:os';
import { inTransaction } from '@antiphon/database';
import { conflict, invalid } from '@antiphon/kernel';
import type pg from 'pg';
import { LogTree } from './log-tree.js';
import { growTree, type LogState, readLogState } from './read-leaves.js';
import { appendRoots, readRootFile, readStoredRoots, storeRoot } from './root-store.js';
import { findEarlyEvent, findFirstUse, findRootsBegin } from './roots-begin.js';
import {
  findNewestRoot,
  hashRecord,
  isTreeRoot,
  type SignedRoot,
  type SignedTreeRoot,
  sortBySignature,
  type TreeRoot,
  verifyRecordChain,
} from './signed-root.js';
import { signContent, type SigningKeys } from './signing-key.js';

export interface AdoptRootsOptions {
  /** Reads the events of all workspaces and writes the table of roots. */
  readonly pool: pg.Pool;
  readonly keys: SigningKeys;
  readonly rootsFile: string;
  /** Operator who adopts the log. */
  readonly actor: string;
  readonly reason: string;
  /** Also adopts where the roots begin with the log, such as after a clock was wrong. */
  readonly isForced?: boolean;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** Returns the user of this process, as the name of the operator who adopts. */
export const currentOperator = (): string => {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // A user id without an entry in the container's list of users.
    return `uid ${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
};

const MAX_ACTOR = 200;
const MAX_REASON = 1_000;

const differs = (reason: string) =>
  conflict(
    'LOG.ROOTS_DIFFER',
    `the log is not what its roots signed: ${reason}. What to do: run \`antiphon audit\`, and restore a backup; adopt a database that another tool restored with \`antiphon restore --adopt\``,
  );

/** Throws `LOG.NOTHING_TO_ADOPT` where the file has the roots from the begin of the log. */
const requireGap = async (
  client: pg.ClientBase,
  { file, trusted }: { readonly file: readonly SignedRoot[]; readonly trusted: readonly SignedRoot[] },
  { base, position }: LogState,
): Promise<void> => {
  const begin = findRootsBegin(trusted);
  const isLost = file.length === 0 || begin === null;
  const early = isLost ? await findFirstUse(client, position) : await findEarlyEvent(client, begin);
  if (early !== null || (isLost && base > 0)) return;
  throw conflict(
    'LOG.NOTHING_TO_ADOPT',
    'the signed roots cover the log from its first event, so there is nothing to adopt',
  );
};

/** Reads the tree of the whole log, and compares it with every root of its base. */
const readTree = async (
  client: pg.ClientBase,
  trees: readonly SignedTreeRoot[],
  state: LogState,
): Promise<LogTree> => {
  const newest = findNewestRoot(trees);
  if (newest && newest.epoch !== state.epoch)
    throw differs(`it is of epoch ${state.epoch}, and no signed record continues epoch ${newest.epoch}`);
  if (newest && newest.position > state.position)
    throw differs(`it ends at position ${state.position}; a root was signed at position ${newest.position}`);
  const base = newest?.base ?? state.base;
  const isWhole = state.base <= base;
  const start = isWhole ? undefined : trees.find((root) => root.base === base && root.position >= state.base);
  if (!isWhole && start === undefined)
    throw differs(`events up to position ${state.base} are archived, and no root begins after them`);
  const tree = new LogTree(start ?? { base, position: base, peaks: [] });
  const broken = await growTree(client, tree, state.position, trees);
  if (broken) throw differs(broken.reason);
  return tree;
};

const requireText = (name: string, text: string, max: number): string => {
  const trimmed = text.trim();
  if (trimmed !== '' && trimmed.length <= max) return trimmed;
  throw invalid('LOG.BAD_ADOPTION', `${name} needs a text of 1 to ${max} characters`);
};

/**
 * Signs a record with which an operator accepts the log as it is: from this position on its roots
 * vouch for it. Needed where the file of roots was lost, or the roots began after the log. Rejects
 * with `LOG.NOTHING_TO_ADOPT`, and with `LOG.ROOTS_DIFFER` for a log that contradicts a known root.
 */
export const adoptRoots = async (options: AdoptRootsOptions): Promise<SignedTreeRoot> => {
  const { pool, keys, rootsFile, at } = options;
  const actor = requireText('the operator', options.actor, MAX_ACTOR);
  const reason = requireText('the reason', options.reason, MAX_REASON);
  const [file, rows] = [await readRootFile(rootsFile), await readStoredRoots(pool)];
  const own = sortBySignature(file.roots, keys.publicKeys).trusted;
  const { trusted } = sortBySignature([...file.roots, ...rows], keys.publicKeys);
  const [forked] = verifyRecordChain(trusted);
  if (forked) throw differs(forked.reason);
  const record = await inTransaction(pool, async (client) => {
    await client.query('set transaction isolation level repeatable read, read only');
    const state = await readLogState(client);
    const trees = trusted.filter(isTreeRoot);
    const last = findNewestRoot(trees) ?? trusted.at(-1) ?? null;
    const tree = await readTree(client, trees, state);
    if (!options.isForced) await requireGap(client, { file: own, trusted }, state);
    const root: TreeRoot = {
      ...tree.save(),
      ...{ format: 2, kind: 'adoption', number: (findNewestRoot(trees)?.number ?? 0) + 1 },
      ...{ epoch: state.epoch, root: tree.hash(), previous: last && hashRecord(last), at },
      ...{ continues: null, reason, actor },
    };
    return signContent(root, keys.privateKey);
  });
  await storeRoot(pool, record);
  const known = findNewestRoot(own)?.number ?? 0;
  const missing = sortBySignature(rows, keys.publicKeys)
    .trusted.filter(isTreeRoot)
    .filter(({ number }) => number > known);
  await appendRoots(rootsFile, [...missing, record]);
  return record;
};
