import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { cp, readdir } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { UserError } from '@antiphon/bootstrap/user-error';

/** PostgreSQL refuses to run as root; `nobody` is on every system, and owns nothing else here. */
export interface UnprivilegedUser {
  readonly uid: number;
  readonly gid: number;
}

const NOBODY: UnprivilegedUser = { uid: 65_534, gid: 65_534 };

/** Whom PostgreSQL has to run as: null for ourselves. */
export const databaseUser = (): UnprivilegedUser | null => (process.getuid?.() === 0 ? NOBODY : null);

const SEARCH = { owner: 0o100, group: 0o010, others: 0o001 } as const;

const maySearch = (folder: string, { uid, gid }: UnprivilegedUser): boolean => {
  const { mode, uid: owner, gid: group } = statSync(folder);
  const bit = owner === uid ? SEARCH.owner : group === gid ? SEARCH.group : SEARCH.others;
  return (mode & bit) !== 0;
};

/** Whether that user can reach an existing folder: every folder on the way, and itself, lets it pass. */
export const canReach = (folder: string, user: UnprivilegedUser): boolean =>
  maySearch(folder, user) && (dirname(folder) === folder || canReach(dirname(folder), user));

const isOursAlone = (folder: string): boolean => {
  const { uid, mode } = statSync(folder);
  return uid === process.getuid?.() && (mode & 0o022) === 0;
};

/**
 * A folder of root's that every user can pass through, for what cannot lie in the home or the cache because those are
 * shut to everyone else (as `/root` is): `/var/lib/antiphon`, else one in the system's folder for temporary files.
 */
export const sharedFolder = (): string => {
  const problems: string[] = [];
  for (const folder of ['/var/lib/antiphon', join(tmpdir(), 'antiphon-root')]) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o711 });
      if (!isOursAlone(folder)) throw new Error('it belongs to somebody else');
      chmodSync(folder, 0o711);
      if (canReach(folder, NOBODY)) return folder;
      throw new Error('it cannot be reached by other users');
    } catch (error) {
      problems.push(`${folder}: ${(error as Error).message}`);
    }
  }
  throw new UserError(
    `there is no folder that both root and the user of PostgreSQL can use (${problems.join('; ')}).\n` +
      'What to do: set ANTIPHON_HOME and ANTIPHON_CACHE to folders that every user can pass through (mode 711), or start as another user than root.',
  );
};

const openToAll = async (folder: string): Promise<void> => {
  chmodSync(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile())
      chmodSync(path, statSync(path).mode | ((statSync(path).mode & 0o100) !== 0 ? 0o055 : 0o044));
  }
};

const contentKey = (program: string): string =>
  createHash('sha256').update(readFileSync(program)).digest('hex').slice(0, 12);

/**
 * Where programs lie that this user can run: `bin` itself, or in a copy of the tree that it is part of, which every
 * home and cache with the same programs shares.
 */
export const runnableCopy = async (
  bin: string,
  version: string,
  user: UnprivilegedUser | null,
): Promise<string> => {
  if (user === null || canReach(bin, user)) return bin;
  const target = join(sharedFolder(), `postgres-${version}-${contentKey(join(bin, 'postgres'))}`);
  if (!existsSync(target)) await copyTree(dirname(bin), target);
  return join(target, 'bin');
};

const copyTree = async (source: string, target: string): Promise<void> => {
  const aside = `${target}.${process.pid}.new`;
  rmSync(aside, { recursive: true, force: true });
  await cp(source, aside, { recursive: true, verbatimSymlinks: true });
  await openToAll(aside);
  try {
    renameSync(aside, target);
  } catch (error) {
    rmSync(aside, { recursive: true, force: true });
    // Another home's start was quicker; its copy is the same.
    if (!existsSync(target)) throw error;
  }
};

/** Makes a folder that belongs to this user alone. */
export const makeOwnedDir = (path: string, user: UnprivilegedUser | null): void => {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o700);
  if (user !== null) chownSync(path, user.uid, user.gid);
};
