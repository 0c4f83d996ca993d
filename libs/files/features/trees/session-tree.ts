import { sessionStream } from '@antiphon/contracts/agent';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import { createBoundedMap, isAppError, isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { fileTreeIdOf } from '@antiphon/agent-log';
import type { FileTrees, FileTreesPort } from './file-trees.js';
import { findTreeVersion } from './find-tree-version.js';

export interface SessionTreeDeps {
  readonly store: Pick<EventStore, 'readStream' | 'readStreamPage'>;
  readonly trees: FileTreesPort & Pick<FileTrees, 'readFacts'>;
  readonly clock: Clock;
}

interface ForkPoint {
  readonly sessionId: string;
  readonly version: number;
}

/** Number of the first events of a session that may say that it is a fork. */
const FIRST_EVENTS = 2;

/**
 * Finds the tree of a session: that of its workspace, or of a fork its own. The tree of a fork
 * begins at its first use, with the files as of the fork point. A fork may share the tree instead.
 */
export class SessionTrees {
  private readonly known = createBoundedMap<string>(10_000);

  constructor(private readonly deps: SessionTreeDeps) {}

  async treeIdOf(workspace: string, sessionId?: string): Promise<string> {
    if (sessionId === undefined) return fileTreeIdOf(workspace);
    const key = `${workspace}\n${sessionId}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const treeId = await this.find(workspace, sessionId);
    this.known.put(key, treeId);
    return treeId;
  }

  private async find(workspace: string, sessionId: string): Promise<string> {
    const { store, trees, clock } = this.deps;
    const first = await store.readStream(workspace, sessionStream(sessionId), { limit: FIRST_EVENTS });
    const forked = first.find(({ type }) => type === 'SessionForked');
    if (!forked) return fileTreeIdOf(workspace);
    const origin = forked.data['origin'] as unknown as ForkPoint;
    const base = await this.treeIdOf(workspace, origin.sessionId);
    if (forked.data['files'] === 'shared') return base;
    const treeId = fileTreeIdOf(workspace, sessionId);
    await trees.commit(workspace, treeId, async ({ version }) => {
      if (version > 0) return { events: [] };
      const at = await this.originPosition(workspace, origin, forked);
      const data = {
        ...{ base, version: await this.versionAt(workspace, base, at), at: isoTime(clock) },
        cause: { actor: 'runtime', sessionId },
      };
      return { events: [{ type: 'FileTreeForked', schemaVersion: 1, data }] };
    });
    return treeId;
  }

  /** Returns the position of the fork point. Of an archived origin: that of the fork itself. */
  private async originPosition(workspace: string, origin: ForkPoint, forked: RecordedEvent): Promise<number> {
    const options = { fromVersion: origin.version, limit: 1 };
    try {
      const [event] = await this.deps.store.readStream(workspace, sessionStream(origin.sessionId), options);
      return event?.position ?? forked.position;
    } catch (error) {
      if (isAppError(error) && error.code === 'LOG.ARCHIVED') return forked.position;
      throw error;
    }
  }

  /** Returns the version of a tree at a position of the log. */
  async versionAt(workspace: string, treeId: string, position: number): Promise<number> {
    const { base } = await this.deps.trees.read(workspace, treeId);
    // A fork that had no tree yet had the files of its base.
    return (base?.version ?? 0) + (await findTreeVersion(this.deps, workspace, treeId, position));
  }
}
