import { causedError } from '@antiphon/contracts/causes';
import { createHash } from 'node:crypto';
import type { FileCause, FileChange, FileEntryView } from '@antiphon/contracts/agent';
import { FileTreeEvent as FileTreeEventSchema } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { AntiphonConfig } from '@antiphon/config';
import {
  comparePaths,
  decideFiles,
  isBelow,
  isVirtualPath,
  normalizeFolder,
  normalizePath,
  requireFile,
} from '@antiphon/files-domain';
import type { CallVersions, FileCommand, FileEntry, FileTree } from '@antiphon/files-domain';
import type { BlobStore } from '@antiphon/database';
import type { IdempotencyClaim, StreamAppend } from '@antiphon/event-store';
import { isoTime, notFound, rejected } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { explainStale } from './explain-stale.js';
import type { StoredVersions } from './explain-stale.js';
import { changedOf, resultOf } from './file-changes.js';
import type { FilesChanged } from './file-changes.js';
import type { DecisionRecorder, FileDecision, FileTrees } from './file-trees.js';
import { filesByPath, viewOf } from './files-by-path.js';
import { SessionTrees } from './session-tree.js';
import type { SessionTreeDeps } from './session-tree.js';
import { lastPositionOf, virtualEntry } from './virtual-files.js';
import type { ReadTime, VirtualFile, VirtualFiles } from './virtual-files.js';

export interface FilesDeps {
  readonly store: SessionTreeDeps['store'];
  readonly trees: FileTrees;
  readonly blobs: Pick<BlobStore, 'sizes' | 'allErased'>;
  readonly config: Pick<AntiphonConfig, 'files'>;
  readonly clock: Clock;
  /** Files that are built on read. */
  readonly virtual: VirtualFiles;
}

/** As `DecisionRecorder`, by the files that a change changes. */
export interface ChangeRecorder extends Pick<DecisionRecorder, 'fence'> {
  append(stream: StreamAppend, changed: FilesChanged): Promise<boolean>;
}

export interface ChangeRequest {
  readonly workspace: string;
  readonly treeId: string;
  readonly cause: FileCause;
  readonly idempotency?: Omit<IdempotencyClaim, 'response'>;
  /** Records the change together with facts of another stream. */
  readonly recorder?: ChangeRecorder | undefined;
}

/** A file whose bytes can be read. */
export interface OpenedFile {
  readonly entry: FileEntryView & { readonly digest: string };
  readonly version: number;
  readBytes(): Promise<Uint8Array>;
}

export interface ListOptions extends ReadTime {
  readonly folder: string;
  readonly bin?: boolean;
  /** False leaves out the files of chats. */
  readonly chats?: boolean | undefined;
}

const NOTHING: ReadonlySet<string> = new Set();
/** Stands for the digest of bytes that have not arrived. */
const UNKNOWN_DIGEST = '0'.repeat(64);

const noFile = (path: string): Error =>
  causedError(notFound, 'FILE.NOT_FOUND', { kind: 'file_missing', path });

/** Returns the file of a path that a restore names: from the bin, or from the tree at the version. */
const binned = ({ bin }: FileTree, path: string, version?: number): [number, FileEntry] | null => {
  if (version !== undefined) {
    const entry = bin.get(version);
    return entry?.path === path ? [version, entry] : null;
  }
  return [...bin].filter(([, entry]) => entry.path === path).at(-1) ?? null;
};

/** File trees as callers and tools use them: lists, files and changes. */
export class Files {
  private readonly sessions: SessionTrees;

  constructor(private readonly deps: FilesDeps) {
    this.sessions = new SessionTrees(deps);
  }

  /** Returns the tree of a workspace, or of a session that is a fork. */
  treeIdOf(workspace: string, sessionId?: string): Promise<string> {
    return this.sessions.treeIdOf(workspace, sessionId);
  }

  /** Returns the version that a tree had at a position of the log. */
  versionAt(workspace: string, treeId: string, position: number): Promise<number> {
    return this.sessions.versionAt(workspace, treeId, position);
  }

