import { causedError } from '@antiphon/contracts/causes';
import type { FileCause, FileQuotas, FileTreeEvent } from '@antiphon/contracts/agent';
import { assertNever, conflict, exhausted, notFound, rejected } from '@antiphon/kernel';
import { checkUnsafeNames } from './check-names.js';
import { foldCase, foldersOf, isBelow, isVirtualPath, normalizePath } from './file-path.js';
import { foldFileTree } from './file-tree.js';
import type { FileEntry, FileTree } from './file-tree.js';

/** Digest that a file must have before a change. Null: it must not exist. Absent: any. */
interface Expecting {
  readonly expect?: string | null | undefined;
}

export interface WriteFile extends Expecting {
  readonly op: 'write';
  readonly path: string;
  readonly digest: string;
  readonly size: number;
  readonly mode?: 0o644 | 0o755 | undefined;
}
export interface MoveFile extends Expecting {
  readonly op: 'move';
  readonly path: string;
  readonly to: string;
}
export interface DeleteFile extends Expecting {
  readonly op: 'delete';
  readonly path: string;
  /** Number of files of a folder. Absent: the path is a file. */
  readonly files?: number | undefined;
}
export interface RestoreFile extends Expecting {
  readonly op: 'restore';
  readonly path: string;
  /** Version of the tree that had the bytes. */
  readonly from: number;
  readonly file: Pick<FileEntry, 'digest' | 'size' | 'mode'>;
}
/** Change of the copy on disk by another program. A file of null: it was removed. */
export interface RecordOutside {
  readonly op: 'outside';
  readonly path: string;
  readonly file: Pick<FileEntry, 'digest' | 'size' | 'mode'> | null;
}
export type FileCommand = WriteFile | MoveFile | DeleteFile | RestoreFile | RecordOutside;

/** Quotas of a workspace. `maxBytes` is of all versions that the log keeps. */
export type FileLimits = Readonly<FileQuotas>;

export interface FileDecisionContext {
  readonly at: string;
  readonly cause: FileCause;
  readonly limits: FileLimits;
}

const missing = (path: string): Error =>
  causedError(notFound, 'FILE.NOT_FOUND', { kind: 'file_missing', path });

const isFolder = (path: string): Error =>
  causedError(rejected, 'FILE.IS_FOLDER', { kind: 'file_is_folder', path });

/** Returns the file of a path. Throws `FILE.VIRTUAL`, `FILE.IS_FOLDER` or `FILE.NOT_FOUND`. */
export const requireFile = ({ files, names }: FileTree, path: string): FileEntry => {
  const file = files.get(path);
  if (file) return file;
  checkWritable(path);
  const used = names.get(foldCase(path));
  if (used?.path === path) throw isFolder(path);
  if (used)
    throw causedError(notFound, 'FILE.NOT_FOUND', { kind: 'file_named_otherwise', path, other: used.path });
  throw missing(path);
};

const checkExpected = (path: string, now: string | null, { expect }: Expecting): void => {
  if (expect === undefined || expect === now) return;
  if (expect === null)
    throw causedError(conflict, 'FILE.EXISTS', { kind: 'file_exists', path }, { path, digest: now });
  if (now === null) throw missing(path);
  const data = { path, digest: now, expected: expect };
  throw causedError(conflict, 'FILE.STALE', { kind: 'file_changed', path }, data);
};

const checkWritable = (path: string): void => {
  if (isVirtualPath(path)) throw causedError(rejected, 'FILE.VIRTUAL', { kind: 'file_virtual', path });
};

/** Refuses a new path that another file system treats as one that is in use. */
const checkNewName = ({ names, files }: FileTree, path: string): void => {
  const clash = (other: string): Error =>
    causedError(rejected, 'FILE.PATH_CLASH', { kind: 'file_name_clash', path, other });
  const used = names.get(foldCase(path));
  if (used && used.path !== path) throw clash(used.path);
  if (used && used.files > 0) throw isFolder(path);
  for (const folder of foldersOf(path)) {
    const above = names.get(foldCase(folder));
    if (above && above.path !== folder) throw clash(above.path);
    if (files.has(folder))
      throw causedError(rejected, 'FILE.PATH_CLASH', { kind: 'file_not_folder', path: folder });
  }
};

