import { createHash } from 'node:crypto';
import { FileTreeEvent, fileTreeStream } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { emptyFileTree, foldFileTree, streamVersionOf } from '@antiphon/agent-domain';
import type { FileTree } from '@antiphon/agent-domain';
import type { BlobStore, StoredBytes } from '@antiphon/database';
import type {
  AppendResult,
  BlobAppend,
  EventStore,
  Fence,
  IdempotencyClaim,
  RecordedEvent,
  StreamAppend,
} from '@antiphon/event-store';
import {
  bug,
  createBoundedMap,
  createSerialQueue,
  failpoint,
  isAppError,
  notFound,
  rejected,
} from '@antiphon/kernel';
import type { BoundedMap, Ids, SerialQueue } from '@antiphon/kernel';
import { toNewEvent } from '../event-envelope.js';
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
  readonly store: Pick<EventStore, 'readStreamPage' | 'append'>;
  readonly blobs: Pick<BlobStore, 'put' | 'read' | 'erasedOf'>;
  readonly snapshots: Pick<FileTreeSnapshots, 'read' | 'write'>;
  readonly ids: Ids;
}

interface LocalTree {
  tree: FileTree;
  /** Version of the event stream at the last snapshot that this process knows. */
  snapshot: number;
  isLoaded: boolean;
  readonly enqueue: SerialQueue;
}

/** Maximum number of cached trees. */
const MAX_TREES = 200;
/** Maximum number of commit rounds: processes that change one tree conflict, and one succeeds. */
const MAX_ROUNDS = 100;
const PAGE = 1_000;
/** Maximum size of bytes that travel with an append: of one file, and of all. */
const STAGED_BYTES = 256 * 1_024;
export const APPENDED_BYTES = 4 * 1_024 * 1_024;
/** Maximum number of events of a tree in one append with facts of another stream. */
const JOINT_EVENTS = 900;
const SNAPSHOT_EVERY = 1_000;

const toFact = (recorded: RecordedEvent): FileTreeEvent => {
  const parsed = FileTreeEvent.safeParse(upcast(recorded));
  if (!parsed.success) throw bug('FILE.EVENT_UNKNOWN', `this version does not know ${recorded.type}`);
  return parsed.data;
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
  private readonly local: BoundedMap<LocalTree> = createBoundedMap(MAX_TREES);

  constructor(private readonly deps: FileTreesDeps) {}

  read(workspace: string, treeId: string, atVersion?: number): Promise<FileTree> {
    if (atVersion !== undefined) return this.readAt(workspace, treeId, atVersion);
    const local = this.open(workspace, treeId);
    return local.enqueue(() => this.refresh(local, workspace, treeId));
  }

  /** Returns a tree as this process last saw it; null if it has not read it. */
  cached(workspace: string, treeId: string): FileTree | null {
    const local = this.open(workspace, treeId);
    return local.isLoaded ? local.tree : null;
  }

  commit(
    workspace: string,
    treeId: string,
    decide: (tree: FileTree) => FileDecision | Promise<FileDecision>,
    recorder?: DecisionRecorder,
  ): Promise<FileCommit> {
    const local = this.open(workspace, treeId);
    return local.enqueue(() => this.commitNow(local, workspace, treeId, decide, recorder));
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
      throw rejected('FILE.ERASED', `the bytes of ${digest} were erased`);
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

  private async commitNow(
    local: LocalTree,
    workspace: string,
    treeId: string,
    decide: (tree: FileTree) => FileDecision | Promise<FileDecision>,
    recorder?: DecisionRecorder,
  ): Promise<FileCommit> {
    const streamId = fileTreeStream(treeId);
    for (let round = 1; ; round++) {
      const tree = await this.refresh(local, workspace, treeId);
      const decision = await decide(tree);
      const { events, also = [] } = decision;
      if (events.length === 0 && also.length === 0) return { tree, result: null, events };
      try {
        await failpoint('agent.file.decided');
        const { isAppended, result } = await this.append(workspace, streamId, tree, decision, recorder);
        await failpoint('agent.file.recorded');
        if (isAppended && hasOwnFold(events)) local.tree = foldFileTree(tree, events);
        else await this.refresh(local, workspace, treeId);
        return { tree: local.tree, result, events: isAppended || result ? events : [] };
      } catch (error) {
        const isStale =
          isAppError(error) && error.code === 'LOG.VERSION_CONFLICT' && error.data['streamId'] === streamId;
        if (!isStale || round === MAX_ROUNDS) throw error;
      }
    }
  }

  private async append(
    workspace: string,
    streamId: string,
    tree: FileTree,
    { events, also = [], ...guards }: FileDecision,
    recorder?: DecisionRecorder,
  ): Promise<{ isAppended: boolean; result: AppendResult | null }> {
    const own = { streamId, expectedVersion: streamVersionOf(tree), events: this.toNew(events) };
    if (recorder && (also.length > 0 || guards.fence || guards.idempotency))
      throw bug('FILE.DECISION_NOT_RECORDED', 'only the events of a decision can be recorded');
    // An append of very many events has no room for others.
    if (recorder && events.length <= JOINT_EVENTS)
      return {
        isAppended: await recorder.append({ stream: own, events, version: tree.version }),
        result: null,
      };
    const streams = events.length === 0 ? also : [own, ...also];
    const fence = recorder ? { fence: recorder.fence() } : {};
    const result = await this.deps.store.append({ workspace, streams, ...guards, ...fence });
    return { isAppended: result.outcome === 'appended', result };
  }

  private toNew(events: readonly FileTreeEvent[]) {
    return events.map((event) => toNewEvent(event, this.deps.ids));
  }

  private open(workspace: string, treeId: string): LocalTree {
    const key = `${workspace}\n${treeId}`;
    const local = this.local.get(key) ?? {
      ...{ tree: emptyFileTree(), snapshot: 0, isLoaded: false, enqueue: createSerialQueue() },
    };
    this.local.put(key, local);
    return local;
  }

  private async refresh(local: LocalTree, workspace: string, treeId: string): Promise<FileTree> {
    if (!local.isLoaded) {
      local.tree = (await this.deps.snapshots.read(workspace, treeId)) ?? local.tree;
      local.snapshot = streamVersionOf(local.tree);
      local.isLoaded = true;
    }
    local.tree = await this.foldAfter(workspace, treeId, local.tree);
    if (streamVersionOf(local.tree) - local.snapshot >= SNAPSHOT_EVERY) {
      await this.deps.snapshots.write(workspace, treeId, local.tree);
      local.snapshot = streamVersionOf(local.tree);
    }
    return local.tree;
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
      const facts = page.events.map(toFact);
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
    const { tree: cached } = this.open(workspace, treeId);
    if (cached.version === version) return cached;
    const snapshot = await this.deps.snapshots.read(workspace, treeId);
    const start = snapshot && snapshot.version <= version ? snapshot : emptyFileTree();
    const tree = await this.foldAfter(workspace, treeId, start, version);
    if (tree.version < version)
      throw notFound('FILE.NO_SUCH_VERSION', `the tree has ${tree.version} versions, not ${version}`);
    return tree;
  }
}
