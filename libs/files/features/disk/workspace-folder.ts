import { join } from 'node:path';
import { access } from 'node:fs/promises';
import { compareDisk, decideFiles, emptyFileTree, foldFileTree } from '@antiphon/files-domain';
import type { DiskDifference, FileContent, FileEntry, FileLimits, FileTree } from '@antiphon/files-domain';
import type { FileTreeEvent } from '@antiphon/contracts/agent';
import type { Fence } from '@antiphon/event-store';
import { failpoint, isAppError, isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { fileTreeIdOf } from '@antiphon/agent-log';
import type { FileTreesPort } from '../trees/file-trees.js';
import { markCopy } from './copy-mark.js';
import { NO_DISK_STATE } from './disk-state.js';
import type { DiskState, DiskStates } from './disk-state.js';
import { FolderScan } from './folder-scan.js';
import { ReportedDifferences } from './reported-differences.js';
import { SafeFolder, digestOfBytes } from './safe-folder.js';
import { TreeCopy, contentOf } from './tree-copy.js';
import type { Foreign, Written } from './tree-copy.js';

/** Actor of changes that another program made in the folder. */
export const DISK_ACTOR = 'disk';

export interface WorkspaceFolderDeps {
  readonly trees: FileTreesPort;
  readonly states: DiskStates;
  readonly limits: FileLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Token of the process that may record changes; null after it lost the lease. */
  readonly fence: () => Fence | null;
  /** True if files of the folder are executable where the tree has them so. */
  readonly keepsExecutable?: boolean;
}

/** A workspace and its folder. */
export interface FolderPlace {
  readonly workspace: string;
  readonly root: string;
}

/** Number of files that a round changed. */
export interface SyncResult {
  readonly written: number;
  readonly removed: number;
  readonly outside: number;
  readonly conflicts: number;
  /** Paths that stay different: links, special files, names or sizes that a tree does not take. */
  readonly refused: readonly string[];
}

type Own = Extract<DiskDifference, { kind: 'write' | 'remove' }>;

const isForeign = (difference: DiskDifference): difference is Foreign =>
  difference.kind === 'outside' || difference.kind === 'conflict';
const isOwn = (difference: DiskDifference): difference is Own =>
  difference.kind === 'write' || difference.kind === 'remove';

/** Maximum number of foreign changes in one append. */
const BATCH = 100;

/** Errors of one file, which do not stop the others. */
const isOfOneFile = (error: unknown): boolean =>
  (isAppError(error) && error.code.startsWith('FILE.')) ||
  ['EISDIR', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'EEXIST'].includes(
    (error as NodeJS.ErrnoException).code ?? '',
  );

/** Maximum number of paths of a state that are left out. */
const MAX_LEFT_OUT = 1_000;

/** Tree that a round writes, and what the scan before it found. */
interface Round {
  readonly tree: FileTree;
  readonly written: Written;
  readonly refused: Iterable<string>;
}

/** The folder of a workspace's file tree. One process at a time writes and compares it. */
export class WorkspaceFolder {
  private folder: SafeFolder | null = null;
  private scan: FolderScan | null = null;
  private state: DiskState = NO_DISK_STATE;
  /** Tree of the state's version. */
  private base: FileTree | null = null;
  private readonly treeId: string;
  private readonly copy: TreeCopy;
  private readonly differences: ReportedDifferences;

  readonly workspace: string;
  readonly root: string;

  constructor(
    private readonly deps: WorkspaceFolderDeps,
    { workspace, root }: FolderPlace,
  ) {
    this.workspace = workspace;
    this.root = root;
    this.treeId = fileTreeIdOf(workspace);
    this.differences = new ReportedDifferences(deps.logger, workspace);
    this.copy = new TreeCopy(deps.keepsExecutable === true);
  }

  /** Returns the version of the tree that the folder has. */
  version(): number {
    return this.state.target === null ? this.state.version : 0;
  }

  /** Records what other programs changed, then writes what the tree changed. */
  async sync(): Promise<SyncResult> {
    const { folder, scan } = await this.open();
    const seen = await this.deps.trees.read(this.workspace, this.treeId);
    await this.removeUnsafe(folder, seen);
    const { disk: found, refused } = await scan.scan();
    const written = await this.writtenContents(seen);
    const disk = this.copy.diskOf(found, written, { isPlain: this.state.isPlain === true });
    const foreign = compareDisk({ tree: this.copy.treeOf(seen), disk, refused, written }).filter(isForeign);
    const tree = await this.record(folder, foreign, seen);
    const left = compareDisk({ tree: this.copy.treeOf(tree), disk, refused, written });
    const done = await this.writeAll(folder, left, { tree, written, refused });
    const present = new Set([
      ...refused,
      ...left.filter(({ path }) => !done.has(path)).map(({ path }) => path),
    ]);
    this.differences.set(present);
    const stillForeign = new Set(left.filter(isForeign).map(({ path }) => path));
    const count = (kind: DiskDifference['kind'], all: readonly DiskDifference[]): number =>
      all.filter((difference) => difference.kind === kind && !stillForeign.has(difference.path)).length;
    const own = left.filter(({ path }) => done.has(path));
    return {
      ...{ written: count('write', own), removed: count('remove', own) },
      ...{ outside: count('outside', foreign), conflicts: count('conflict', foreign) },
      refused: [...present],
    };
  }

  async close(): Promise<void> {
    await this.folder?.close();
    this.folder = null;
  }

  /** Opens the folder. The state of a folder that is gone does not count. */
  private async open(): Promise<{ folder: SafeFolder; scan: FolderScan }> {
    const { trees, states, limits, logger } = this.deps;
    const isPresent = await access(this.root).then(
      () => true,
      () => false,
    );
    if (this.folder && this.scan && isPresent) return { folder: this.folder, scan: this.scan };
    await this.close();
    const folder = await SafeFolder.open(
      this.root,
      join(this.root, '..', '.antiphon', 'partial', this.workspace),
    );
    this.base = null;
    this.state = isPresent ? await states.read(this.workspace) : NO_DISK_STATE;
    const isKnown = (digest: string): Promise<boolean> =>
      trees.readBytes(this.workspace, digest).then(
        () => true,
        () => false,
      );
    for (const path of await folder.clean(isKnown))
      logger.warn({ path }, 'unfinished file has unknown bytes');
    this.folder = folder;
    this.scan = new FolderScan(folder, limits.maxFileBytes);
    return { folder, scan: this.scan };
  }

  /** Removes files that an earlier version of this program wrote under names that are not allowed. */
  private async removeUnsafe(folder: SafeFolder, tree: FileTree): Promise<void> {
    if (this.state.isPlain === true) return;
    const isAllowed = this.copy.allowedIn(tree);
    for (const file of tree.files.values())
      if (!isAllowed(file))
        await folder.remove(file.path, file.digest).catch((error: unknown) => {
          if (!isOfOneFile(error)) throw error;
          this.differences.add(file.path, error);
        });
    await markCopy(this.root);
  }

  private async writtenContents(now: FileTree): Promise<Written> {
    const { version, target, pending } = this.state;
    const base = await this.treeAt(version, now);
    const unfinished = target === null ? null : await this.treeAt(target, now);
    return this.copy.written(
      (path) => {
        const before = path in pending ? (pending[path] ?? null) : contentOf(base.files.get(path));
        return unfinished ? [before, contentOf(unfinished.files.get(path))] : [before];
      },
      now,
      { isPlain: this.state.isPlain === true },
    );
  }

  private async treeAt(version: number, now: FileTree): Promise<FileTree> {
    if (version === now.version) return now;
    if (version === this.base?.version) return this.base;
    if (version === 0 || version > now.version) return emptyFileTree();
    return this.deps.trees.read(this.workspace, this.treeId, version);
  }

  /** Stores the bytes of foreign changes, then appends their facts. Returns the tree after them. */
  private async record(folder: SafeFolder, found: readonly Foreign[], seen: FileTree): Promise<FileTree> {
    let tree = seen;
    for (let from = 0; from < found.length; from += BATCH) {
      const stored: Foreign[] = [];
      for (const change of found.slice(from, from + BATCH))
        if (await this.storeBytes(folder, change)) stored.push(change);
      const fence = this.deps.fence();
      if (fence === null) break;
      const decide = (now: FileTree) => ({ events: this.decideOutside(now, stored, seen), fence });
      ({ tree } = await this.deps.trees.commit(this.workspace, this.treeId, decide));
    }
    return tree;
  }

  /** Decides on foreign changes one by one: a refused one does not stop the others. */
  private decideOutside(now: FileTree, stored: readonly Foreign[], seen: FileTree): FileTreeEvent[] {
    const { clock, limits } = this.deps;
    const context = { at: isoTime(clock), cause: { actor: DISK_ACTOR }, limits };
    const events: FileTreeEvent[] = [];
    let tree = now;
    for (const change of stored) {
      // A path that the tree changed since the comparison is compared again in the next round.
      if (now.files.get(change.path)?.version !== seen.files.get(change.path)?.version) continue;
      try {
        const decided = decideFiles(tree, this.copy.commandsOf(change, tree), context);
        tree = foldFileTree(tree, decided);
        events.push(...decided);
      } catch (error) {
        if (!isOfOneFile(error)) throw error;
        this.differences.add(change.path, error);
      }
    }
    return events;
  }

  /** Returns false if the file changed again since the comparison. */
  private async storeBytes(folder: SafeFolder, { path, file }: Foreign): Promise<boolean> {
    if (file === null) return true;
    await failpoint('work.folder.begun', () => `${this.workspace} ${path}`);
    const present = await folder.read(path).catch(() => null);
    if (present === null || digestOfBytes(present.bytes) !== file.digest) return false;
    await this.deps.trees.putBytes(this.workspace, present.bytes);
    return true;
  }

  /** Writes the tree's changes. Returns the paths that are equal now. */
  private async writeAll(
    folder: SafeFolder,
    left: readonly DiskDifference[],
    { tree, written, refused }: Round,
  ): Promise<Set<string>> {
    const own = left.filter(isOwn);
    const done = new Set<string>();
    if (own.length > 0) await this.save({ ...this.state, target: tree.version });
    for (const difference of own) {
      if (this.deps.fence() === null) return done;
      if (await this.tryWrite(folder, difference)) done.add(difference.path);
    }
    await failpoint('files.disk.synced');
    const behind = left.filter(({ path }) => !done.has(path)).map(({ path }) => path);
    const pending = Object.fromEntries(behind.map((path) => [path, written(path)[0] ?? null]));
    const isPlain = !this.deps.keepsExecutable;
    const leftOut = [...refused, ...this.copy.leftOut(tree)].sort().slice(0, MAX_LEFT_OUT);
    const state = { version: tree.version, target: null, pending, isPlain, leftOut };
    if (JSON.stringify(state) !== JSON.stringify(this.state)) await this.save(state);
    this.base = tree;
    return done;
  }

  private async tryWrite(folder: SafeFolder, difference: Own): Promise<boolean> {
    try {
      if (difference.kind === 'write') await this.writeFile(folder, difference.file, difference.present);
      else await folder.remove(difference.path, difference.present.digest);
      return true;
    } catch (error) {
      if (!isOfOneFile(error)) throw error;
      this.differences.add(difference.path, error);
      return false;
    }
  }

  private async writeFile(folder: SafeFolder, file: FileEntry, present: FileContent | null): Promise<void> {
    const bytes = await this.deps.trees.readBytes(this.workspace, file.digest);
    await folder.write(file.path, bytes, file.mode, present?.digest ?? null);
  }

  private async save(state: DiskState): Promise<void> {
    await this.deps.states.write(this.workspace, state);
    this.state = state;
  }
}
