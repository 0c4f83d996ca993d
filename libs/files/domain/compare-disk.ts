import type { FileEntry, FileTree } from './file-tree.js';
import { comparePaths, foldersOf } from './file-path.js';

/** Content of a file on the disk or in a tree. */
export type FileContent = Pick<FileEntry, 'digest' | 'size' | 'mode'>;

/**
 * Difference between a tree and its folder:
 * - `write`, `remove`: the tree is newer, and the folder has what this program wrote.
 * - `outside`: another program changed, created or removed (null) the file.
 * - `conflict`: the tree and another program changed the file. The tree's version goes to `keepAs`.
 * - `blocked`: the tree is newer, but the folder has a link or a special file there.
 */
export type DiskDifference =
  | {
      readonly kind: 'write';
      readonly path: string;
      readonly file: FileEntry;
      readonly present: FileContent | null;
    }
  | { readonly kind: 'remove'; readonly path: string; readonly present: FileContent }
  | { readonly kind: 'outside'; readonly path: string; readonly file: FileContent | null }
  | {
      readonly kind: 'conflict';
      readonly path: string;
      readonly file: FileContent;
      readonly kept: FileEntry;
      readonly keepAs: string;
    }
  | { readonly kind: 'blocked'; readonly path: string };

export interface DiskComparison {
  readonly tree: FileTree;
  /** Plain files of the folder, by path. */
  readonly disk: ReadonlyMap<string, FileContent>;
  /** Entries that are links, special files or unreadable. They and all below stay as they are. */
  readonly refused: ReadonlySet<string>;
  /**
   * Contents that this program may have written at a path, null for no file. The first one was
   * there when tree and folder were equal; a second one is of an interrupted round.
   */
  readonly written: (path: string) => readonly (FileContent | null)[];
}

const isSame = (a: FileContent | null | undefined, b: FileContent | null | undefined): boolean =>
  (a ?? null) === null || (b ?? null) === null
    ? (a ?? null) === (b ?? null)
    : a?.digest === b?.digest && a?.mode === b?.mode;

const MAX_TRIES = 1_000;
const MAX_STEM = 180;

/** Returns a free path that names the version which a conflict keeps. */
export const conflictPath = (path: string, version: number, isUsed: (path: string) => boolean): string => {
  const slash = path.lastIndexOf('/') + 1;
  const name = path.slice(slash);
  const dot = name.lastIndexOf('.');
  const end = dot > 0 && name.length - dot <= 16 ? dot : name.length;
  const stem = [...name.slice(0, end)].slice(0, MAX_STEM).join('');
  for (let number = 1; number <= MAX_TRIES; number++) {
    const label = number === 1 ? `conflict ${version}` : `conflict ${version}-${number}`;
    const candidate = `${path.slice(0, slash)}${stem} (${label})${name.slice(end)}`;
    if (!isUsed(candidate)) return candidate;
  }
  return `${path.slice(0, slash)}conflict-${version}`;
};

/** True if the tree still has what this program wrote last, so that only the folder changed. */
const isLatest = (path: string, { tree, written }: DiskComparison): boolean => {
  const [last] = written(path);
  return last !== undefined && isSame(last, tree.files.get(path));
};

const compareOne = (path: string, comparison: DiskComparison): DiskDifference | null => {
  const { tree, disk, written } = comparison;
  const present = disk.get(path) ?? null;
  const file = tree.files.get(path) ?? null;
  if (isSame(present, file)) return null;
  const isOurs = written(path).some((content) => isSame(content, present));
  if (isOurs) {
    if (file) return { kind: 'write', path, file, present };
    return present && { kind: 'remove', path, present };
  }
  if (file === null || isLatest(path, comparison)) return { kind: 'outside', path, file: present };
  if (present === null) return { kind: 'write', path, file, present };
  const isUsed = (name: string): boolean => tree.files.has(name) || disk.has(name);
  const keepAs = conflictPath(path, file.version, isUsed);
  return { kind: 'conflict', path, file: present, kept: file, keepAs };
};

/** Compares a tree with its folder. Returns the differences in the order of paths. */
export const compareDisk = (comparison: DiskComparison): DiskDifference[] => {
  const { tree, disk, refused } = comparison;
  const paths = [...new Set([...tree.files.keys(), ...disk.keys()])].sort(comparePaths);
  return paths.flatMap((path) => {
    const isRefused = refused.has(path) || foldersOf(path).some((folder) => refused.has(folder));
    if (isRefused) return isLatest(path, comparison) ? [] : [{ kind: 'blocked', path }];
    const difference = compareOne(path, comparison);
    return difference === null ? [] : [difference];
  });
};