  /** Lists all files below a folder by path, with those that are built on read. */
  async list(
    workspace: string,
    treeId: string,
    options: ListOptions,
  ): Promise<{ version: number; files: FileEntryView[] }> {
    const folder = normalizeFolder(options.folder);
    const tree = await this.deps.trees.read(workspace, treeId, options.at);
    const stored = options.bin ? [...tree.bin.values()] : filesByPath(tree);
    // A fork has the files of its base as of a version, also those that were erased later.
    const erased = tree.base ? await this.deps.blobs.allErased(workspace) : NOTHING;
    const files: FileEntryView[] = stored
      .filter(({ path, digest }) => isBelow(path, folder) && !erased.has(digest))
      .map(viewOf);
    if (!options.bin && options.chats !== false) {
      const until = await lastPositionOf(this.deps.trees, workspace, treeId, options);
      const paths = await this.deps.virtual.list(workspace, treeId, until);
      // A size costs a rendering: `withSizes` adds it to the entries that are shown.
      files.push(
        ...paths.filter((path) => isBelow(path, folder)).map((path) => virtualEntry(path, 0, tree.version)),
      );
    }
    if (files.length === 0 && folder !== '' && !options.bin)
      throw causedError(notFound, 'FILE.NOT_FOUND', { kind: 'folder_missing', path: folder });
    return { version: tree.version, files: files.sort((a, b) => comparePaths(a.path, b.path)) };
  }

  /** Returns entries of a list with the sizes of those that are built on read. */
  async withSizes(
    workspace: string,
    treeId: string,
    entries: readonly FileEntryView[],
    time: ReadTime = {},
  ): Promise<FileEntryView[]> {
    const paths = entries.filter((entry) => entry.is_virtual).map(({ path }) => path);
    if (paths.length === 0) return [...entries];
    const until = await lastPositionOf(this.deps.trees, workspace, treeId, time);
    const sizes = await this.deps.virtual.sizes(workspace, treeId, paths, until);
    return entries.map((entry) => ({ ...entry, size: sizes.get(entry.path) ?? entry.size }));
  }

  /** Returns a file without its bytes. The digest of a virtual one is null. */
  async stat(
    workspace: string,
    treeId: string,
    given: string,
    time: ReadTime = {},
  ): Promise<{ entry: FileEntryView; version: number; chat?: VirtualFile['chat'] }> {
    const path = normalizePath(given);
    const tree = await this.deps.trees.read(workspace, treeId, time.at);
    const { version } = tree;
    if (!isVirtualPath(path)) return { entry: viewOf(requireFile(tree, path)), version };
    const until = await lastPositionOf(this.deps.trees, workspace, treeId, time);
    const found = await this.deps.virtual.find(workspace, treeId, path, until);
    if (!found) throw noFile(path);
    return { entry: virtualEntry(path, found.size, version), version, chat: found.chat };
  }

  /** Returns a file with its bytes. A virtual one is rendered, and no byte of it is stored. */
  async open(workspace: string, treeId: string, given: string, at?: number): Promise<OpenedFile> {
    const path = normalizePath(given);
    const { trees } = this.deps;
    const tree = await trees.read(workspace, treeId, at);
    const { version } = tree;
    if (!isVirtualPath(path)) {
      const entry = viewOf(requireFile(tree, path));
      return { entry, version, readBytes: () => trees.readBytes(workspace, entry.digest) };
    }
    const until = await lastPositionOf(this.deps.trees, workspace, treeId, { at });
    const text = await this.deps.virtual.render(workspace, treeId, path, until);
    if (!text) throw noFile(path);
    const digest = createHash('sha256').update(text).digest('hex');
    const entry = { ...virtualEntry(path, text.byteLength, version), digest };
    return { entry, version, readBytes: () => Promise.resolve(text) };
  }

