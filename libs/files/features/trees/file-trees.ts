import { causedError } from '@antiphon/contracts/causes';
import { createHash } from 'node:crypto';
import { FileTreeEvent, fileTreeStream } from '@antiphon/contracts/agent';
import { emptyFileTree, foldFileTree, streamVersionOf } from '@antiphon/files-domain';
import type { FileTree } from '@antiphon/files-domain';
import type { BlobStore, StoredBytes } from '@antiphon/database';
import { AggregateStore, isVersionConflict } from '@antiphon/event-store';
import type {
  AppendResult,
  BlobAppend,
  Decision,
  EventStore,
  Fence,
  IdempotencyClaim,
  RecordedEvent,
  StateAt,
  StreamAppend,
} from '@antiphon/event-store';
import { bug, failpoint, notFound, rejected } from '@antiphon/kernel';
import type { Ids } from '@antiphon/kernel';
import { eventForms } from '@antiphon/agent-log';
import type { FileTreeSnapshots } from './file-tree-snapshots.js';

/** Events for a tree, and appends in the same transaction. With a recorder, events only. */
export interface FileDecision {
  readonly events: readonly FileTreeEvent[];
  readonly also?: readonly StreamAppend[];
  readonly idempotency?: IdempotencyClaim;
  /** Lease that the caller must still hold. */
  readonly fence?: Fence;
}

/** An append to a tree, with the version that it was decided on. */
export interface DecidedAppend {
  readonly stream: StreamAppend;
  readonly events: readonly FileTreeEvent[];
  readonly version: number;
}

/** Records a decided change together with facts of another stream. */
export interface DecisionRecorder {
  /**
   * Appends both. Returns false if it appended nothing. Throws `LOG.VERSION_CONFLICT` of the tree,
   * after which the change is decided again.
   */
  append(append: DecidedAppend): Promise<boolean>;
  /** Returns the fence of a change of very many files, which is appended alone. */
  fence(): Fence;
}

/** A tree after a commit. `result` is null if nothing was decided, or if its recorder appended it. */
export interface FileCommit {
  readonly tree: FileTree;
  readonly result: AppendResult | null;
  readonly events: readonly FileTreeEvent[];
}

/** File trees, as chats, plans and the copy on disk use them. */
export interface FileTreesPort {
  /** Reads a tree up to now, or at a version. Throws `FILE.NO_SUCH_VERSION`. */
  read(workspace: string, treeId: string, atVersion?: number): Promise<FileTree>;
  /** Decides on the newest tree and appends; decides again after a conflict. */
  commit(
    workspace: string,
    treeId: string,
    decide: (tree: FileTree) => FileDecision | Promise<FileDecision>,
    recorder?: DecisionRecorder,
  ): Promise<FileCommit>;
  /** Returns the bytes of a digest. Throws `FILE.NO_BYTES`. */
  readBytes(workspace: string, digest: string): Promise<Uint8Array>;
  /** Stores bytes. Call it before the commit of the fact that cites them. */
  putBytes(workspace: string, bytes: Uint8Array): Promise<StoredBytes>;
}

export interface FileTreesDeps {
  readonly store: Pick<EventStore, 'readStream' | 'readStreamPage' | 'append'>;
  readonly blobs: Pick<BlobStore, 'put' | 'read' | 'erasedOf'>;
  readonly snapshots: Pick<FileTreeSnapshots, 'read' | 'write'>;
  readonly ids: Ids;
}

/** Maximum number of cached trees. */
const MAX_TREES = 200;
const PAGE = 1_000;
/** Maximum size of bytes that travel with an append: of one file, and of all. */
const STAGED_BYTES = 256 * 1_024;
export const APPENDED_BYTES = 4 * 1_024 * 1_024;
/** Maximum number of events of a tree in one append with facts of another stream. */
const JOINT_EVENTS = 900;
const SNAPSHOT_EVERY = 1_000;

const at = (tree: FileTree): StateAt<FileTree> => ({ state: tree, version: streamVersionOf(tree) });

/** Returns a decision that its recorder appends. One of very many events has no room for others. */
const toJoint = (
  { events, also = [], fence, idempotency }: FileDecision,
  { version }: FileTree,
  recorder: DecisionRecorder,
): Decision<FileTreeEvent> => {
  if (also.length > 0 || fence || idempotency)
    throw bug('FILE.DECISION_NOT_RECORDED', 'only the events of a decision can be recorded');
  if (events.length > JOINT_EVENTS) return { events, fence: recorder.fence() };
  return { events, join: (stream) => recorder.append({ stream, events, version }) };
};

/**
 * Returns true if the fold after an append is known: the append names the version. A fork begins
 * with the files of its base, which the next read finds.
 */
const hasOwnFold = ([first]: readonly FileTreeEvent[]): boolean =>
  first !== undefined && first.type !== 'FileTreeForked';

/**
 * Event streams of file trees, and the bytes that they cite. Each read sees every commit of every
 * process: the events after the cached fold are read first.
 */
export class FileTrees implements FileTreesPort {
  private readonly streams: AggregateStore<FileTree, FileTreeEvent>;

