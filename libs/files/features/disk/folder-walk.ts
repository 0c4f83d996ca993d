import { causedError } from '@antiphon/contracts/causes';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { lstat, mkdir, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { normalizePath } from '@antiphon/files-domain';
import { invalid, rejected } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
const IS_LINUX = process.platform === 'linux';

/** Returns the parts of a path below a root. Throws `FILE.INVALID_PATH`. */
export const splitSafePath = (path: string): string[] => {
  if (normalizePath(path) !== path)
    throw causedError(invalid, 'FILE.INVALID_PATH', { kind: 'file_path_not_nfc' });
  return path.split('/');
};

/** True for a path that `splitSafePath` accepts. */
export const isSafePath = (path: string): boolean => {
  try {
    return splitSafePath(path).length > 0;
  } catch {
    return false;
  }
};

/** An open directory. Names are resolved below its descriptor, never by its path again. */
export interface OpenFolder {
  readonly handle: FileHandle;
  readonly path: string;
}

/**
 * Returns the path of a name in an open directory. On Linux it goes by the descriptor: a link
 * that took the place of the directory since then is not followed.
 */
export const pathIn = ({ handle, path }: OpenFolder, name: string): string =>
  IS_LINUX ? `/proc/self/fd/${handle.fd}/${name}` : join(path, name);

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

export const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT';

/** True for an error that says that a component is a link or not a directory. */
const isLinkError = (error: unknown): boolean => ['ELOOP', 'ENOTDIR', 'EMLINK'].includes(codeOf(error) ?? '');

export const refuseLink = (path: string): AppError =>
  causedError(rejected, 'FILE.NOT_PLAIN', { kind: 'file_not_plain', path }, { path });

/** Opens a directory that must not be a link. */
export const openFolder = async (path: string, shown = path): Promise<OpenFolder> => {
  try {
    return { handle: await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), path: shown };
  } catch (error) {
    throw isLinkError(error) ? refuseLink(shown) : error;
  }
};

/**
 * Opens the folder of a path's last part, one component after another without following a link.
 * Creates missing folders if asked, with mode 700. Throws `FILE.NOT_PLAIN`, or ENOENT.
 */
export const walk = async (
  root: OpenFolder,
  folders: readonly string[],
  options: { readonly create: boolean },
): Promise<OpenFolder> => {
  let current: OpenFolder = { handle: await reopen(root), path: root.path };
  for (const name of folders) {
    const next = pathIn(current, name);
    const shown = join(current.path, name);
    try {
      if (options.create)
        await mkdir(next, { mode: 0o700 }).catch((error: unknown) => {
          if (codeOf(error) !== 'EEXIST') throw error;
        });
      const opened = await openFolder(next, shown);
      await current.handle.close();
      current = opened;
    } catch (error) {
      await current.handle.close();
      throw error;
    }
  }
  return current;
};

const reopen = (folder: OpenFolder): Promise<FileHandle> =>
  open(IS_LINUX ? `/proc/self/fd/${folder.handle.fd}` : folder.path, O_RDONLY | O_DIRECTORY);

/** True for a regular file with one name. */
export const isPlainFile = (stats: Stats): boolean => stats.isFile() && stats.nlink === 1;

/** Returns the state of a name in an open directory, without following it; null if it is missing. */
export const statIn = (folder: OpenFolder, name: string): Promise<Stats | null> =>
  lstat(pathIn(folder, name)).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });

/** Runs work with the folder of a path and closes it. */
export const using = async <T>(folder: OpenFolder, work: (folder: OpenFolder) => Promise<T>): Promise<T> => {
  try {
    return await work(folder);
  } finally {
    await folder.handle.close();
  }
};