const checkSize = (path: string, size: number, { maxFileBytes }: FileLimits): void => {
  if (size <= maxFileBytes) return;
  const cause = { kind: 'file_too_large', path, bytes: size, max: maxFileBytes } as const;
  const data = { quota: 'max_file_bytes', limit: maxFileBytes, value: size };
  throw causedError(exhausted, 'FILE.QUOTA', cause, data);
};

const checkQuotas = (before: FileTree, after: FileTree, limits: FileLimits): void => {
  const used = (tree: FileTree) => [tree.files.size, tree.bytes, tree.version] as const;
  const names = ['max_files', 'max_bytes', 'max_versions'] as const;
  const most = [limits.maxFiles, limits.maxBytes, limits.maxVersions] as const;
  const first = used(before);
  used(after).forEach((value, index) => {
    const limit = most[index] ?? 0;
    if (value <= limit || value <= (first[index] ?? 0)) return;
    const quota = names[index] ?? '';
    const data = { quota, limit, value };
    throw causedError(exhausted, 'FILE.QUOTA', { kind: 'file_quota', ...data }, data);
  });
};

/** Records the quotas with the first change that they apply to, so that an audit knows them. */
const recordQuotas = (
  { quotas }: FileTree,
  [first, ...rest]: readonly FileTreeEvent[],
  { maxFileBytes, maxFiles, maxBytes, maxVersions }: FileLimits,
): FileTreeEvent[] => {
  if (!first) return [];
  const now: FileQuotas = { maxFileBytes, maxFiles, maxBytes, maxVersions };
  const isSame = (Object.keys(now) as (keyof FileQuotas)[]).every((name) => quotas?.[name] === now[name]);
  if (isSame) return [first, ...rest];
  return [{ ...first, data: { ...first.data, quotas: now } } as FileTreeEvent, ...rest];
};

type Facts = Omit<FileDecisionContext, 'limits'>;

const contentOf = ({ digest, size, mode }: Pick<FileEntry, 'digest' | 'size' | 'mode'>) => ({
  digest,
  size,
  mode,
});

const write = (tree: FileTree, command: WriteFile, facts: Facts): FileTreeEvent[] => {
  const path = normalizePath(command.path);
  checkWritable(path);
  const now = tree.files.get(path);
  if (!now) checkNewName(tree, path);
  const mode = command.mode ?? now?.mode ?? 0o644;
  if (now?.digest === command.digest && now.mode === mode) return [];
  checkExpected(path, now?.digest ?? null, command);
  const data = {
    ...facts,
    path,
    digest: command.digest,
    size: command.size,
    mode,
    before: now?.digest ?? null,
  };
  return [{ type: 'FileWritten', schemaVersion: 1, data }];
};

const filesBelow = ({ files }: FileTree, folder: string): FileEntry[] =>
  [...files.values()].filter(({ path }) => isBelow(path, folder));

const move = (tree: FileTree, command: MoveFile, facts: Facts): FileTreeEvent[] => {
  const path = normalizePath(command.path);
  const to = normalizePath(command.to);
  checkWritable(path);
  checkWritable(to);
  if (path === to) return [];
  const isFile = tree.files.has(path);
  const moved = isFile ? [requireFile(tree, path)] : filesBelow(tree, path);
  if (moved.length === 0) throw missing(path);
  if (!isFile && isBelow(to, path))
    throw causedError(rejected, 'FILE.IS_FOLDER', { kind: 'folder_into_itself', path });
  if (isFile) checkExpected(path, moved[0]?.digest ?? null, command);
  if (tree.files.has(to))
    throw causedError(conflict, 'FILE.EXISTS', { kind: 'file_exists', path: to }, { path: to });
  const moves = moved.map((file) => {
    const target = normalizePath(`${to}${file.path.slice(path.length)}`);
    const data = { ...facts, path: file.path, to: target, ...contentOf(file) };
    return { type: 'FileMoved', schemaVersion: 1, data } as const;
  });
  // A file may take its own name in another case, so the old names are free.
  const without = foldFileTree(
    tree,
    moved.map((file) => deletionOf(file, facts)),
  );
  for (const { data } of moves) checkNewName(without, data.to);
  return moves;
};

