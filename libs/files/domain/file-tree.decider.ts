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

const missing = (path: string): Error => notFound('FILE.NOT_FOUND', `there is no file "${path}"`);

/** Returns the file of a path. Throws `FILE.VIRTUAL`, `FILE.IS_FOLDER` or `FILE.NOT_FOUND`. */
export const requireFile = ({ files, names }: FileTree, path: string): FileEntry => {
  const file = files.get(path);
  if (file) return file;
  checkWritable(path);
  const used = names.get(foldCase(path));
  if (used?.path === path) throw rejected('FILE.IS_FOLDER', `"${path}" is a folder`);
  if (used) throw notFound('FILE.NOT_FOUND', `there is no file "${path}"; there is "${used.path}"`);
  throw missing(path);
};

const checkExpected = (path: string, now: string | null, { expect }: Expecting): void => {
  if (expect === undefined || expect === now) return;
  if (expect === null)
    throw conflict('FILE.EXISTS', `the file "${path}" exists`, { data: { path, digest: now } });
  if (now === null) throw missing(path);
  throw conflict('FILE.STALE', `the file "${path}" changed after it was read; read it again`, {
    data: { path, digest: now, expected: expect },
  });
};

const checkWritable = (path: string): void => {
  if (isVirtualPath(path))
    throw rejected('FILE.VIRTUAL', `"${path}" is built on read; a chat changes by its messages`);
};

/** Refuses a new path that another file system treats as one that is in use. */
const checkNewName = ({ names, files }: FileTree, path: string): void => {
  const clash = (other: string): Error =>
    rejected('FILE.PATH_CLASH', `"${path}" clashes with "${other}", which differs in case or form`);
  const used = names.get(foldCase(path));
  if (used && used.path !== path) throw clash(used.path);
  if (used && used.files > 0) throw rejected('FILE.IS_FOLDER', `"${path}" is a folder`);
  for (const folder of foldersOf(path)) {
    const above = names.get(foldCase(folder));
    if (above && above.path !== folder) throw clash(above.path);
    if (files.has(folder)) throw rejected('FILE.PATH_CLASH', `"${folder}" is a file, and no folder`);
  }
};

const checkSize = (path: string, size: number, { maxFileBytes }: FileLimits): void => {
  if (size > maxFileBytes)
    throw exhausted('FILE.QUOTA', `"${path}" has ${size} bytes; a file has at most ${maxFileBytes}`, {
      data: { quota: 'max_file_bytes', limit: maxFileBytes, value: size },
    });
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
    throw exhausted('FILE.QUOTA', `the workspace would have ${value} of ${quota} = ${limit}`, {
      data: { quota, limit, value },
    });
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
    throw rejected('FILE.IS_FOLDER', `the folder "${path}" cannot move into itself`);
  if (isFile) checkExpected(path, moved[0]?.digest ?? null, command);
  if (tree.files.has(to)) throw conflict('FILE.EXISTS', `the file "${to}" exists`, { data: { path: to } });
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
  else if (removed.length !== files)
    throw conflict('FILE.STALE', `the folder "${path}" has ${removed.length} files, not ${files}`, {
      data: { path, files: removed.length },
    });
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
