import type { Stats } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isBareRepository, isPartOfRepository, programOfName } from '@antiphon/files-domain';
import { COPY_MARK } from './copy-mark.js';
import { isPlainFile, isSafePath, openFolder, pathIn, statIn, using, walk } from './folder-walk.js';
import type { OpenFolder } from './folder-walk.js';

/** Bits of a mode that a tree stores. */
export const MODE_BITS = 0o777;
/** Replaces bytes of a name that are not UTF-8. */
const NOT_UTF8 = '\u{fffd}';

/** State of a file on the disk. It changes with each change of the file. */
export interface FileStamp {
  readonly size: number;
  readonly mode: number;
  /** Inode, size, and times of the last change of content and of state. */
  readonly stamp: string;
  /** Time of the last change of content or of state, ms. */
  readonly changedAt: number;
}

export interface ListedFile extends FileStamp {
  readonly path: string;
}

/** Plain files of a folder, and refused entries: links, hard links, special files and unsafe names. */
export interface FolderListing {
  readonly files: readonly ListedFile[];
  readonly refused: readonly string[];
}

export const stampOf = (stats: Stats): FileStamp => ({
  size: stats.size,
  mode: stats.mode & MODE_BITS,
  changedAt: stats.ctimeMs,
  stamp: `${stats.ino}/${stats.size}/${stats.mtimeMs}/${stats.ctimeMs}`,
});

/** Lists every file below a root in the order of paths. */
export const listFolder = async (root: OpenFolder): Promise<FolderListing> => {
  const files: ListedFile[] = [];
  const refused: string[] = [];
  const visitFolder = async (folder: OpenFolder, name: string, path: string): Promise<void> => {
    const opened = await openFolder(pathIn(folder, name), join(folder.path, name)).catch(() => null);
    if (opened === null) refused.push(path);
    else await using(opened, (inner) => visit(inner, `${path}/`));
  };
  const visit = async (folder: OpenFolder, prefix: string): Promise<void> => {
    const names = (await readdir(pathIn(folder, '.'))).sort();
    const lower = new Set(names.map((name) => name.toLowerCase()));
    const isRepository = isBareRepository((name) => lower.has(name));
    for (const name of names) {
      const path = prefix + name;
      if (path === COPY_MARK) continue;
      const stats = await statIn(folder, name);
      // Neither read nor removed: a repository that a person made here stays as it is.
      if (programOfName(name) !== null || (isRepository && isPartOfRepository(name))) refused.push(path);
      else if (stats === null ? name.includes(NOT_UTF8) : !isSafePath(path)) refused.push(path);
      else if (stats?.isDirectory()) await visitFolder(folder, name, path);
      else if (stats && isPlainFile(stats)) files.push({ path, ...stampOf(stats) });
      else if (stats) refused.push(path);
    }
  };
  await using(await walk(root, [], { create: false }), (folder) => visit(folder, ''));
  return { files, refused };
};
