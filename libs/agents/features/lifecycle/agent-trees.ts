import { AgentTreeEvent, agentTreeStream } from '@antiphon/contracts/agent';
import { agentTreeDecider } from '@antiphon/agents-domain';
import type { AgentTree } from '@antiphon/agents-domain';
import { AggregateStore, isVersionConflict } from '@antiphon/event-store';
import type { AppendResult, EventStore, IdempotencyClaim, StreamAppend } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type { Ids } from '@antiphon/kernel';
import { agentUuidOf, eventForms } from '@antiphon/agent-log';

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

/** Maximum number of cached trees. */
const MAX_TREES = 1_000;
/** Maximum number of commit rounds: processes that change one tree conflict, and one succeeds. */
const MAX_ROUNDS = 200;
/** Maximum time between two changes of one tree by this process while more wait, ms. */
const MAX_COURTESY_MS = 6;

/** The derived id of the message about an end conflicts when another process has recorded the end. */
const isStale = (error: unknown, streamId: string, isKept: boolean): boolean =>
  isVersionConflict(error, streamId) ||
  (isAppError(error) &&
    // A refusal that a kept fold gave is checked again.
    (error.code === 'LOG.EVENT_ID_CONFLICT' || (isKept && error.code.startsWith('AGENT.'))));

/**
 * Event streams of the trees of agents. Changes of one tree run one after another in a process.
 * Each append checks the version of the stream, which finds the changes of other processes.
 */
export class AgentTrees {
  private readonly streams: AggregateStore<AgentTree, AgentTreeEvent>;

  constructor({ store, ids }: AgentTreesDeps) {
    this.streams = new AggregateStore({
      ...{ store, decider: agentTreeDecider, ...eventForms(AgentTreeEvent, ids, null) },
      streamOf: (workspace, rootId) => agentTreeStream(agentUuidOf(workspace, rootId)),
      cache: { maxStreams: MAX_TREES, decidesOnKept: true, maxPauseMs: MAX_COURTESY_MS },
      ...{ isStale, maxRounds: MAX_ROUNDS },
    });
  }

  /** Reads a tree up to now. */
  async read(workspace: string, rootId: string): Promise<AgentTree> {
    return (await this.streams.read(workspace, rootId)).state;
  }

  /**
   * Decides on a tree and appends, again after a conflict. Returns null if nothing was decided.
   * A conflict of another stream of the decision is thrown.
   */
  async commit(
    workspace: string,
    rootId: string,
    decide: (tree: AgentTree) => TreeDecision | Promise<TreeDecision>,
  ): Promise<AppendResult | null> {
    const { result } = await this.streams.commit(workspace, rootId, async ({ state }) => {
      const { events, also, idempotency } = await decide(state);
      // The agent's facts come first: a projection may end a batch between the two.
      return { events, before: also, idempotency };
    });
    return result;
  }
}
