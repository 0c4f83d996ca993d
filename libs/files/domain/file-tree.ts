import type { FileQuotas, FileTreeEvent } from '@antiphon/contracts/agent';
import { foldCase, foldersOf } from './file-path.js';

/** A file of a tree, and the version of the tree that changed it last. */
export interface FileEntry {
  readonly path: string;
  /** SHA-256 of its bytes, hex. */
  readonly digest: string;
  readonly size: number;
  readonly mode: 0o644 | 0o755;
  readonly version: number;
  /** Time and actor of this change. */
  readonly changedAt: string;
  readonly changedBy: string;
}

/** A name that is in use, by its folded case. */
export interface UsedName {
  readonly path: string;
  /** Number of files below it; 0 for a file. */
  readonly files: number;
}

/**
 * Fold of a tree. Versions of a fork continue those of its base, so that each version of a line is
 * one state.
 */
export interface FileTree {
  readonly base: { readonly treeId: string; readonly version: number } | null;
  readonly version: number;
  readonly files: ReadonlyMap<string, FileEntry>;
  readonly names: ReadonlyMap<string, UsedName>;
  /** Deleted files, by the version of their deletion. */
  readonly bin: ReadonlyMap<number, FileEntry>;
  /** Bytes of all versions that the log keeps. */
  readonly bytes: number;
  /** Versions of the newest calls, by the id of the call: a repeated one changes nothing. */
  readonly calls: ReadonlyMap<string, CallVersions>;
  /** Quotas of the last change that names them; null before it. */
  readonly quotas: FileQuotas | null;
}

/** First and last version that a call made. */
export interface CallVersions {
  readonly from: number;
  readonly to: number;
}

/** Maximum number of calls that a fold knows. */
const MAX_CALLS = 256;

export const emptyFileTree = (): FileTree => ({
  base: null,
  version: 0,
  files: new Map(),
  names: new Map(),
  bin: new Map(),
  bytes: 0,
  calls: new Map(),
  quotas: null,
});

/** Returns the version of a tree's own event stream. */
export const streamVersionOf = ({ base, version }: FileTree): number => version - (base?.version ?? 0);

type ChangedFile = Pick<FileEntry, 'path' | 'digest' | 'size' | 'mode'> &
  Pick<FileTreeEvent['data'], 'at' | 'cause'>;

class TreeDraft {
  private base: FileTree['base'];
  private version: number;
  private bytes: number;
  private quotas: FileQuotas | null;
  private readonly files: Map<string, FileEntry>;
  private readonly names: Map<string, UsedName>;
  private readonly bin: Map<number, FileEntry>;
  private readonly calls: Map<string, CallVersions>;

  constructor(tree: FileTree) {
    ({ base: this.base, version: this.version, bytes: this.bytes, quotas: this.quotas } = tree);
    this.files = new Map(tree.files);
    this.names = new Map(tree.names);
    this.bin = new Map(tree.bin);
    this.calls = new Map(tree.calls);
  }

  /** An event of this form that the fold cannot apply changes nothing but the version. */
  apply({ type, data }: FileTreeEvent): void {
    this.version++;
    this.countCall(data.cause.callId);
    if ('quotas' in data && data.quotas) this.quotas = data.quotas;
    switch (type) {
      case 'FileTreeForked':
        this.base = { treeId: data.base, version: data.version };
        return;
      case 'FileMoved':
        this.remove(data.path);
        this.put(this.entryOf({ ...data, path: data.to }));
        return;
      case 'FileDeleted':
        this.remove(data.path);
        this.bin.set(this.version, this.entryOf(data));
        return;
      case 'FileChangedOutside':
        this.changeOutside(data);
        return;
      case 'FileWritten':
      case 'FileRestored':
        if (type === 'FileWritten') this.bytes += data.size;
        else this.bin.delete(data.from);
        this.put(this.entryOf(data));
    }
  }

  build(): FileTree {
    const { base, version, files, names, bin, bytes, calls, quotas } = this;
    return { base, version, files, names, bin, bytes, calls, quotas };
  }

  private countCall(callId: string | undefined): void {
    if (callId === undefined) return;
    const from = this.calls.get(callId)?.from ?? this.version;
    this.calls.delete(callId);
    this.calls.set(callId, { from, to: this.version });
    const [oldest] = this.calls.keys();
    if (this.calls.size > MAX_CALLS && oldest !== undefined) this.calls.delete(oldest);
  }

  private changeOutside(data: Extract<FileTreeEvent, { type: 'FileChangedOutside' }>['data']): void {
    const { digest, path } = data;
    if (digest === null) {
      const removed = this.files.get(path);
      this.remove(path);
      if (removed) this.bin.set(this.version, this.entryOf({ ...removed, at: data.at, cause: data.cause }));
      return;
    }
    this.bytes += data.size;
    this.put(this.entryOf({ ...data, digest }));
  }

  private entryOf({ path, digest, size, mode, at, cause }: ChangedFile): FileEntry {
    return { path, digest, size, mode, version: this.version, changedAt: at, changedBy: cause.actor };
  }

  private put(file: FileEntry): void {
    if (!this.files.has(file.path)) this.countName(file.path, 1);
    this.files.set(file.path, file);
  }

  private remove(path: string): void {
    if (this.files.delete(path)) this.countName(path, -1);
  }

  private countName(path: string, change: 1 | -1): void {
    const key = foldCase(path);
    if (change === 1) this.names.set(key, { path, files: 0 });
    else this.names.delete(key);
    for (const folder of foldersOf(path)) {
      const folderKey = foldCase(folder);
      const files = (this.names.get(folderKey)?.files ?? 0) + change;
      if (files > 0) this.names.set(folderKey, { path: folder, files });
      else this.names.delete(folderKey);
    }
  }
}

/** Applies events to a tree, oldest first. The tree itself stays as it is. */
export const foldFileTree = (tree: FileTree, events: Iterable<FileTreeEvent>): FileTree => {
  const draft = new TreeDraft(tree);
  for (const event of events) draft.apply(event);
  return draft.build();
};