  /** Makes changes: all of them, or none. A repeated call returns the first result. */
  async change(
    request: ChangeRequest,
    toCommands: (tree: FileTree) => readonly FileCommand[] | Promise<readonly FileCommand[]>,
  ): Promise<FilesChanged> {
    const { workspace, treeId, cause, idempotency, recorder } = request;
    const { trees, clock, config } = this.deps;
    let repeated: CallVersions | undefined;
    const decide = async (now: FileTree): Promise<FileDecision> => {
      repeated = cause.callId === undefined ? undefined : now.calls.get(cause.callId);
      if (repeated) return { events: [] };
      const commands = await toCommands(now);
      const decided = decideFiles(now, commands, { at: isoTime(clock), cause, limits: config.files });
      if (!idempotency || decided.length === 0) return { events: decided };
      // The claim keeps the versions: the result is read from their facts again.
      const response = { from: now.version + 1, to: now.version + decided.length };
      return { events: decided, idempotency: { ...idempotency, response } };
    };
    const { tree, result, events } = await trees.commit(
      workspace,
      treeId,
      decide,
      recorder && {
        append: (append) => recorder.append(append.stream, changedOf(append)),
        fence: () => recorder.fence(),
      },
    );
    const joined = result?.outcome === 'joined' ? (result.response as unknown as CallVersions) : repeated;
    if (joined) return this.resultAt(workspace, treeId, tree, joined);
    const version = result === null ? tree.version : versionAfter(result.versions[0] ?? 0, tree);
    return changedOf({ events, version: version - events.length });
  }

  /** Makes the changes that a caller of the API names. */
  changeByRequest(request: ChangeRequest, changes: readonly FileChange[]): Promise<FilesChanged> {
    const toCommands = async (tree: FileTree): Promise<FileCommand[]> => {
      await this.checkBytes(request.workspace, changes);
      return Promise.all(changes.map((change) => this.toCommand(request, tree, change)));
    };
    return explainStale(this.versionsOf(request.workspace), () => this.change(request, toCommands));
  }

  /** Refuses a write that the tree would refuse now, before its bytes are stored. */
  async checkWrite(
    workspace: string,
    treeId: string,
    { path, size, expect }: { path: string; size: number; expect?: string | null | undefined },
  ): Promise<number> {
    const tree = await this.deps.trees.read(workspace, treeId);
    const { clock, config } = this.deps;
    const context = { at: isoTime(clock), cause: { actor: 'runtime' }, limits: config.files };
    const write = { op: 'write', path, digest: UNKNOWN_DIGEST, size, expect } as const;
    await explainStale(this.versionsOf(workspace), () => decideFiles(tree, [write], context));
    return tree.version;
  }

  private versionsOf(workspace: string): StoredVersions {
    const { blobs, trees } = this.deps;
    return {
      workspace,
      sizes: (digests) => blobs.sizes(workspace, digests),
      read: (digest) => trees.readBytes(workspace, digest),
    };
  }

  private async resultAt(
    workspace: string,
    treeId: string,
    { base, version }: FileTree,
    { from, to }: CallVersions,
  ): Promise<FilesChanged> {
    const offset = base?.version ?? 0;
    const options = { beforeVersion: to - offset + 1, limit: to - from + 1 };
    const { events } = await this.deps.trees.readFacts(workspace, treeId, options);
    const facts = events.reverse().map((event) => FileTreeEventSchema.parse(upcast(event)));
    return {
      version: Math.min(version, to),
      files: facts.flatMap((fact, index) => resultOf(fact, from + index)),
    };
  }

  private async toCommand(
    { workspace, treeId }: ChangeRequest,
    tree: FileTree,
    change: FileChange,
  ): Promise<FileCommand> {
    if (change.op !== 'restore') return change;
    const { version, ...rest } = change;
    const path = normalizePath(change.path);
    const found = binned(tree, path, version);
    if (found) return { ...rest, from: found[0], file: found[1] };
    if (version === undefined || version === 0)
      throw causedError(notFound, 'FILE.NOT_FOUND', { kind: 'file_not_in_bin', path });
    const then = await this.deps.trees.read(workspace, treeId, version);
    return { ...rest, from: version, file: requireFile(then, path) };
  }

  private async checkBytes(workspace: string, changes: readonly FileChange[]): Promise<void> {
    const written = changes.filter((change) => change.op === 'write');
    if (written.length === 0) return;
    const sizes = await this.deps.blobs.sizes(workspace, [...new Set(written.map(({ digest }) => digest))]);
    for (const { digest, size } of written)
      if (sizes.get(digest) !== size)
        throw causedError(rejected, 'FILE.NO_BYTES', { kind: 'file_bytes_missing', digest });
  }
}

/** Returns the version of the tree from that of its event stream. */
const versionAfter = (streamVersion: number, { base }: FileTree): number =>
  streamVersion + (base?.version ?? 0);
