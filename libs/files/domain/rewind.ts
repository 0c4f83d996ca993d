import type { FileTreeEvent } from '@antiphon/contracts/agent';
import type { DeleteFile, RestoreFile } from './file-tree.decider.js';
import { comparePaths } from './file-path.js';
import type { FileEntry, FileTree } from './file-tree.js';

/** A change of a tree, with the version that it made. */
export interface VersionedChange {
  readonly version: number;
  readonly event: FileTreeEvent;
}

/** A path that a rewind leaves, or takes back only in part, because of a newer change of another. */
export interface RewindConflict {
  readonly path: string;
  /** Version of the newest change of another. */
  readonly version: number;
  /** Actor of that change, and its session if it has one. */
  readonly actor: string;
  readonly sessionId: string | null;
}

export interface RewindPlan {
  /** Deletions first, so that a restored path does not clash with a new one. */
  readonly commands: readonly (DeleteFile | RestoreFile)[];
  readonly conflicts: readonly RewindConflict[];
}

type FileContentAt = Omit<FileEntry, 'changedAt' | 'changedBy'>;

interface PathHistory {
  /** Content that the path has without the session's changes after the last change of another. */
  target: FileContentAt | null;
  isTouched: boolean;
  /** Newest change of another after a change of the session. */
  conflict: RewindConflict | null;
}

type PathChange = readonly [path: string, file: FileContentAt | null];

/** Returns the paths that an event changes, with their new content. */
const changesOf = ({ event, version }: VersionedChange): PathChange[] => {
  switch (event.type) {
    case 'FileTreeForked':
      return [];
    case 'FileDeleted':
      return [[event.data.path, null]];
    case 'FileMoved': {
      const { path, to, digest, size, mode } = event.data;
      return [
        [path, null],
        [to, { path: to, digest, size, mode, version }],
      ];
    }
    case 'FileWritten':
    case 'FileRestored':
    case 'FileChangedOutside': {
      const { path, digest, size, mode } = event.data;
      return [[path, digest === null ? null : { path, digest, size, mode, version }]];
    }
  }
};

/** Adds a change of one path to its history. */
const addChange = (
  history: PathHistory,
  [path, file]: PathChange,
  change: VersionedChange,
  own: string,
): void => {
  const { actor, sessionId = null } = change.event.data.cause;
  if (sessionId === own) {
    history.isTouched = true;
    return;
  }
  history.target = file;
  if (history.isTouched) history.conflict = { path, version: change.version, actor, sessionId };
};

const collect = (
  sessionId: string,
  before: FileTree,
  changes: readonly VersionedChange[],
): Map<string, PathHistory> => {
  const paths = new Map<string, PathHistory>();
  for (const change of changes)
    for (const pathChange of changesOf(change)) {
      const [path] = pathChange;
      const target = before.files.get(path) ?? null;
      const history = paths.get(path) ?? { target, isTouched: false, conflict: null };
      paths.set(path, history);
      addChange(history, pathChange, change, sessionId);
    }
  return paths;
};

const isEqual = (a: FileContentAt | null, b: FileContentAt | null): boolean =>
  a === null || b === null ? a === b : a.digest === b.digest && a.mode === b.mode;

/**
 * Plans to take back a session's changes of files. `before` is the tree as of the event, `changes`
 * are all later ones, oldest first. Each path gets the content of the newest change that is not the
 * session's, so that a newer change of another stays and is listed.
 */
export const planRewind = (
  sessionId: string,
  before: FileTree,
  now: FileTree,
  changes: readonly VersionedChange[],
): RewindPlan => {
  const deletions: DeleteFile[] = [];
  const restores: RestoreFile[] = [];
  const conflicts: RewindConflict[] = [];
  const paths = [...collect(sessionId, before, changes)].sort(([a], [b]) => comparePaths(a, b));
  for (const [path, { target, isTouched, conflict }] of paths) {
    if (!isTouched) continue;
    if (conflict) conflicts.push(conflict);
    const present = now.files.get(path) ?? null;
    if (isEqual(target, present)) continue;
    const expect = present?.digest ?? null;
    if (target === null) deletions.push({ op: 'delete', path, expect });
    else restores.push({ op: 'restore', path, from: target.version, file: target, expect });
  }
  return { commands: [...deletions, ...restores], conflicts };
};
