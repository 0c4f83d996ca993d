import type { FileEntryView } from '@antiphon/contracts/agent';
import { comparePaths } from '@antiphon/files-domain';
import type { FileEntry, FileTree } from '@antiphon/files-domain';

// A spread takes several times as long, and a list has thousands of files.
export const viewOf = ({
  path,
  digest,
  size,
  mode,
  version,
  changedAt,
  changedBy,
}: FileEntry): FileEntryView & { digest: string } => ({
  path,
  digest,
  size,
  mode,
  version,
  changedAt,
  changedBy,
  kind: 'file',
  is_virtual: false,
});

const sorted = new WeakMap<FileTree, readonly FileEntry[]>();
/** Returns the files of a tree by path. A tree never changes, so its files are sorted once. */
export const filesByPath = (tree: FileTree): readonly FileEntry[] => {
  const known = sorted.get(tree) ?? [...tree.files.values()].sort((a, b) => comparePaths(a.path, b.path));
  sorted.set(tree, known);
  return known;
};
