import { AgentTreeEvent, agentTreeStream } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { agentTreeDecider } from '@antiphon/agent-domain';
import type { AgentTree } from '@antiphon/agent-domain';
import type { AppendResult, EventStore, IdempotencyClaim, StreamAppend } from '@antiphon/event-store';
import { createBoundedMap, createSerialQueue, isAppError, sleep } from '@antiphon/kernel';
import type { BoundedMap, Ids, SerialQueue } from '@antiphon/kernel';
import { agentUuidOf } from '../derived-ids.js';
import { toNewEvent } from '../event-envelope.js';

export interface AgentTreesDeps {
  readonly store: Pick<EventStore, 'readStream' | 'append'>;
  readonly ids: Ids;
}

/** Events for a tree, and appends to other streams in the same transaction. */
export interface TreeDecision {
  readonly events: readonly AgentTreeEvent[];
  readonly also?: readonly StreamAppend[];
  readonly idempotency?: IdempotencyClaim;
}

interface FoldedTree {
  readonly tree: AgentTree;
  readonly version: number;
}

interface LocalTree {
  folded: FoldedTree;
  /** Number of changes that wait or run here. */
  waiting: number;
  readonly enqueue: SerialQueue;
}

/** Maximum number of cached trees. */
const MAX_TREES = 1_000;
/** Maximum number of commit rounds: processes that change one tree conflict, and one succeeds. */
const MAX_ROUNDS = 200;
/** Maximum time between two changes of one tree by this process while more wait, ms. */
const MAX_COURTESY_MS = 6;

const emptyTree = (): FoldedTree => ({ tree: agentTreeDecider.initialState(), version: 0 });

/** The derived id of the message about an end conflicts when another process has recorded the end. */
const isConflictOf = (error: unknown, streamId: string): boolean =>
  isAppError(error) &&
  (error.code === 'LOG.EVENT_ID_CONFLICT' ||
    (error.code === 'LOG.VERSION_CONFLICT' && error.data['streamId'] === streamId));

/**
 * Event streams of the trees of agents. Changes of one tree run one after another in a process.
 * Each append checks the version of the stream, which finds the changes of other processes.
 */
export class AgentTrees {
  private readonly local: BoundedMap<LocalTree> = createBoundedMap(MAX_TREES);

  constructor(private readonly deps: AgentTreesDeps) {}

  /** Reads a tree up to now. */
  read(workspace: string, rootId: string): Promise<AgentTree> {
    const local = this.open(workspace, rootId);
    return local.enqueue(async () => (await this.refresh(local, workspace, rootId)).tree);
  }

  /**
   * Decides on a tree and appends, again after a conflict. Returns null if nothing was decided.
   * A conflict of another stream of the decision is thrown.
   */
  commit(
    workspace: string,
    rootId: string,
    decide: (tree: AgentTree) => TreeDecision | Promise<TreeDecision>,
  ): Promise<AppendResult | null> {
    const local = this.open(workspace, rootId);
    local.waiting++;
    return local.enqueue(() =>
      this.commitNow(local, workspace, rootId, decide).finally(() => {
        local.waiting--;
      }),
    );
  }

  private async commitNow(
    local: LocalTree,
    workspace: string,
    rootId: string,
    decide: (tree: AgentTree) => TreeDecision | Promise<TreeDecision>,
  ): Promise<AppendResult | null> {
    for (let round = 1; ; round++) {
      // The cached fold may be old: then the append conflicts, or the refusal is checked again.
      const isFresh = round > 1;
      const folded = isFresh ? await this.refresh(local, workspace, rootId) : local.folded;
      try {
        const result = await this.tryCommit(local, workspace, rootId, folded, decide);
        // Lets another process in, which has to read first what this one has just appended.
        if (local.waiting > 1) await sleep(Math.random() * MAX_COURTESY_MS);
        return result;
      } catch (error) {
        const isStale = isConflictOf(error, agentTreeStream(agentUuidOf(workspace, rootId)));
        const isRefusal = !isFresh && isAppError(error) && error.code.startsWith('AGENT.');
        if ((!isStale && !isRefusal) || round === MAX_ROUNDS) throw error;
      }
    }
  }

  private async tryCommit(
    local: LocalTree,
    workspace: string,
    rootId: string,
    { tree, version }: FoldedTree,
    decide: (tree: AgentTree) => TreeDecision | Promise<TreeDecision>,
  ): Promise<AppendResult | null> {
    const { store, ids } = this.deps;
    const { events, also = [], idempotency } = await decide(tree);
    if (events.length === 0) return null;
    const own: StreamAppend = {
      streamId: agentTreeStream(agentUuidOf(workspace, rootId)),
      expectedVersion: version,
      events: events.map((event) => toNewEvent(event, ids)),
    };
    const claim = idempotency ? { idempotency } : {};
    // The agent's facts come first: a projection may end a batch between the two.
    const result = await store.append({ workspace, streams: [...also, own], ...claim });
    if (result.outcome === 'appended')
      local.folded = {
        tree: events.reduce(agentTreeDecider.evolve, tree),
        version: version + events.length,
      };
    return result;
  }

  private open(workspace: string, rootId: string): LocalTree {
    const key = `${workspace}\n${rootId}`;
    const local = this.local.get(key) ?? { folded: emptyTree(), waiting: 0, enqueue: createSerialQueue() };
    this.local.put(key, local);
    return local;
  }

  private async refresh(local: LocalTree, workspace: string, rootId: string): Promise<FoldedTree> {
    const known = local.folded;
    const streamId = agentTreeStream(agentUuidOf(workspace, rootId));
    const events = await this.deps.store.readStream(workspace, streamId, { fromVersion: known.version + 1 });
    const tree = events.reduce((before, event) => {
      const parsed = AgentTreeEvent.safeParse(upcast(event));
      return parsed.success ? agentTreeDecider.evolve(before, parsed.data) : before;
    }, known.tree);
    local.folded = { tree, version: known.version + events.length };
    return local.folded;
  }
}