const deletionOf = (file: FileEntry, facts: Facts): FileTreeEvent => ({
  type: 'FileDeleted',
  schemaVersion: 1,
  data: { ...facts, path: file.path, ...contentOf(file) },
});

const remove = (tree: FileTree, command: DeleteFile, facts: Facts): FileTreeEvent[] => {
  const path = normalizePath(command.path);
  checkWritable(path);
  const { files } = command;
  const removed = files === undefined ? [requireFile(tree, path)] : filesBelow(tree, path);
  if (removed.length === 0) throw missing(path);
  if (files === undefined) checkExpected(path, removed[0]?.digest ?? null, command);
  else if (removed.length !== files) {
    const data = { path, files: removed.length };
    throw causedError(
      conflict,
      'FILE.STALE',
      { kind: 'folder_has_other_files', ...data, given: files },
      data,
    );
  }
  return removed.map((file) => deletionOf(file, facts));
};

const restore = (tree: FileTree, command: RestoreFile, facts: Facts): FileTreeEvent[] => {
  const path = normalizePath(command.path);
  checkWritable(path);
  const now = tree.files.get(path);
  if (!now) checkNewName(tree, path);
  checkExpected(path, now?.digest ?? null, command);
  const { file, from } = command;
  if (now?.digest === file.digest && now.mode === file.mode) return [];
  const data = { ...facts, path, ...contentOf(file), before: now?.digest ?? null, from };
  return [{ type: 'FileRestored', schemaVersion: 1, data }];
};

const recordOutside = (tree: FileTree, command: RecordOutside, facts: Facts): FileTreeEvent[] => {
  const path = normalizePath(command.path);
  checkWritable(path);
  const now = tree.files.get(path);
  const { file } = command;
  if (!now && !file) return [];
  if (now && file && now.digest === file.digest && now.mode === file.mode) return [];
  if (!now) checkNewName(tree, path);
  const content = file ?? { digest: null, size: 0, mode: now?.mode ?? 0o644 };
  const data = { ...facts, path, ...content, before: now?.digest ?? null };
  return [{ type: 'FileChangedOutside', schemaVersion: 1, data }];
};

const decideOne = (tree: FileTree, command: FileCommand, facts: Facts): FileTreeEvent[] => {
  switch (command.op) {
    case 'write':
      return write(tree, command, facts);
    case 'move':
      return move(tree, command, facts);
    case 'delete':
      return remove(tree, command, facts);
    case 'restore':
      return restore(tree, command, facts);
    case 'outside':
      return recordOutside(tree, command, facts);
    default:
      return assertNever(command);
  }
};

/**
 * Decides on changes of a tree, in order: all of them, or an error. Each change sees those before
 * it.
 */
export const decideFiles = (
  tree: FileTree,
  commands: readonly FileCommand[],
  { at, cause, limits }: FileDecisionContext,
): FileTreeEvent[] => {
  const events: FileTreeEvent[] = [];
  let now = tree;
  for (const command of commands) {
    if (command.op === 'write') checkSize(command.path, command.size, limits);
    const decided = decideOne(now, command, { at, cause });
    now = foldFileTree(now, decided);
    events.push(...decided);
  }
  checkUnsafeNames(now, events);
  checkQuotas(tree, now, limits);
  return recordQuotas(tree, events, limits);
};