  constructor(private readonly deps: FileTreesDeps) {
    const { store, snapshots, ids } = deps;
    this.streams = new AggregateStore<FileTree, FileTreeEvent>({
      ...{ store, fold: foldFileTree, ...eventForms(FileTreeEvent, ids, 'FILE.EVENT_UNKNOWN') },
      decider: { initialState: emptyFileTree, evolve: (tree, event) => foldFileTree(tree, [event]) },
      streamOf: (_workspace, treeId) => fileTreeStream(treeId),
      readAfter: async (workspace, treeId, { state }) => at(await this.foldAfter(workspace, treeId, state)),
      mustReadAfter: (events) => !hasOwnFold(events),
      appendsOthersAlone: true,
      isStale: (error, streamId) => isVersionConflict(error, streamId),
      cache: {
        maxStreams: MAX_TREES,
        snapshots: {
          every: SNAPSHOT_EVERY,
          read: async (workspace, treeId) => {
            const tree = await snapshots.read(workspace, treeId);
            return tree && at(tree);
          },
          write: (workspace, treeId, { state }) => snapshots.write(workspace, treeId, state),
        },
      },
    });
  }

  async read(workspace: string, treeId: string, atVersion?: number): Promise<FileTree> {
    if (atVersion !== undefined) return this.readAt(workspace, treeId, atVersion);
    return (await this.streams.read(workspace, treeId)).state;
  }

  /** Returns a tree as this process last saw it; null if it has not read it. */
  cached(workspace: string, treeId: string): FileTree | null {
    return this.streams.kept(workspace, treeId);
  }

  async commit(
    workspace: string,
    treeId: string,
    decide: (tree: FileTree) => FileDecision | Promise<FileDecision>,
    recorder?: DecisionRecorder,
  ): Promise<FileCommit> {
    let events: readonly FileTreeEvent[] = [];
    const committed = await this.streams.commit(workspace, treeId, async ({ state: tree }) => {
      const decision = await decide(tree);
      ({ events } = decision);
      if (events.length > 0 || decision.also?.length) await failpoint('agent.file.decided');
      return recorder ? toJoint(decision, tree, recorder) : decision;
    });
    const { state: tree, result, isAppended } = committed;
    if (isAppended) await failpoint('agent.file.recorded');
    return { tree, result, events: isAppended || result ? events : [] };
  }

  readBytes(workspace: string, digest: string): Promise<Uint8Array> {
    return this.deps.blobs.read(workspace, digest);
  }

  async putBytes(workspace: string, bytes: Uint8Array): Promise<StoredBytes> {
    const stored = await this.deps.blobs.put(workspace, bytes);
    await failpoint('agent.file.stored');
    return stored;
  }

  /**
   * Prepares bytes that an append stores in its own transaction. Larger ones, and those above
   * `room`, are stored now, and `blob` is null. Throws `FILE.ERASED` for bytes that were erased.
   */
  async stageBytes(
    workspace: string,
    bytes: Uint8Array,
    room = APPENDED_BYTES,
  ): Promise<{ stored: StoredBytes; blob: BlobAppend | null }> {
    if (bytes.byteLength > Math.min(STAGED_BYTES, room))
      return { stored: await this.putBytes(workspace, bytes), blob: null };
    const digest = createHash('sha256').update(bytes).digest('hex');
    if ((await this.deps.blobs.erasedOf(workspace, [digest])).size > 0)
      throw causedError(rejected, 'FILE.ERASED', { kind: 'file_bytes_erased', digest });
    return { stored: { digest, size: bytes.byteLength }, blob: { digest, body: bytes } };
  }

  /** Returns the facts of a tree's own event stream, newest first, below a version of the stream. */
  readFacts(
    workspace: string,
    treeId: string,
    options: { readonly beforeVersion?: number; readonly limit: number },
  ): Promise<{ events: RecordedEvent[]; hasMore: boolean }> {
    return this.deps.store.readStreamPage(workspace, fileTreeStream(treeId), { ...options, backwards: true });
  }

  /** Applies the events after a fold, up to a version of the tree. */
  private async foldAfter(
    workspace: string,
    treeId: string,
    from: FileTree,
    until = Infinity,
  ): Promise<FileTree> {
    let tree = from;
    for (let hasMore = true; hasMore && tree.version < until;) {
      const options = { fromVersion: streamVersionOf(tree) + 1, limit: Math.min(PAGE, until - tree.version) };
      const page = await this.deps.store.readStreamPage(workspace, fileTreeStream(treeId), options);
      const facts = this.streams.parseAll(page.events);
      const [first] = facts;
      if (tree.version === 0 && first?.type === 'FileTreeForked') {
        if (first.data.version >= until) return this.readAt(workspace, first.data.base, until);
        tree = await this.readAt(workspace, first.data.base, first.data.version);
        // The base of the base belongs to its fold, and a fork names quotas of its own.
        tree = { ...tree, base: null, quotas: null };
      }
      const wanted = facts.slice(0, until - tree.version);
      tree = wanted.length === 0 ? tree : foldFileTree(tree, wanted);
      ({ hasMore } = page);
    }
    return tree;
  }

  private async readAt(workspace: string, treeId: string, version: number): Promise<FileTree> {
    if (version === 0) return emptyFileTree();
    // Outside the queue of the tree, because a decision in the queue may read an older version.
    const cached = this.cached(workspace, treeId);
    if (cached?.version === version) return cached;
    const snapshot = await this.deps.snapshots.read(workspace, treeId);
    const start = snapshot && snapshot.version <= version ? snapshot : emptyFileTree();
    const tree = await this.foldAfter(workspace, treeId, start, version);
    if (tree.version < version) {
      const cause = { kind: 'file_version_missing', versions: tree.version, version } as const;
      throw causedError(notFound, 'FILE.NO_SUCH_VERSION', cause);
    }
    return tree;
  }
}
