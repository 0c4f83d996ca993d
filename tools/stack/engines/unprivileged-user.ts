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

/**
 * User of PostgreSQL, which refuses to run as root. Every system has this uid without files of its
 * own.
 */
export interface UnprivilegedUser {
  readonly uid: number;
  readonly gid: number;
}

const UNPRIVILEGED: UnprivilegedUser = { uid: 65_534, gid: 65_534 };

/** Returns the user of PostgreSQL, or null for the current one. */
export const databaseUser = (): UnprivilegedUser | null => (process.getuid?.() === 0 ? UNPRIVILEGED : null);

const SEARCH = { owner: 0o100, group: 0o010, others: 0o001 } as const;

const canSearch = (folder: string, { uid, gid }: UnprivilegedUser): boolean => {
  const { mode, uid: owner, gid: group } = statSync(folder);
  const bit = owner === uid ? SEARCH.owner : group === gid ? SEARCH.group : SEARCH.others;
  return (mode & bit) !== 0;
};

/** Returns true if the user may search an existing folder and all of its parents. */
export const canReach = (folder: string, user: UnprivilegedUser): boolean =>
  canSearch(folder, user) && (dirname(folder) === folder || canReach(dirname(folder), user));

const isOursAlone = (folder: string): boolean => {
  const { uid, mode } = statSync(folder);
  return uid === process.getuid?.() && (mode & 0o022) === 0;
};

/** Folder of root for files that a restart of the machine may delete. */
const TEMPORARY = join(tmpdir(), 'antiphon-root');
/** Folders of root for data, in order of preference. */
const DURABLE = ['/var/lib/antiphon', '/srv/antiphon', '/opt/antiphon'];

/** Returns true for a folder below one that the system empties, such as `/tmp`. */
export const isTemporary = (folder: string, temporary: readonly string[] = TEMPORARY_FOLDERS): boolean =>
  temporary.some((parent) => folder === parent || folder.startsWith(`${parent}/`));
const TEMPORARY_FOLDERS = [...new Set([tmpdir(), '/tmp', '/var/tmp', '/dev/shm', '/run'])];

/**
 * Returns the first of these folders that is root's and that every user can search. It is for homes
 * and caches that other users cannot reach (below `/root`).
 */
export const sharedFolder = (candidates: readonly string[]): string => {
  const problems: string[] = [];
  for (const folder of candidates) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o711 });
      if (!isOursAlone(folder)) throw new Error('it belongs to another user');
      chmodSync(folder, 0o711);
      if (canReach(folder, UNPRIVILEGED)) return folder;
      throw new Error('it cannot be reached by other users');
    } catch (error) {
      problems.push(`${folder}: ${(error as Error).message}`);
    }
  }
  throw new UserError(
    `there is no folder that both root and the user of PostgreSQL can use (${problems.join('; ')}).\n` +
      'What to do: set ANTIPHON_HOME and ANTIPHON_CACHE to folders that every user can search (mode 711), or start as another user than root.',
  );
};

/** Returns the shared folder for data, which is never one for temporary files. */
export const sharedDataFolder = (): string => sharedFolder(DURABLE);

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
 * Returns a folder whose programs this user can run. It is `bin`, or a copy of its tree that all
 * homes and caches with the same programs share.
 */
export const runnableCopy = async (
  bin: string,
  version: string,
  user: UnprivilegedUser | null,
): Promise<string> => {
  if (user === null || canReach(bin, user)) return bin;
  const target = join(
    sharedFolder([DURABLE[0] ?? TEMPORARY, TEMPORARY]),
    `postgres-${version}-${contentKey(join(bin, 'postgres'))}`,
  );
  if (!existsSync(target)) await copyTree(dirname(bin), target);
  return join(target, 'bin');
};

const copyTree = async (source: string, target: string): Promise<void> => {
  const temporary = `${target}.${process.pid}.new`;
  rmSync(temporary, { recursive: true, force: true });
  await cp(source, temporary, { recursive: true, verbatimSymlinks: true });
  await openToAll(temporary);
  try {
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    // Another home's start has made the same copy.
    if (!existsSync(target)) throw error;
  }
};

/** Creates a folder that only this user can read. */
export const makeOwnedDir = (path: string, user: UnprivilegedUser | null): void => {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o700);
  if (user !== null) chownSync(path, user.uid, user.gid);
};
