import { outsideRepositories, unsafePartOf } from '@antiphon/files-domain';
import type { DiskDifference, FileCommand, FileContent, FileEntry, FileTree } from '@antiphon/files-domain';
import type { DiskContent } from './disk-state.js';

/** Returns what this program may have written at a path. */
export type Written = (path: string) => readonly (DiskContent | null)[];

export type Foreign = Extract<DiskDifference, { kind: 'outside' | 'conflict' }>;

export const contentOf = (file: FileContent | null | undefined): DiskContent | null =>
  file ? { digest: file.digest, size: file.size, mode: file.mode } : null;

/** Mode of the files of a folder: a person decides what is run. */
const PLAIN_MODE = 0o644;

interface Plainness {
  /** False before the first round of a version that writes no executable file. */
  readonly isPlain: boolean;
}

/** Decides which files of a tree are in its folder, and with which mode. */
export class TreeCopy {
  /** Files whose names were compared with the list of unsafe ones. */
  private readonly safe = new WeakMap<FileEntry, boolean>();

  constructor(private readonly keepsExecutable: boolean) {}

  /** Returns the part of a tree that may be in the folder, with the modes that it has there. */
  treeOf(tree: FileTree): FileTree {
    const files = new Map<string, FileEntry>();
    const isAllowed = this.allowedIn(tree);
    for (const file of tree.files.values()) if (isAllowed(file)) files.set(file.path, this.plain(file));
    return { ...tree, files };
  }

  /** Returns the paths of a tree that are in no folder. */
  leftOut(tree: FileTree): string[] {
    const isAllowed = this.allowedIn(tree);
    return [...tree.files.values()].filter((file) => !isAllowed(file)).map(({ path }) => path);
  }

  /** Returns which files of a tree may be in the folder (`unsafe-names.ts`). */
  allowedIn({ names }: FileTree): (file: FileEntry) => boolean {
    const isOutside = outsideRepositories(names);
    return (file) => {
      const isSafe = this.safe.get(file) ?? unsafePartOf(file.path) === null;
      this.safe.set(file, isSafe);
      return isSafe && isOutside(file.path);
    };
  }

  /**
   * Returns the contents that this program may have written, as the folder shows them. Before the
   * first round of this version they include those of the tree with their own modes.
   */
  written(contents: Written, { files }: FileTree, { isPlain }: Plainness): Written {
    return (path) => {
      const own = contents(path);
      const plain = own.map((content) => content && this.plain(content));
      return isPlain ? plain : [...plain, ...own, contentOf(files.get(path))];
    };
  }

  /**
   * Leaves out the executable bit of files that a person made executable in the folder: it is no
   * change of the file. One that an earlier version of this program set is kept, so that the file
   * is written again without it.
   */
  diskOf(
    disk: ReadonlyMap<string, FileContent>,
    written: Written,
    { isPlain }: Plainness,
  ): ReadonlyMap<string, FileContent> {
    if (this.keepsExecutable) return disk;
    const isOurs = (path: string, { digest, mode }: FileContent): boolean =>
      !isPlain && written(path).some((content) => content?.digest === digest && content.mode === mode);
    return new Map(
      [...disk].map(([path, content]) => [path, isOurs(path, content) ? content : this.plain(content)]),
    );
  }

  /**
   * Returns the commands for a change of another program. A conflict keeps the version of the tree
   * under another name.
   */
  commandsOf(change: Foreign, { files }: FileTree): FileCommand[] {
    // The folder does not show whether the tree has the file as executable.
    const known = this.keepsExecutable ? undefined : files.get(change.path)?.mode;
    const content = contentOf(change.file);
    const file = content && { ...content, mode: known ?? content.mode };
    const outside: FileCommand = { op: 'outside', path: change.path, file };
    if (change.kind === 'outside') return [outside];
    const { digest, size, mode } = change.kept;
    const kept = { digest, size, mode: known ?? mode, expect: null };
    return [outside, { op: 'write', path: change.keepAs, ...kept }];
  }

  private plain<T extends FileContent>(content: T): T {
    return this.keepsExecutable || content.mode === PLAIN_MODE ? content : { ...content, mode: PLAIN_MODE };
  }
}
